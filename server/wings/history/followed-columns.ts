/**
 * The samples of a selection as they were read, and what has come of it since: columns in memory that grow at their end, so that what
 * was given out of them stays as it is. All series have room for as many samples.
 */
import type { HistorySeries } from '../../../storage/history/store.ts'
import type { SelectedSamples } from './messages.ts'

/** What is wanted of a selection; both ends are included. */
export interface FollowedRange {
  readonly fromMs: number
  readonly toMs: number
  /** Before that the last two samples of each series are enough; undefined if all are wanted. */
  readonly twoBeforeMs?: number | undefined
}

/** What was wanted at times that are not as late stays for so long, since others may ask for the same a little later. */
const KEPT_MS = 60_000
/** Room for samples that come, at least, and as a part of those that there are. */
const [LEAST_ROOM, ROOM_SHARE] = [4, 0.5]
/** The words of a number. */
const WORDS = 2

export class FollowedColumns {
  readonly #series: readonly HistorySeries[]
  /** Ascending. */
  readonly #places: Float64Array
  readonly #lengths: Uint32Array
  #room = 0
  #times = new Float64Array(0)
  #values = new Float64Array(0)
  /** Of the values, since a stale marker is a NaN that a variable may lose. */
  #words = new Uint32Array(0)
  /** Whether nothing of the columns was given out: they were made for what is added now. */
  #isOwn = false
  /** From when on everything is there. */
  #fromMs: number
  /** From when on it is wanted, and how many samples before that. */
  #wantedMs: number
  readonly #before: number

  /** `read`: all that was read of a range, by place. Each has a place. */
  constructor(read: readonly SelectedSamples[], range: FollowedRange) {
    this.#series = read.map(({ series }) => series)
    this.#places = Float64Array.from(read, ({ place = 0 }) => place)
    this.#lengths = Uint32Array.from(read, ({ times }) => times.length)
    this.#before = range.twoBeforeMs === undefined ? 0 : 2
    this.#fromMs = range.fromMs
    this.#wantedMs = range.twoBeforeMs ?? range.fromMs
    this.#move((at) => read[at] as SelectedSamples, this.#wantedMs)
  }

  /** How many numbers there are in memory. */
  get size(): number {
    return this.#times.length + this.#values.length
  }

  get seriesCount(): number {
    return this.#series.length
  }

  /** Whether all that is wanted of a range is there. */
  has({ fromMs, twoBeforeMs = fromMs }: FollowedRange): boolean {
    return twoBeforeMs >= this.#fromMs
  }

  /** From now on what is wanted of this range is kept, and earlier samples go when there is no room for more. */
  want({ fromMs, twoBeforeMs = fromMs }: FollowedRange): void {
    this.#wantedMs = twoBeforeMs
  }

