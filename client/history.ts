/** What a producer remembers of metrics [MON 9.16], read page by page. */
import type { Field } from '../protocol/monitor/value.ts'
import type { Arguments } from './values.ts'

/** Labels with these names cannot be selected by. */
const OWN_ARGUMENTS: readonly string[] = ['metric', 'from', 'to', 'step_ms', 'with_losses', 'with_families', 'after']

const MICROSECONDS = 1_000

export interface HistoryReadOptions {
  /**
   * Only series with these texts of labels, or texts that match a pattern; the empty text: without the label. `producer` names a server
   * that this one consumes, which is asked for what it remembers.
   */
  readonly labels?: Readonly<Record<string, string>> | undefined
  /** The time of the first sample: microseconds since 1970, or a Date. An hour before `until` if it is not given. */
  readonly since?: number | Date | undefined
  /** The time of the last sample; now if it is not given. */
  readonly until?: number | Date | undefined
  /**
   * How far apart values may be, in microseconds. From five minutes on each series has `windows` in place of samples, as long as the
   * most times five minutes that are not longer; below that it has samples, and windows of five minutes where samples have gone.
   */
  readonly step?: number | undefined
  /** Given the ranges of time in which values are missing that may be among those that are read, those of a tenant before its series. */
  readonly onLoss?: ((loss: LossRange) => void) | undefined
  /** Whether it is wanted what is known of the metrics, too: the `family` of each series. */
  readonly withFamilies?: boolean | undefined
  /** A long series comes in several pieces, one after the other, as they arrive: then nothing has to fit into memory. */
  readonly inPieces?: boolean | undefined
  /** Gives up: what is read rejects with the reason. */
  readonly signal?: AbortSignal | undefined
}

/** A series and what is remembered of it. All times are microseconds since 1970, ascending. */
export interface SeriesHistory {
  /** Empty: the series belongs to no tenant. */
  readonly tenant: string
  /** The metric; a record among its values has a series for each of its numbers. */
  readonly metric: string
  /** The name of the series in Prometheus. */
  readonly name: string
  /** Its labels in Prometheus. */
  readonly labels: Readonly<Record<string, string>>
  readonly times: readonly number[]
  /** As many as `times`. */
  readonly values: readonly number[]
  /** When the series ended. */
  readonly ended: readonly number[]
  /** What there is in place of samples, if `step` was given; they are earlier than all samples. */
  readonly windows?: SeriesWindows | undefined
  /** What is known of its metric, if `withFamilies` was given and anything is. */
  readonly family?: SeriesFamily | undefined
}

/** What is known of samples of one name, as Prometheus says it; the samples of a histogram or summary are one family. */
export interface SeriesFamily {
  readonly name: string
  /** `counter`, `gauge`, `histogram`, `summary` or `unknown`. */
  readonly type: string
  /** A sentence for people; it may be empty, as the unit may. */
  readonly help: string
  readonly unit: string
}

/** Windows of a series, open on the left, with an element of each column for each. Times are microseconds since 1970. */
export interface SeriesWindows {
  /** How long each is, in microseconds. */
  readonly step: number
  readonly ends: readonly number[]
  readonly min: readonly number[]
  readonly max: readonly number[]
  readonly sum: readonly number[]
  /** How many samples. */
  readonly count: readonly number[]
  readonly first: readonly number[]
  readonly firstTimes: readonly number[]
  readonly last: readonly number[]
  readonly lastTimes: readonly number[]
  /** What a counter has lost by starting again: the sum of the values before which the next one was smaller. */
  readonly resets: readonly number[]
}

/** A range of time in which values are missing; both ends are included. */
export interface LossRange {
  /** Empty: of no tenant. */
  readonly tenant: string
  /** The name of a metric, or a pattern; empty if it may be any. */
  readonly metric: string
  readonly from: number
  readonly to: number
  /** How many values are missing; 0 if that is not known. */
  readonly count: number
  /** A few words for people. */
  readonly reason: string
}

/** `pageOf` gives the records of one page. */
export async function* readHistory(
  pageOf: (args: Arguments) => Promise<readonly (readonly Field[])[]>,
  metric: string,
  options: HistoryReadOptions,
): AsyncGenerator<SeriesHistory, void, void> {
  let series: Piece | undefined
  let args: Arguments | undefined = argumentsOf(metric, options)
  const producer = options.labels?.['producer']
  while (args !== undefined) {
    const records: readonly (readonly Field[])[] = await pageOf(args)
    args = undefined
    for (const record of records) {
      if (record[0]?.name === 'more') {
        args = { ...(producer !== undefined && { producer }), after: textOf(record, 'after') }
        break
      }
      if (isLoss(record)) {
        options.onLoss?.(lossOf(record))
        continue
      }
      const piece = pieceOf(record)
      if (series !== undefined && !options.inPieces && isSame(series, piece)) join(series, piece)
      else {
        if (series !== undefined) yield series
        series = piece
      }
    }
  }
  if (series !== undefined) yield series
}

