/** Counts, bytes and durations at the precision that people compare them with; `--json` has the exact numbers. */

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']
const COUNTS = ['', 'k', 'M', 'G', 'T', 'P', 'E']

/** As `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  const [number, unit] = scaled(bytes, 1024, BYTES)
  return `${number} ${unit}`
}

/** Exact up to 99,999, then as `123k` or `1.23M`. */
export function formatCount(count: number): string {
  return Math.abs(count) < 100_000 ? String(count) : scaled(count, 1000, COUNTS).join('')
}

/** In the one or two units that say it: `850 ms`, `12 s`, `3 min`, `2 h 5 min`, `4 d 3 h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.floor(ms))} ms`
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? both(hours, 'h', minutes % 60, 'min') : both(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

/** The same in one unit. */
export function formatAge(ms: number): string {
  return formatDuration(ms).split(' ').slice(0, 2).join(' ')
}

function both(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`
}

/** At most three digits before the unit where that is not the smallest. */
function scaled(number: number, base: number, units: readonly string[]): [string, string] {
  let power = 0
  // 999.5 would be rounded to 1000.
  while (Math.abs(number) >= (power === 0 ? base : 999.5) && power < units.length - 1) {
    number /= base
    power++
  }
  const digits = power === 0 || Math.abs(number) >= 99.95 ? 0 : Math.abs(number) >= 9.995 ? 1 : 2
  return [power === 0 ? String(Math.round(number)) : number.toFixed(digits), units[power]!]
}
