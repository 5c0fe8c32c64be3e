/**
 * The time that the charts of a page show, as the URL has it: how long, and up to when. Without a moment they follow the time.
 */

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const YEAR = 365 * DAY
const UNITS: readonly (readonly [letter: string, seconds: number])[] = [
  ['y', YEAR],
  ['d', DAY],
  ['h', HOUR],
  ['m', MINUTE],
  ['s', 1],
]

/** Seconds that can be chosen where the server remembers, and where it knows the last hour only. */
export const REMEMBERED = [5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY, 30 * DAY, YEAR, 2 * YEAR] as const
export const RECENT = [MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR] as const
export const LEAST_SECONDS = 2
export const MOST_SECONDS = 2 * YEAR
const LONGEST_RECENT = DAY

/** These arguments of a URL concern the page, and no metric. */
const LENGTH = '.range'
const UNTIL = '.at'
export const TIME_ARGUMENTS: readonly string[] = [LENGTH, UNTIL]

export interface ChartTime {
  readonly seconds: number
  /** Where it ends, in seconds since 1970; undefined: now. */
  readonly at: number | undefined
}

const USUAL: ChartTime = { seconds: 5 * MINUTE, at: undefined }

/** How much charts may show at once. */
export function mostSeconds(isRemembered: boolean): number {
  return isRemembered ? MOST_SECONDS : LONGEST_RECENT
}

/** `5m`, `6h`, `1y`, `5431s`. */
export function lengthText(seconds: number): string {
  const whole = Math.max(1, Math.round(seconds))
  const [letter, unit] = UNITS.find(([, size]) => whole % size === 0) as (typeof UNITS)[number]
  return `${whole / unit}${letter}`
}

function lengthOf(text: string | null): number | undefined {
  const [, count = '', letter] = /^(\d{1,9})([smhdy])$/.exec(text ?? '') ?? []
  const unit = UNITS.find(([one]) => one === letter)
  if (unit === undefined) return undefined
  const seconds = Number(count) * unit[1]
  return seconds < 1 || seconds > MOST_SECONDS ? undefined : seconds
}

/** What is no time is the usual one. */
export function timeOfUrl(args: URLSearchParams): ChartTime {
  const at = Date.parse(args.get(UNTIL) ?? '')
  const seconds = lengthOf(args.get(LENGTH)) ?? USUAL.seconds
  return { seconds, at: Number.isNaN(at) ? undefined : at / 1000 }
}

/** The usual one has no arguments. */
export function timeArgs({ seconds, at }: ChartTime): readonly (readonly [name: string, text: string])[] {
  const length = lengthText(seconds)
  const until =
    at === undefined ? [] : ([[UNTIL, new Date(Math.round(at) * 1000).toISOString().replace('.000', '')]] as const)
  return length === lengthText(USUAL.seconds) ? until : [[LENGTH, length], ...until]
}

/** A link of the console that shows another time. */
export function linkAt(link: string, time: readonly (readonly [name: string, text: string])[]): string {
  const [path = '', query = ''] = link.split('?', 2)
  const args = new URLSearchParams(query)
  for (const name of TIME_ARGUMENTS) args.delete(name)
  for (const [name, text] of time) args.append(name, text)
  const all = args.toString()
  return all === '' ? path : `${path}?${all}`
}

/** A link that shows the time of a URL. */
export function linkInTime(link: string, args: URLSearchParams): string {
  return linkAt(link, timeArgs(timeOfUrl(args)))
}

/** What a field of type `datetime-local` has for a time, to the second. */
export function momentText(seconds: number): string {
  const time = new Date(seconds * 1000)
  const two = (part: number): string => String(part).padStart(2, '0')
  const day = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-')
  return `${day}T${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`
}

/** The time between two fields; why there is none for people. */
export function timeOfFields(from: string, to: string): ChartTime | string {
  const [first, last] = [Date.parse(from) / 1000, Date.parse(to) / 1000]
  if (Number.isNaN(first) || Number.isNaN(last)) return 'Both times are needed.'
  const seconds = last - first
  if (seconds < LEAST_SECONDS) return 'The second time has to be later than the first one.'
  return seconds > MOST_SECONDS ? 'At most two years can be shown at once.' : { seconds, at: last }
}
