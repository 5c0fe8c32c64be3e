/** A button after a list that is not shown whole. */
import { formatCount } from '../units.ts'

interface ShowMoreProps {
  /** How many there are, and how many of them are shown. */
  readonly count: number
  readonly shown: number
  /** How many more are shown with each press. */
  readonly page: number
  readonly onMore: () => void
}

export function ShowMore({ count, shown, page, onMore }: ShowMoreProps) {
  return shown >= count ? null : (
    <div class="actions">
      <button type="button" onClick={onMore}>
        Show {formatCount(Math.min(page, count - shown))} more
      </button>
    </div>
  )
}
