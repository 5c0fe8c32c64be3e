/** Numbers, sizes and times as people write them. */

const LARGE = ['', 'k', 'M', 'G', 'T', 'P', 'E'] as const
const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const
/** From this many of the largest unit on, a power of ten says more than its digits. */
const MOST_OF_UNIT = 10_000
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'] as const
/** What stands for a value that is not known. */
export const UNKNOWN = '–'

/** `48.2 k`, `1,801`, `214`, `0.03`. */
export function formatNumber(value: number | undefined): string {
  if (value === undefined || !Number.isFinite(value)) return UNKNOWN
  const size = Math.abs(value)
  if (size < 10_000) return Number.isInteger(value) ? formatCount(value) : digits(value)
  return scaled(value, 1000, LARGE)
}

/** Of something per second: `48.2 k/s`. */
export function formatRate(perSecond: number | undefined): string {
  return perSecond === undefined ? UNKNOWN : `${formatNumber(perSecond)}/s`
}

/** `9.1 MiB`. */
export function formatBytes(value: number | undefined): string {
  return value === undefined || !Number.isFinite(value) ? UNKNOWN : scaled(value, 1024, BINARY)
}

/** `240 ms`, `2.40 s`, `14 s`, `6 min`, `3 h`, `12 d`; the sign of a negative one is before it. */
export function formatDuration(seconds: number | undefined): string {
  if (seconds === undefined || !Number.isFinite(seconds)) return UNKNOWN
  if (seconds < 0) return `-${formatDuration(-seconds)}`
  if (seconds < 0.9995) return `${digits(seconds * 1000)} ms`
  if (seconds < 10) return `${digits(seconds)} s`
  if (seconds < 100) return `${Math.round(seconds)} s`
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${formatNumber(Math.round(seconds / 86_400))} d`
}

/** With thousands apart, for tables in which the last digit matters: `1,284,402`. */
export function formatCount(value: number): string {
  return Math.round(value).toLocaleString('en')
}

/** A value of a metric with its unit; `isRate`: what it grows by per second. */
export function formatMeasured(value: number | undefined, unit: string, isRate = false): string {
  if (isRate) return value === undefined ? UNKNOWN : `${formatMeasured(value, unit)}/s`
  if (unit === 'B') return formatBytes(value)
  // As Ganglia writes them.
  if (unit === 'KB') return formatBytes(value === undefined ? undefined : value * 1024)
  if (unit === 'B/s' || unit === 'bytes/sec') return value === undefined ? UNKNOWN : `${formatBytes(value)}/s`
  if (unit === 's') return formatDuration(value)
  if (unit === 'percent' || unit === '%') {
    if (value === undefined) return UNKNOWN
    return `${Math.abs(value) < 10_000 ? digits(value) : formatNumber(value)} %`
  }
  const shown = formatNumber(value)
  return unit === '' || unit === '1' || value === undefined ? shown : `${shown} ${unit}`
}

/** The local time of day, `14:05:30`, the same in every language; the title of an element has the rest. */
export function formatTime(microseconds: number): string {
  const time = new Date(microseconds / 1000)
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map((part) => String(part).padStart(2, '0')).join(':')
}

/** Without seconds: `14:05`. */
export function formatMinute(microseconds: number): string {
  return formatTime(microseconds).slice(0, 5)
}

/** `29 Nov`, or `Nov 2026`, the same in every language. */
export function formatDay(microseconds: number, isMonth = false): string {
  const time = new Date(microseconds / 1000)
  const month = MONTHS[time.getMonth()]
  return isMonth ? `${month} ${time.getFullYear()}` : `${time.getDate()} ${month}`
}

/** The time, with its day unless that is today, and its year unless it is this one: `29 Nov 14:05:30`. `now`: as the time. */
export function formatMoment(microseconds: number, now = Date.now() * 1000): string {
  const [time, today] = [new Date(microseconds / 1000), new Date(now / 1000)]
  if (time.toDateString() === today.toDateString()) return formatTime(microseconds)
  const year = time.getFullYear() === today.getFullYear() ? '' : ` ${time.getFullYear()}`
  return `${formatDay(microseconds)}${year} ${formatTime(microseconds)}`
}

export function formatUtc(microseconds: number): string {
  return new Date(microseconds / 1000).toISOString().replace('T', ' ').replace('Z', ' UTC')
}

function scaled(value: number, base: number, units: readonly string[]): string {
  let [left, at] = [value, 0]
  while (Math.abs(left) >= (at === 0 ? base : base * 0.9995) && at < units.length - 1) {
    left /= base
    at++
  }
  if (at === units.length - 1 && Math.abs(left) >= MOST_OF_UNIT)
    return `${value.toExponential(2)} ${units[0]}`.trimEnd()
  return `${at === 0 ? formatCount(left) : digits(left)} ${units[at]}`.trimEnd()
}

/** Three digits: `0.03`, `4.82`, `61.4`, `214`. */
function digits(value: number): string {
  const size = Math.abs(value)
  if (size >= 100 || value === 0) return formatCount(value)
  if (size < 0.1) return String(Number(value.toPrecision(2)))
  return value.toFixed(size >= 10 ? 1 : 2)
}
