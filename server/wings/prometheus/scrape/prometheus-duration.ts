/** Durations as Prometheus writes them, such as "1m30s": each unit at most once, the largest first. */

const UNITS = [
  ['y', 31_536_000_000],
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const

const DURATION = new RegExp(`^${UNITS.map(([unit]) => `(?:(\\d{1,12})${unit})?`).join('')}$`)

/** Milliseconds; undefined if `text` is no duration. */
export function parsePrometheusDuration(text: string): number | undefined {
  if (text === '0') return 0
  const match = text === '' ? null : DURATION.exec(text)
  if (match === null) return undefined
  const ms = UNITS.reduce((sum, [, unitMs], index) => sum + Number(match[index + 1] ?? 0) * unitMs, 0)
  return Number.isSafeInteger(ms) ? ms : undefined
}

/** As Prometheus writes it: years and weeks only where nothing is left over. */
export function formatPrometheusDuration(ms: number): string {
  let rest = ms
  let text = ''
  for (const [unit, unitMs] of UNITS) {
    const isWhole = unit === 'y' || unit === 'w'
    const count = isWhole && rest % unitMs !== 0 ? 0 : Math.floor(rest / unitMs)
    if (count > 0) text += `${count}${unit}`
    rest -= count * unitMs
  }
  return text === '' ? '0s' : text
}
