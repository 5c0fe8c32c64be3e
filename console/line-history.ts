/**
 * What the server remembers of one metric over a range of time: `producer.history.select`, page by page. Samples become columns while
 * they come, so that the page takes no more memory for a year than for a minute. The newest come first; what is older than fits into
 * the bound of a reading is left out, and said to be.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { type Consumer, type PlainRecord, StatusError } from '../client/browser.ts'
import { COLUMNS, type ColumnRange, Columns, middleOf, type SampleWindow } from './columns.ts'
import { keepLoss, lossOf, type PastLoss } from './losses.ts'
import { isOfOwnMachine, isWhole, ofTheWhole } from './own-machine.ts'
import { producersOf } from './producers.ts'
import { type Arguments, pagesOf, untilAnswered } from './query.ts'
import { reasonOf } from './refusals.ts'
import type { LineArguments, ServerClock } from './series-watch.ts'

const SELECT = 'producer.history.select'
/** Samples that one reading takes. */
const MOST_SAMPLES = 4_000_000
/** Samples that one question should have as its answer. */
const SAMPLES_OF_PART = 400_000
/** The first question is about so many columns, a later one about so many times as many at most. */
const FIRST_COLUMNS = 5
const GROWTH = 4
/** Series that are kept; the others are counted. */
const MOST_SERIES = 200
/** A part is begun again so often, where the server has forgotten the question. */
const ATTEMPTS = 3
/** What has been read is read again so far back: the server stores what comes within a second, and some comes late. */
const AGAIN_SECONDS = 60
/** From here on columns are read as windows. */
const ROLLUP_SECONDS = 300
/** So long what comes is enough: charts keep the values of an hour. */
const ENOUGH_SECONDS = 1_800
/** A window costs as much to read as some samples. */
const SAMPLES_OF_WINDOW = 4
/** These arguments are no labels. */
const NO_LABELS: ReadonlySet<string> = new Set([
  'interval_ms',
  'deadline_ms',
  'on_demand',
  'producer',
  'metric',
  'from',
  'to',
  'step_ms',
  'with_losses',
  'after',
])

export interface PastSeries {
  readonly metric: string
  /** In Prometheus: a record has several. */
  readonly name: string
  /** As Prometheus calls them. */
  readonly labels: LineArguments
  /** Another one after each reading. */
  columns: Columns
}

/** What has been read. */
interface Reading {
  readonly range: ColumnRange
  readonly series: Map<string, PastSeries>
  readonly losses: Map<string, PastLoss>
  /** Up to here, in seconds since 1970. */
  readTo: number
  /** Series beyond those that are kept. */
  more: number
  /** What is older was too much to read; undefined if all was read. */
  since: number | undefined
  samples: number
}

export type HistoryState =
  /** Nobody has asked. */
  | { readonly kind: 'none' }
  /** The metric is that of another server. */
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'reading'; readonly series: readonly PastSeries[]; readonly samples: number }
  | {
      readonly kind: 'read'
      readonly series: readonly PastSeries[]
      readonly more: number
      /** What is older was too much to read; undefined if all was read. */
      readonly since: number | undefined
      readonly losses: readonly PastLoss[]
    }
  | { readonly kind: 'refused'; readonly series: readonly PastSeries[]; readonly reason: string }

/** Readings, one after the other: the server answers few long questions of one user at a time. */
export class HistoryReads {
  #last: Promise<unknown> = Promise.resolve()

  run(read: () => Promise<void>): Promise<void> {
    const done = this.#last.then(read)
    this.#last = done.catch(() => {})
    return done
  }
}

/** Whether the server remembers anything, and the user may ask for it. Rejects if that cannot be found out. */
export async function hasHistory(consumer: Consumer, signal: AbortSignal): Promise<boolean> {
  try {
    const ask = () => consumer.query(SELECT, { metric: SELECT, from: 0n, to: 0n }, { signal })
    return (await untilAnswered(consumer, signal, ask)).plain !== null
  } catch (error) {
    if (error instanceof StatusError) return false
    throw error
  }
}

