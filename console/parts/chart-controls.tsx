/** What concerns all charts of a page: how much time they show, and whether they go on. */
import type { ChartPage } from './chart-page.ts'

const SPANS = [1, 5, 15, 60] as const

export function ChartControls({ page }: { readonly page: ChartPage }) {
  const { minutes, isPaused, range } = page
  return (
    <p class="choices">
      {range.value === undefined ? null : (
        <button
          type="button"
          class="plain"
          onClick={() => {
            range.value = undefined
          }}
        >
          whole time
        </button>
      )}
      <button type="button" class="plain" aria-pressed={isPaused.value} onClick={() => page.pause(!isPaused.value)}>
        {isPaused.value ? 'go on' : 'pause'}
      </button>
      {SPANS.map((span) => (
        <button
          key={span}
          type="button"
          class="plain"
          aria-pressed={span === minutes.value && range.value === undefined}
          onClick={() => {
            minutes.value = span
            range.value = undefined
          }}
        >
          {span < 60 ? `${span} m` : '1 h'}
        </button>
      ))}
    </p>
  )
}