function argumentsOf(
  metric: string,
  { labels = {}, since, until, step, onLoss, withFamilies }: HistoryReadOptions,
): Arguments {
  const own = OWN_ARGUMENTS.find((name) => Object.hasOwn(labels, name))
  if (own !== undefined) throw new RangeError(`nothing can be selected by a label with the name \`${own}\``)
  return {
    ...labels,
    metric,
    ...(since !== undefined && { from: microseconds(since, 'since') }),
    ...(until !== undefined && { to: microseconds(until, 'until') }),
    ...(step !== undefined && { step_ms: millisecondsOf(step) }),
    ...(onLoss !== undefined && { with_losses: true }),
    ...(withFamilies === true && { with_families: true }),
  }
}

function microseconds(time: number | Date, name: string): number {
  const given = typeof time === 'number' ? time : time.getTime() * 1000
  if (Number.isSafeInteger(given) && given >= 0) return given
  throw new RangeError(`\`${name}\`: ${given} is no time in whole microseconds since 1970`)
}

function millisecondsOf(step: number): number {
  if (step >= 0 && Number.isFinite(step)) return Math.floor(step / MICROSECONDS)
  throw new RangeError(`\`step\`: ${step} is no number of microseconds`)
}

interface Piece extends SeriesHistory {
  readonly times: number[]
  readonly values: number[]
  readonly ended: number[]
  windows: SeriesWindows | undefined
}

/** Records of losses have a range. */
function isLoss(record: readonly Field[]): boolean {
  return record.some(({ name }) => name === 'from')
}

function lossOf(record: readonly Field[]): LossRange {
  return {
    tenant: textOf(record, 'tenant'),
    metric: textOf(record, 'metric'),
    from: Number(contentOf(record, 'from')),
    to: Number(contentOf(record, 'to')),
    count: Number(contentOf(record, 'lost')),
    reason: textOf(record, 'reason'),
  }
}

function pieceOf(record: readonly Field[]): Piece {
  const texts = fieldsOf(record, 'labels') ?? []
  const family = fieldsOf(record, 'family')
  return {
    tenant: textOf(record, 'tenant'),
    metric: textOf(record, 'metric'),
    name: textOf(record, 'name'),
    labels: Object.fromEntries(texts.map(({ name }) => [name, textOf(texts, name)])),
    times: numbersOf(record, 'times'),
    values: numbersOf(record, 'values'),
    ended: numbersOf(record, 'ended'),
    windows: contentOf(record, 'ends') === undefined ? undefined : windowsOf(record),
    family: family && familyOf(family),
  }
}

function familyOf(fields: readonly Field[]): SeriesFamily {
  const [name, type, help, unit] = [
    textOf(fields, 'name'),
    textOf(fields, 'type'),
    textOf(fields, 'help'),
    textOf(fields, 'unit'),
  ]
  return { name, type, help, unit }
}

function windowsOf(record: readonly Field[]): SeriesWindows {
  return {
    step: Number(contentOf(record, 'step_ms')) * MICROSECONDS,
    ends: numbersOf(record, 'ends'),
    min: numbersOf(record, 'min'),
    max: numbersOf(record, 'max'),
    sum: numbersOf(record, 'sum'),
    count: numbersOf(record, 'count'),
    first: numbersOf(record, 'first'),
    firstTimes: numbersOf(record, 'first_times'),
    last: numbersOf(record, 'last'),
    lastTimes: numbersOf(record, 'last_times'),
    resets: numbersOf(record, 'resets'),
  }
}

function contentOf(record: readonly Field[], name: string): Field['value'] | undefined {
  return record.find((one) => one.name === name)?.value
}

/** Those of a record in a record; undefined if there is none. */
function fieldsOf(record: readonly Field[], name: string): readonly Field[] | undefined {
  const value = contentOf(record, name)
  return Array.isArray(value) ? (value as readonly Field[]) : undefined
}

function textOf(record: readonly Field[], name: string): string {
  const value = contentOf(record, name) ?? ''
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value)
}

function numbersOf(record: readonly Field[], name: string): number[] {
  const value = contentOf(record, name)
  return typeof value === 'object' && value !== null && 'items' in value ? value.items.map(Number) : []
}

function isSame(one: SeriesHistory, other: SeriesHistory): boolean {
  const identity = ({ tenant, metric, name, labels }: SeriesHistory): string =>
    JSON.stringify([tenant, metric, name, Object.entries(labels)])
  return identity(one) === identity(other)
}

function join(series: Piece, { times, values, ended, windows }: Piece): void {
  for (const time of times) series.times.push(time)
  for (const value of values) series.values.push(value)
  for (const end of ended) series.ended.push(end)
  if (windows !== undefined) series.windows = series.windows === undefined ? windows : joined(series.windows, windows)
}

function joined(some: SeriesWindows, more: SeriesWindows): SeriesWindows {
  const columns = Object.entries(more).map(([name, column]: [string, number | readonly number[]]) => {
    const before = some[name as keyof SeriesWindows]
    return [name, typeof before === 'number' || typeof column === 'number' ? column : before.concat(column)]
  })
  return Object.fromEntries(columns) as SeriesWindows
}
