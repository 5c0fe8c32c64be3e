/** Times at which a notifier tells nobody, as Alertmanager's `time_intervals` have them. */
import { z } from 'zod'

const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const MONTHS = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
]
const DAY_MINUTES = 1_440

/** From the first to the last, both included. */
type Range = readonly [first: number, last: number]

/** A time is in it if it is in one range of each list that is not empty. */
export interface MuteTimes {
  /** Minutes of the day. The last one is not included. */
  readonly times: readonly Range[]
  /** 0 is Sunday. */
  readonly weekdays: readonly Range[]
  /** Of the month, from 1; -1 is the last day of the month. */
  readonly daysOfMonth: readonly Range[]
  /** From 1. */
  readonly months: readonly Range[]
  readonly years: readonly Range[]
  /** A time zone. */
  readonly location: string
}

const texts = z.array(z.string().max(64)).max(32).default([])
const shape = z.strictObject({
  times: texts,
  weekdays: texts,
  days_of_month: texts,
  months: texts,
  years: texts,
  location: z.string().max(64).default('UTC'),
})

/** Undefined if it is none. */
export function muteTimesOf(given: unknown): MuteTimes | undefined {
  const read = shape.safeParse(given)
  if (!read.success) return undefined
  const { times, weekdays, days_of_month, months, years, location } = read.data
  const all = {
    times: rangesOf(times, '-', minuteOf),
    weekdays: rangesOf(weekdays, ':', (text) => wordOf(WEEKDAYS, text, 0)),
    daysOfMonth: rangesOf(days_of_month, ':', (text) => numberIn(text, -31, 31)),
    months: rangesOf(months, ':', (text) => wordOf(MONTHS, text, 1) ?? numberIn(text, 1, 12)),
    years: rangesOf(years, ':', (text) => numberIn(text, 1970, 9999)),
  }
  const { times: ofDay, weekdays: ofWeek, daysOfMonth, months: ofYear, years: ofAll } = all
  if (!ofDay || !ofWeek || !daysOfMonth || !ofYear || !ofAll || !isZone(location)) return undefined
  if (ofDay.some(([first, last]) => first >= last)) return undefined
  if ([ofWeek, ofYear, ofAll].some((ranges) => ranges.some(([first, last]) => first > last))) return undefined
  // From one that is counted from the end to one that is counted from the beginning, and the other way round, depends on the month.
  const isBackwards = ([first, last]: Range): boolean =>
    first < 0 ? last > 0 || last < first : last > 0 && last < first
  if (daysOfMonth.some(isBackwards)) return undefined
  return { times: ofDay, weekdays: ofWeek, daysOfMonth, months: ofYear, years: ofAll, location }
}

/** `nowMs`: milliseconds since 1970. */
export function isMutedAt(all: readonly MuteTimes[], nowMs: number): boolean {
  return all.some((one) => {
    const local = localTime(nowMs, one.location)
    const daysIn = new Date(Date.UTC(local.year, local.month, 0)).getUTCDate()
    const day = ([first, last]: Range): Range => [dayOf(first, daysIn), dayOf(last, daysIn)]
    return (
      (one.times.length === 0 || one.times.some(([first, last]) => local.minute >= first && local.minute < last)) &&
      isIn(one.weekdays, local.weekday) &&
      isIn(one.daysOfMonth.map(day), local.day) &&
      isIn(one.months, local.month) &&
      isIn(one.years, local.year)
    )
  })
}

function isIn(ranges: readonly Range[], value: number): boolean {
  return ranges.length === 0 || ranges.some(([first, last]) => value >= first && value <= last)
}

function dayOf(day: number, daysIn: number): number {
  return day < 0 ? daysIn + 1 + day : day
}

function localTime(nowMs: number, location: string) {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: location,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    hourCycle: 'h23',
  }).formatToParts(nowMs)
  const of = (type: string): number => Number(parts.find((part) => part.type === type)?.value)
  const [year, month, day] = [of('year'), of('month'), of('day')]
  const weekday = new Date(Date.UTC(year, month - 1, day)).getUTCDay()
  return { year, month, day, weekday, minute: of('hour') * 60 + of('minute') }
}

function rangesOf(
  given: readonly string[],
  separator: string,
  read: (text: string) => number | undefined,
): readonly Range[] | undefined {
  const found: Range[] = []
  for (const text of given) {
    const parts = text.split(separator).map((part) => read(part.trim().toLowerCase()))
    const [first, last = first] = parts
    if (parts.length > 2 || parts.includes(undefined) || first === undefined || last === undefined) return undefined
    found.push([first, last])
  }
  return found
}

function minuteOf(text: string): number | undefined {
  const [, hours, minutes] = /^(\d{2}):(\d{2})$/.exec(text) ?? []
  const minute = Number(hours) * 60 + Number(minutes)
  return Number(minutes) < 60 && minute <= DAY_MINUTES ? minute : undefined
}

function wordOf(words: readonly string[], text: string, from: number): number | undefined {
  const index = words.indexOf(text)
  return index < 0 ? undefined : index + from
}

function numberIn(text: string, least: number, most: number): number | undefined {
  const number = Number(text)
  return /^-?\d+$/.test(text) && number !== 0 && number >= least && number <= most ? number : undefined
}

function isZone(location: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: location }) !== undefined
  } catch {
    return false
  }
}