  /**
   * Adds samples `from` up to, and without, `to` of columns of places, times and values. Returns false if one is of a series that was not
   * read: then everything has to be read anew.
   */
  add(columns: Float64Array, from: number, to: number): boolean {
    const count = columns.length / 3
    const words = new Uint32Array(columns.buffer, columns.byteOffset, WORDS * columns.length)
    let at = -1
    this.#isOwn = false
    for (let index = from; index < to; index++) {
      const place = columns[index]!
      if (at < 0 || this.#places[at] !== place) at = this.#find(place)
      if (at < 0) return false
      const value = WORDS * (2 * count + index)
      this.#put(at, columns[count + index]!, words[value]!, words[value + 1]!)
    }
    return true
  }

  /** The series that have samples in a range, by place, as they are now: what comes or goes meanwhile changes nothing of that. */
  read(range: FollowedRange): Generator<SelectedSamples, void, void> {
    const [room, lengths, times, values] = [this.#room, this.#lengths.slice(), this.#times, this.#values]
    return inRange(this.#series, { room, lengths, times, values }, range)
  }

  #find(place: number): number {
    let [from, to] = [0, this.#places.length]
    while (from < to) {
      const middle = (from + to) >>> 1
      if (this.#places[middle]! < place) from = middle + 1
      else to = middle
    }
    return this.#places[from] === place ? from : -1
  }

  #put(at: number, ms: number, low: number, high: number): void {
    // Nobody is given what is before that.
    if (this.#before === 0 && ms < this.#fromMs) return
    let end = at * this.#room + this.#lengths[at]!
    const isLast = this.#lengths[at] === 0 || ms > this.#times[end - 1]!
    const hasRoom = this.#lengths[at]! < this.#room
    if (isLast && hasRoom) {
      this.#lengths[at]!++
    } else {
      // It came late, or there is no room: what was given out stays as it is.
      if (!hasRoom || !this.#isOwn)
        this.#move((index) => this.#columnsOf(index), Math.max(this.#fromMs, this.#wantedMs - KEPT_MS))
      this.#isOwn = true
      end = firstFrom(this.#times, at * this.#room, this.#lengths[at]!, ms)
      const after = at * this.#room + this.#lengths[at]!
      if (end === after || this.#times[end] !== ms) {
        this.#times.copyWithin(end + 1, end, after)
        this.#values.copyWithin(end + 1, end, after)
        this.#lengths[at]!++
      }
    }
    this.#times[end] = ms
    this.#words[WORDS * end] = low
    this.#words[WORDS * end + 1] = high
  }

  #columnsOf(at: number): Pick<SelectedSamples, 'times' | 'values'> {
    const first = at * this.#room
    const end = first + this.#lengths[at]!
    return { times: this.#times.subarray(first, end), values: this.#values.subarray(first, end) }
  }

  /** Makes new columns with room, of all samples from a time on, and of so many before. */
  #move(columnsOf: (at: number) => Pick<SelectedSamples, 'times' | 'values'>, fromMs: number): void {
    const columns = this.#series.map((_, at) => {
      const { times, values } = columnsOf(at)
      let from = 0
      while (from < times.length && times[from]! < fromMs) from++
      const kept = Math.max(0, from - this.#before)
      return { times: times.subarray(kept), values: values.subarray(kept) }
    })
    const most = columns.reduce((longest, { times }) => Math.max(longest, times.length), 0)
    this.#room = most + Math.max(LEAST_ROOM, Math.ceil(ROOM_SHARE * most))
    this.#times = new Float64Array(this.#room * columns.length)
    this.#values = new Float64Array(this.#room * columns.length)
    this.#words = new Uint32Array(this.#values.buffer)
    for (const [at, { times, values }] of columns.entries()) {
      this.#times.set(times, at * this.#room)
      this.#values.set(values, at * this.#room)
      this.#lengths[at] = times.length
    }
    this.#fromMs = fromMs
  }
}

/** What columns have at a moment. */
interface State {
  readonly room: number
  readonly lengths: Uint32Array
  readonly times: Float64Array
  readonly values: Float64Array
}

function* inRange(
  series: readonly HistorySeries[],
  { room, lengths, times, values }: State,
  { fromMs, toMs }: FollowedRange,
): Generator<SelectedSamples, void, void> {
  for (const [at, one] of series.entries()) {
    const from = firstFrom(times, at * room, lengths[at]!, fromMs)
    const to = firstFrom(times, at * room, lengths[at]!, toMs + 1)
    if (from < to) yield { series: one, times: times.subarray(from, to), values: values.subarray(from, to) }
  }
}

/** The first of so many times, from an index on, that is not before a time. The last ones are wanted most. */
function firstFrom(times: Float64Array, first: number, count: number, ms: number): number {
  let [from, to] = [first, first + count]
  if (from === to || times[to - 1]! < ms) return to
  if (times[from]! >= ms) return from
  while (from < to) {
    const middle = (from + to) >>> 1
    if (times[middle]! < ms) from = middle + 1
    else to = middle
  }
  return from
}
