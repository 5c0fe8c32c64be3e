/** Whether the screen is as narrow as that of a phone; the style sheet has the same width. */
import { useEffect, useState } from 'preact/hooks'

const NARROW = '(max-width: 760px)'

export function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches)
  useEffect(() => {
    const query = matchMedia(NARROW)
    const changed = (): void => setNarrow(query.matches)
    query.addEventListener('change', changed)
    return () => query.removeEventListener('change', changed)
  }, [])
  return isNarrow
}