export class LineHistory {
  readonly metric: string
  readonly #consumer: Consumer
  readonly #args: LineArguments
  readonly #clock: ServerClock
  readonly #reads: HistoryReads
  readonly #state = signal<HistoryState>({ kind: 'none' })
  /** The last one that was completed, and its series. */
  #done: Reading | undefined
  #series: readonly PastSeries[] = []
  #abort = new AbortController()

  constructor(consumer: Consumer, metric: string, args: LineArguments, clock: ServerClock, reads: HistoryReads) {
    this.#consumer = consumer
    this.metric = metric
    this.#args = args
    this.#clock = clock
    this.#reads = reads
  }

  get state(): ReadonlySignal<HistoryState> {
    return this.#state
  }

  /**
   * Reads a range, in place of the one before. Of one that has moved on, only what is new is read, and nothing while those who draw it
   * have what has come since, unless `isMissing` says that they have not. Never rejects.
   */
  read(range: ColumnRange, isMissing = false): Promise<void> {
    if (!isMissing && this.#isEnough(range)) return Promise.resolve()
    this.#abort.abort()
    const { producer } = this.#args
    // Lists are asked of one server at a time.
    if (producer?.includes('*') === true) {
      this.#state.value = { kind: 'elsewhere' }
      return Promise.resolve()
    }
    // Others may be read before it.
    if (this.#done === undefined) this.#state.value = { kind: 'reading', series: [], samples: 0 }
    const abort = new AbortController()
    this.#abort = abort
    return this.#reads
      .run(() => this.#read(range, abort.signal))
      .catch((error: unknown) => {
        if (abort.signal.aborted) return
        this.#state.value = { kind: 'refused', series: this.#series, reason: reasonOf(error) }
      })
  }

  end(): void {
    this.#abort.abort()
  }

  #isEnough({ from, to }: ColumnRange): boolean {
    if (this.#done === undefined || this.#state.value.kind !== 'read') return false
    const { range, readTo } = this.#done
    const isLater = from >= range.from && Math.abs(to - from - (range.to - range.from)) < 1e-3
    return isLater && range.to > readTo && this.#clock.nowMs / 1000 - readTo < ENOUGH_SECONDS
  }

  async #read(range: ColumnRange, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const readTo = Math.min(range.to, this.#clock.nowMs / 1000)
    const reading: Reading = {
      range,
      series: new Map(),
      losses: new Map(),
      readTo,
      more: 0,
      since: undefined,
      samples: 0,
    }
    const grid = new Columns(range)
    const end = Math.min(COLUMNS, grid.indexOf(reading.readTo) + 1)
    const first = this.#continue(reading, grid)
    const isShort = first > 0
    if (!isShort) this.#state.value = { kind: 'reading', series: this.#series, samples: 0 }
    let isTooMuch = false
    let size = isShort ? COLUMNS : FIRST_COLUMNS
    for (let to = end; to > first && !isTooMuch; ) {
      const from = Math.max(first, to - size)
      const count = await this.#part(reading, { grid, from, to }, signal)
      if (count === undefined) {
        isTooMuch = true
        reading.since = grid.timeOf(to)
      } else {
        const fitting = Math.floor((SAMPLES_OF_PART * (to - from)) / Math.max(1, count))
        size = Math.max(1, Math.min(size * GROWTH, fitting))
        to = from
      }
      if (!isShort) this.#state.value = { kind: 'reading', series: this.#series, samples: reading.samples }
    }
    this.#complete(reading)
  }

  /** Takes over what an earlier reading has of the range, if its columns are the same. Returns the first column to be read. */
  #continue(reading: Reading, grid: Columns): number {
    const before = this.#done
    if (before === undefined) return 0
    const [length, wanted] = [before.range.to - before.range.from, reading.range.to - reading.range.from]
    const moved = ((reading.range.from - before.range.from) / wanted) * COLUMNS
    if (Math.abs(length - wanted) > 1e-3 || Math.abs(moved - Math.round(moved)) > 1e-3 || moved < 0) return 0
    // A window may have grown since.
    const again = AGAIN_SECONDS + (wanted / COLUMNS < ROLLUP_SECONDS ? 0 : wanted / COLUMNS)
    const first = Math.min(COLUMNS, grid.indexOf(Math.min(before.readTo, reading.readTo) - again))
    if (first <= 0) return 0
    reading.more = before.more
    reading.since = before.since
    for (const [key, loss] of before.losses) if (loss.to >= reading.range.from) reading.losses.set(key, loss)
    for (const [key, { metric, name, labels, columns: old }] of before.series) {
      const columns = new Columns(reading.range)
      columns.take(old)
      columns.clear(first, COLUMNS)
      if (!columns.isEmpty) reading.series.set(key, { metric, name, labels, columns })
    }
    return first
  }

  #complete(reading: Reading): void {
    // A series stays the same object: charts hold on to it.
    for (const [key, series] of reading.series) {
      if (series.columns.isEmpty) reading.series.delete(key)
      const known = series.columns.isEmpty ? undefined : this.#done?.series.get(key)
      if (known === undefined) continue
      known.columns = series.columns
      reading.series.set(key, known)
    }
    this.#done = reading
    this.#series = [...reading.series.values()]
    const losses = [...reading.losses.values()]
    this.#state.value = { kind: 'read', series: this.#series, more: reading.more, since: reading.since, losses }
  }

