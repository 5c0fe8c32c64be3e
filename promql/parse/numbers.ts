/**
 * Numbers and durations: as they stand in an expression, and as Go prints them, which values of labels (count_values), messages
 * and the HTTP API show.
 */

const UNITS_MS: readonly (readonly [unit: string, ms: number])[] = [
  ['y', 31_536_000_000],
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
]

const DURATION = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/

/** The longest duration that Go has: 2^63 nanoseconds. */
export const MAX_DURATION_MS = 2 ** 63 / 1e6

/** The milliseconds of `1h30m`; undefined if it is no duration. */
export function durationMs(text: string): number | undefined {
  const found = DURATION.exec(text)
  if (found === null || text === '') return undefined
  return UNITS_MS.reduce((sum, [, ms], index) => sum + Number(found[index + 1] ?? 0) * ms, 0)
}

/** The same where "0" needs no unit; undefined too if it is longer than any duration that Go has. */
export function boundedDurationMs(text: string): number | undefined {
  const ms = text === '0' ? 0 : durationMs(text)
  return ms !== undefined && ms <= MAX_DURATION_MS ? ms : undefined
}

/** A number or a duration (in seconds), without a sign; undefined if it is neither. */
export function literalNumber(text: string): number | undefined {
  const lower = text.toLowerCase()
  if (lower === 'inf') return Number.POSITIVE_INFINITY
  if (lower === 'nan') return Number.NaN
  const ms = durationMs(text)
  if (ms !== undefined) return ms / 1000
  const plain = lower.replaceAll('_', '')
  if (/^0x[0-9a-f]+$/.test(plain)) return Number(plain)
  if (/^0[0-7]+$/.test(plain)) return Number.parseInt(plain, 8)
  return /^(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/.test(plain) ? Number(plain) : undefined
}

/** What Go's ParseFloat makes of the text of a label, such as `le`; undefined if that is no number. */
export function floatOf(text: string): number | undefined {
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return Number(text)
  const found = /^([+-]?)(inf|infinity|nan)$/i.exec(text)
  if (found === null) return undefined
  if (found[2]?.toLowerCase() === 'nan') return Number.NaN
  return found[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

/** Go's FormatFloat(value, 'f', -1, 64): digits alone, without an exponent. */
export function plainNumber(value: number): string {
  if (!Number.isFinite(value)) return specialNumber(value)
  if (Object.is(value, -0)) return '-0'
  const text = String(value)
  const found = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text)
  if (found === null) return text
  const [, sign = '', first = '', rest = '', exponent = '0'] = found
  const digits = first + rest
  const point = 1 + Number(exponent)
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`
  return `${sign}${digits.padEnd(point, '0')}`
}

/** Go's `%g`: an exponent below 1e-4 and from 1e21 on. */
export function shortNumber(value: number): string {
  if (!Number.isFinite(value)) return specialNumber(value)
  const text = value === 0 ? (Object.is(value, -0) ? '-0' : '0') : value.toExponential()
  const [mantissa = '', exponent = '0'] = text.split('e')
  const power = Number(exponent)
  if (power >= -4 && power < 21) return plainNumber(value)
  return `${mantissa}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

/** Go's `%.2g`. */
export function twoDigits(value: number): string {
  if (!Number.isFinite(value) || value === 0) return shortNumber(value)
  const [mantissa = '', exponent = '0'] = value.toExponential(1).split('e')
  const power = Number(exponent)
  const short = mantissa.replace(/\.0$/, '')
  if (power >= -4 && power < 2) return plainNumber(Number(value.toPrecision(2)))
  return `${short}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`
}

function specialNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  return value > 0 ? '+Inf' : '-Inf'
}

/** A duration as Prometheus prints it: `1h30m`, the largest unit first. */
export function durationText(ms: number): string {
  if (ms === 0) return '0s'
  let text = ms < 0 ? '-' : ''
  let left = Math.abs(ms)
  for (const [unit, unitMs] of UNITS_MS) {
    // Years and weeks are used only where nothing is left over.
    if ((unit === 'y' || unit === 'w') && left % unitMs !== 0) continue
    const count = Math.floor(left / unitMs)
    if (count > 0) text += `${count}${unit}`
    left -= count * unitMs
  }
  return text
}
