/** Values, times and quantities as text for people. Text from sources is escaped so that it cannot control the terminal. */
import { BasicType, type GapEvent, type Value, valueToJson } from '../client/index.ts'

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']
const COUNTS = ['', 'k', 'M', 'G', 'T', 'P', 'E']
const CONTROLS_OR_UNSEEN =
  /[\p{Cc}\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]/gu

/**
 * Escapes characters that control a terminal, turn the direction of text, or cannot be seen, for example as \x1b. Joiners of scripts
 * and emoji stay.
 */
export function printable(text: string): string {
  return text.replaceAll(CONTROLS_OR_UNSEEN, (character) => {
    const code = character.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** JSON in one line for a terminal too: what `printable` escapes is written as \uXXXX, which is the same text for programs. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replaceAll(CONTROLS_OR_UNSEEN, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** Formats a value in one line. A DOUBLE is rounded to seven digits, because many are converted floats; `--json` has all digits. */
export function formatValue(value: Value): string {
  switch (value.type) {
    case BasicType.VOID:
      return '-'
    case BasicType.DOUBLE:
      return formatDouble(value.value)
    case BasicType.OPAQUE:
      return Array.from(value.value, (byte) => byte.toString(16).padStart(2, '0')).join('')
    case BasicType.STRING:
      return printable(String(valueToJson(value)))
    case BasicType.REC:
      return value.value.map((field) => `${printable(field.name)}=${formatValue(field)}`).join(' ')
    case BasicType.ARRAY: {
      const { element, items } = value.value
      return `[${items.map((item) => formatValue({ type: element, value: item } as Value)).join(', ')}]`
    }
    default:
      return String(value.value)
  }
}

/** How people write numbers in these units of sources. */
const IN_UNITS: ReadonlyMap<string, (value: number) => string> = new Map([
  ...['B', 'bytes', 'Bytes'].map((unit) => [unit, formatBytes] as const),
  ...['B/s', 'bytes/s', 'bytes/sec'].map((unit) => [unit, (value: number) => `${formatBytes(value)}/s`] as const),
  ...['percent', '%'].map((unit) => [unit, (value: number) => `${value.toFixed(1)} %`] as const),
  ...['s', 'sec', 'seconds'].map((unit) => [unit, formatSeconds] as const),
])

/** Formats a value with its unit in the way people write it: `23.5 GiB`, `12.3 %`, `24 min`; or, if `isExact`, as it is. */
export function formatMeasured(value: Value, unit: string, isExact = false): string {
  const isNumber = typeof value.value === 'number' || typeof value.value === 'bigint'
  const inUnit = isNumber && !isExact && Number.isFinite(Number(value.value)) ? IN_UNITS.get(unit) : undefined
  if (inUnit !== undefined) return inUnit(Number(value.value))
  const text = isNumber && isExact ? String(value.value) : formatValue(value)
  // The unit of a plain number is 1.
  return unit === '' || unit === '1' || text === '-' ? text : `${text} ${printable(unit)}`
}

/** The unit of a field of a record, from its name; empty if that does not show it. */
export function unitOfField(name: string): string {
  if (name === 'uptime') return 's'
  return /(^|_)bytes$/.test(name) ? 'B' : ''
}

function formatSeconds(seconds: number): string {
  if (seconds >= 60) return formatDuration(seconds * 1_000)
  return `${Number(seconds.toPrecision(3))} s`
}

/** Compares texts by their words, and numbers in them by their values: `a_2` comes before `a_10`. */
export function byNature(a: string, b: string): number {
  let [i, j] = [0, 0]
  while (i < a.length && j < b.length) {
    const [one, other] = [digitsAt(a, i), digitsAt(b, j)]
    if (one !== '' && other !== '') {
      const order = one.length - other.length || compared(one, other)
      if (order !== 0) return order
      i = endOfDigits(a, i)
      j = endOfDigits(b, j)
    } else {
      const order = compared(a[i] as string, b[j] as string)
      if (order !== 0) return order
      i++
      j++
    }
  }
  return a.length - i - (b.length - j) || compared(a, b)
}

/** The number at a place, without leading zeros but the last; empty if there is none. */
function digitsAt(text: string, at: number): string {
  const end = endOfDigits(text, at)
  while (at < end - 1 && text[at] === '0') at++
  return text.slice(at, end)
}

function endOfDigits(text: string, at: number): number {
  while (at < text.length && text[at]! >= '0' && text[at]! <= '9') at++
  return at
}

function compared(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function formatDouble(value: number): string {
  return Number.isInteger(value) || Math.abs(value) >= 1e7 ? String(value) : String(Number(value.toPrecision(7)))
}

/** Formats microseconds since 1970 as local date and time. */
export function formatTime(microseconds: number): string {
  if (microseconds === 0) return '-'
  const date = new Date(microseconds / 1000)
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${formatClock(microseconds)}`
}

/** Formats microseconds since 1970 as local time of day. */
export function formatClock(microseconds: number): string {
  const date = new Date(microseconds / 1000)
  const seconds = [two(date.getHours()), two(date.getMinutes()), two(date.getSeconds())].join(':')
  return `${seconds}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

function two(number: number): string {
  return String(number).padStart(2, '0')
}

/** For example `1.5 MiB`. */
export function formatBytes(bytes: number): string {
  const [number, unit] = scaled(bytes, 1024, BYTES)
  return `${number} ${unit}`
}

/** Exact up to 99,999, then rounded: `123k`, `1.23M`. */
export function formatCount(count: number): string {
  return Math.abs(count) < 100_000 ? String(count) : scaled(count, 1000, COUNTS).join('')
}

/** Uses one or two units: `850 ms`, `12 s`, `3 min`, `2 h 5 min`, `4 d 3 h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.floor(ms))} ms`
  const seconds = Math.floor(ms / 1_000)
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? both(hours, 'h', minutes % 60, 'min') : both(Math.floor(hours / 24), 'd', hours % 24, 'h')
}

/** A value that is older than this is shown with its age. */
const STALE_MS = 60_000

/** Whether a value is so old that people have to be made aware of it. */
export function isStale(ageMs: number): boolean {
  return ageMs >= STALE_MS
}

/** Formats a duration in a single unit. */
export function formatAge(ms: number): string {
  return formatDuration(ms).split(' ').slice(0, 2).join(' ')
}

function both(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`
}

/** At most three digits, unless the unit is the smallest. */
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

export function describeGap({ count, id, reason, from, to }: GapEvent, nameOf: (id: number) => string): string {
  const what = count === 0 ? 'an unknown number of values' : `${count} ${count === 1 ? 'value' : 'values'}`
  const where = id === 0 ? '' : ` of ${printable(nameOf(id))}`
  const when = from === 0 ? '' : ` from ${formatTime(from)} to ${formatTime(to)}`
  return `lost ${what}${where} (${typeof reason === 'number' ? `reason ${reason}` : reason})${when}`
}

/** A field of CSV (RFC 4180). */
export function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