  /** Reads some columns of all series. Returns how many samples they have; undefined if that is too much, and then it has none of them. */
  async #part(
    reading: Reading,
    part: { readonly grid: Columns; readonly from: number; readonly to: number },
    signal: AbortSignal,
  ): Promise<number | undefined> {
    for (let attempt = 1; ; attempt++) {
      const before = reading.samples
      try {
        await this.#pages(reading, part, signal)
        return reading.samples - before
      } catch (error) {
        signal.throwIfAborted()
        const isTooMuch = error instanceof TooMuch
        const isForgotten = error instanceof StatusError && error.status === 'INVALID_ARGUMENT' && attempt < ATTEMPTS
        if (!isTooMuch && !isForgotten) throw error
        for (const { columns } of reading.series.values()) columns.clear(part.from, part.to)
        reading.samples = before
        if (isTooMuch) return undefined
      }
    }
  }

  async #pages(
    reading: Reading,
    { grid, from, to }: { readonly grid: Columns; readonly from: number; readonly to: number },
    signal: AbortSignal,
  ): Promise<void> {
    const first: Arguments = {
      ...this.#producerArgument(),
      ...this.#labelArguments(),
      metric: this.metric,
      from: microseconds(grid.timeOf(from)),
      to: microseconds(grid.timeOf(to)) - 1n,
      // Nothing finer is drawn than a column.
      step_ms: BigInt(Math.floor((grid.timeOf(1) - grid.timeOf(0)) * 1e3)),
      with_losses: true,
    }
    const ask = async (after: string) => {
      const args = after === '' ? first : { ...this.#producerArgument(), after }
      const { plain } = await untilAnswered(this.#consumer, signal, () =>
        this.#consumer.query(SELECT, args, { signal }),
      )
      if (plain === null) throw new Error('it is switched off, or cannot be read now: the log of the server says why')
      return { plain }
    }
    const ignored = new Set<string>()
    for await (const records of pagesOf(ask)) {
      signal.throwIfAborted()
      for (const record of records) {
        if (record['from'] !== undefined) {
          keepLoss(reading.losses, lossOf(record))
          continue
        }
        const series = this.#seriesOf(reading, record, ignored)
        if (series === undefined) continue
        const takeAll = record['ends'] === undefined ? take : takeWindows
        reading.samples += takeAll(series.columns, record, { from, to })
        if (reading.samples > MOST_SAMPLES) throw new TooMuch()
      }
    }
    reading.more = Math.max(reading.more, ignored.size)
  }

  /** The server that is asked, if it is another one. */
  #producerArgument(): LineArguments {
    const { producer } = this.#args
    return producer === undefined || producer === producersOf(this.#consumer).name ? {} : { producer }
  }

  /** Whether a server remembers a series for one below it, which is asked itself. */
  #isOfBelow({ producer: label }: LineArguments): boolean {
    if (label === undefined) return false
    const { producer } = this.#producerArgument()
    const path = producer === undefined ? label : `${producer}/${label}`
    return producersOf(this.#consumer).below.includes(path)
  }

  #labelArguments(): LineArguments {
    const given = Object.entries(this.#args).filter(([name]) => isLabel(name))
    return { ...(isOfOwnMachine(this.metric) && ofTheWhole()), ...Object.fromEntries(given) }
  }

  /** Undefined if it is not wanted, or beyond those that are kept. */
  #seriesOf(reading: Reading, record: PlainRecord, ignored: Set<string>): PastSeries | undefined {
    const labels = record['labels'] as LineArguments
    const key = JSON.stringify([record['tenant'], record['metric'], record['name'], labels])
    const known = reading.series.get(key)
    if (known !== undefined) return known
    if (isWhole(labels, this.#args) || this.#isOfBelow(labels)) return undefined
    if (reading.series.size >= MOST_SERIES) {
      ignored.add(key)
      return undefined
    }
    const columns = new Columns(reading.range)
    const series = { metric: String(record['metric']), name: String(record['name']), labels, columns }
    reading.series.set(key, series)
    return series
  }
}

/** A reading has more samples than it may. */
class TooMuch extends Error {}

/** Whether an argument of a metric is a label of its series. */
export function isLabel(name: string): boolean {
  return !NO_LABELS.has(name)
}

/** A label as Prometheus calls it. */
export function rememberedLabel(name: string): string {
  return name.replace(/[^a-zA-Z0-9_]/g, '_')
}

/**
 * Adds the samples of a record to some columns, in the order of their times with where the series ended. Returns how many they are.
 * A sample where two columns meet is in the one that was asked for, however its place is rounded.
 */
function take(
  columns: Columns,
  record: PlainRecord,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const [times, values, ended] = ['times', 'values', 'ended'].map((name) => record[name] as readonly number[]) as [
    readonly number[],
    readonly number[],
    readonly number[],
  ]
  const columnOf = (seconds: number): number => Math.max(from, Math.min(to - 1, columns.indexOf(seconds)))
  let next = 0
  const endUpTo = (time: number): void => {
    for (; next < ended.length && ended[next]! <= time; next++) {
      const seconds = ended[next]! / 1e6
      columns.end(seconds, columnOf(seconds))
    }
  }
  for (const [index, time] of times.entries()) {
    endUpTo(time)
    columns.add(time / 1e6, values[index]!, columnOf(time / 1e6))
  }
  endUpTo(Number.POSITIVE_INFINITY)
  return times.length
}

/** Adds the windows of a record whose place is in some columns. Returns how many samples that is worth. */
function takeWindows(
  columns: Columns,
  record: PlainRecord,
  { from, to }: { readonly from: number; readonly to: number },
): number {
  const of = (name: string): readonly number[] => record[name] as readonly number[]
  const [min, max, sum, count] = [of('min'), of('max'), of('sum'), of('count')]
  const [first, firstTimes, last, lastTimes] = [of('first'), of('first_times'), of('last'), of('last_times')]
  const resets = of('resets')
  for (const at of min.keys()) {
    const window: SampleWindow = {
      min: min[at]!,
      max: max[at]!,
      sum: sum[at]!,
      count: count[at]!,
      first: first[at]!,
      firstTime: firstTimes[at]! / 1e6,
      last: last[at]!,
      lastTime: lastTimes[at]! / 1e6,
      resets: resets[at]!,
    }
    // One that two parts have is in the columns of one of them.
    const column = columns.indexOf(middleOf(window))
    if (column >= from && column < to) columns.addWindow(window, column)
  }
  return min.length * SAMPLES_OF_WINDOW
}

function microseconds(seconds: number): bigint {
  return BigInt(Math.round(Math.max(0, seconds) * 1e6))
}
