/**
 * A series over a range of time as a fixed number of columns, however many samples it has: of those of a column the smallest, the
 * largest, the mean, the first and the last are kept, and what they grow by. So a year takes as much memory as a minute.
 */
import type { Cell, Samples } from './samples.ts'

/** Columns that a chart shows: more than most have pixels for. A tenth of them is a whole number, by which charts move on. */
const SHOWN_COLUMNS = 480
/** Columns before them, out of sight, so that lines come from where they were. */
export const MARGIN = 40
export const COLUMNS = SHOWN_COLUMNS + MARGIN

/** What is kept of the samples of one column. */
const COUNT = 0
const SUM = 1
const LEAST = 2
const MOST = 3
const FIRST_TIME = 4
const FIRST = 5
const LAST_TIME = 6
const LAST = 7
/** The growth from sample to sample, where nothing was set back, and the seconds that it took. */
const GROWN = 8
const GROWN_SECONDS = 9
const LEAST_RATE = 10
const MOST_RATE = 11
/** When the series ended last; 0 if it did not. */
const ENDED = 12
const FIELDS = 13

/** A line ends where nothing comes for so many times as long as is usual for the series. */
const LONG = 8

/** What samples of a span of time come to; times are seconds since 1970. */
export interface SampleWindow {
  readonly min: number
  readonly max: number
  readonly sum: number
  readonly count: number
  readonly first: number
  readonly firstTime: number
  readonly last: number
  readonly lastTime: number
  /** What a counter has lost by starting again. */
  readonly resets: number
}

/** Seconds since 1970. */
export interface ColumnRange {
  readonly from: number
  readonly to: number
}

/** The columns of a chart that shows a range. */
export function withMargin({ from, to }: ColumnRange): ColumnRange {
  return { from: from - ((to - from) * MARGIN) / SHOWN_COLUMNS, to }
}

/** What a chart draws of a series: two cells for each column, of which the first is a hole or nothing. */
export interface ColumnCells {
  readonly line: Cell[]
  readonly low: Cell[]
  readonly high: Cell[]
}

export class Columns {
  #from: number
  #width: number
  readonly #cells = new Float64Array(COLUMNS * FIELDS)

  constructor(range: ColumnRange) {
    this.#from = range.from
    this.#width = (range.to - range.from) / COLUMNS
  }

  /** Forgets everything, for another range. */
  reset({ from, to }: ColumnRange): void {
    this.#from = from
    this.#width = (to - from) / COLUMNS
    this.#cells.fill(0)
  }

  /** The column of a time, which may be none of them. */
  indexOf(time: number): number {
    return Math.floor((time - this.#from) / this.#width)
  }

  /** When a column begins. */
  timeOf(column: number): number {
    return this.#from + column * this.#width
  }

  /** Adds a sample; within a column they are added in the order of their times. Others than those of the range are left out. */
  add(time: number, value: number, column = this.indexOf(time)): void {
    if (column < 0 || column >= COLUMNS) return
    const cells = this.#cells
    const at = column * FIELDS
    if (!Number.isFinite(value)) {
      cells[at + ENDED] = time
      return
    }
    if (cells[at + COUNT] === 0) {
      cells[at + LEAST] = cells[at + MOST] = cells[at + FIRST] = value
      cells[at + FIRST_TIME] = time
      cells[at + LEAST_RATE] = Number.POSITIVE_INFINITY
      cells[at + MOST_RATE] = Number.NEGATIVE_INFINITY
    } else {
      const before = cells[at + LAST_TIME] as number
      if (time <= before) return
      if (value < (cells[at + LEAST] as number)) cells[at + LEAST] = value
      if (value > (cells[at + MOST] as number)) cells[at + MOST] = value
      if ((cells[at + ENDED] as number) <= before) this.#grew(at, value - (cells[at + LAST] as number), time - before)
    }
    cells[at + COUNT]!++
    cells[at + SUM]! += value
    cells[at + LAST_TIME] = time
    cells[at + LAST] = value
  }

  /** Adds a window, as `add` does a sample. It is in one column: that of the middle of its samples. */
  addWindow(window: SampleWindow, column = this.indexOf(middleOf(window))): void {
    const { min, max, count, first, firstTime, last, lastTime } = window
    // Of infinite values there is no mean, and of what is no number nothing at all.
    const sum = Number.isFinite(window.sum) ? window.sum : ((min + max) / 2) * count
    if (column < 0 || column >= COLUMNS || ![sum, first, last].every(Number.isFinite)) return
    const cells = this.#cells
    const at = column * FIELDS
    if (cells[at + COUNT] === 0) this.add(firstTime, first, column)
    else {
      const before = cells[at + LAST_TIME] as number
      if (firstTime <= before) return
      if ((cells[at + ENDED] as number) <= before) {
        this.#grew(at, first - (cells[at + LAST] as number), firstTime - before)
      }
      cells[at + COUNT]!++
      cells[at + SUM]! += first
    }
    this.#grew(at, last - first + window.resets, lastTime - firstTime)
    cells[at + COUNT]! += count - 1
    cells[at + SUM]! += sum - first
    cells[at + LEAST] = Math.min(cells[at + LEAST]!, min)
    cells[at + MOST] = Math.max(cells[at + MOST]!, max)
    cells[at + LAST_TIME] = lastTime
    cells[at + LAST] = last
  }

  /** The series ended: no line leads from what was before to what comes after. */
  end(time: number, column?: number): void {
    this.add(time, Number.NaN, column)
  }

  /** Forgets some columns. */
  clear(first: number, end: number): void {
    this.#cells.fill(0, first * FIELDS, end * FIELDS)
  }

  /** Takes in what another range has of this one, column by column, after what is here. */
  take(other: Columns): void {
    for (let column = 0; column < COLUMNS; column++) {
      const from = column * FIELDS
      const isEmpty = other.#cells[from + COUNT] === 0
      if (isEmpty && other.#cells[from + ENDED] === 0) continue
      const into = this.indexOf(other.timeOf(column + 0.5))
      if (into < 0 || into >= COLUMNS) continue
      const at = into * FIELDS
      if (this.#cells[at + COUNT] === 0) this.#copy(at, other, from)
      else this.#join(at, other, from)
    }
  }

  /** Adds samples from elsewhere, such as those that have come since: of each column the side stays that has more of them. */
  overlay(samples: Samples, scratch: Columns): void {
    scratch.reset({ from: this.#from, to: this.timeOf(COLUMNS) })
    const end = samples.indexOf(this.timeOf(COLUMNS))
    for (let index = samples.indexOf(this.#from); index < end; index++) {
      scratch.add(samples.timeAt(index), samples.valueAt(index))
    }
    for (let at = 0; at < this.#cells.length; at += FIELDS) {
      if ((scratch.#cells[at + COUNT] as number) > (this.#cells[at + COUNT] as number)) this.#copy(at, scratch, at)
      else this.#noteEnd(at, scratch, at)
    }
  }

  get isEmpty(): boolean {
    for (let at = 0; at < this.#cells.length; at += FIELDS) if (this.#cells[at + COUNT] !== 0) return false
    return true
  }

  /** The last value, or what it has grown by per second; undefined if there is none. */
  last(isRate: boolean): number | undefined {
    const cells = this.#cells
    for (let at = cells.length - FIELDS; at >= 0; at -= FIELDS) {
      if (cells[at + COUNT] === 0) continue
      if (!isRate) return cells[at + LAST]
      const seconds = cells[at + GROWN_SECONDS] as number
      if (seconds > 0) return (cells[at + GROWN] as number) / seconds
    }
    return undefined
  }

  /** Fills cells with the mean of each column, and with its smallest and largest value, or with those of its growth per second. */
  draw({ line, low, high }: ColumnCells, isRate: boolean): number {
    for (const cells of [line, low, high]) {
      cells.length = 2 * COLUMNS
      cells.fill(undefined)
    }
    const longest = Math.max(this.#width, LONG * this.#usual())
    let [before, ended, drawn] = [-1, 0, 0]
    for (let column = 0; column < COLUMNS; column++) {
      const at = column * FIELDS
      if (this.#cells[at + COUNT] === 0) {
        ended = Math.max(ended, this.#cells[at + ENDED] as number)
        continue
      }
      const isApart = before >= 0 && this.#isApart(before, at, ended, longest)
      if (isApart) for (const cells of [line, low, high]) cells.fill(null, (2 * before) / FIELDS + 2, 2 * column + 1)
      const place = 2 * column + 1
      if (isRate) this.#drawRate(at, before < 0 || isApart ? -1 : before, place, { line, low, high })
      else {
        line[place] = (this.#cells[at + SUM] as number) / (this.#cells[at + COUNT] as number)
        low[place] = this.#cells[at + LEAST] as number
        high[place] = this.#cells[at + MOST] as number
      }
      drawn++
      before = at
      ended = this.#cells[at + ENDED] as number
    }
    return drawn
  }

  #drawRate(at: number, before: number, place: number, { line, low, high }: ColumnCells): void {
    const cells = this.#cells
    let [grown, seconds] = [cells[at + GROWN] as number, cells[at + GROWN_SECONDS] as number]
    let [least, most] = [cells[at + LEAST_RATE] as number, cells[at + MOST_RATE] as number]
    if (before >= 0) {
      const growth = (cells[at + FIRST] as number) - (cells[before + LAST] as number)
      const took = (cells[at + FIRST_TIME] as number) - (cells[before + LAST_TIME] as number)
      if (growth >= 0 && took > 0) {
        grown += growth
        seconds += took
        least = Math.min(least, growth / took)
        most = Math.max(most, growth / took)
      }
    }
    // Of the first sample of all no growth is known. Where it was set back there is a hole.
    if (seconds === 0) {
      if (before >= 0) line[place] = low[place] = high[place] = null
      return
    }
    line[place] = grown / seconds
    low[place] = least
    high[place] = most
  }

  /** Whether something lies between two columns with samples that no line leads over. */
  #isApart(before: number, at: number, ended: number, longest: number): boolean {
    const [last, first] = [this.#cells[before + LAST_TIME] as number, this.#cells[at + FIRST_TIME] as number]
    return (ended > last && ended < first) || first - last > longest
  }

  /** Seconds from a sample to the next one, in the mean. */
  #usual(): number {
    let [count, first, last] = [0, 0, 0]
    for (let at = 0; at < this.#cells.length; at += FIELDS) {
      if (this.#cells[at + COUNT] === 0) continue
      if (count === 0) first = this.#cells[at + FIRST_TIME] as number
      last = this.#cells[at + LAST_TIME] as number
      count += this.#cells[at + COUNT] as number
    }
    return count < 2 ? 0 : (last - first) / (count - 1)
  }

  #grew(at: number, growth: number, seconds: number): void {
    const cells = this.#cells
    if (growth < 0 || seconds <= 0) return
    cells[at + GROWN]! += growth
    cells[at + GROWN_SECONDS]! += seconds
    cells[at + LEAST_RATE] = Math.min(cells[at + LEAST_RATE] as number, growth / seconds)
    cells[at + MOST_RATE] = Math.max(cells[at + MOST_RATE] as number, growth / seconds)
  }

  #copy(at: number, other: Columns, from: number): void {
    const ended = Math.max(this.#cells[at + ENDED] as number, other.#cells[from + ENDED] as number)
    this.#cells.set(other.#cells.subarray(from, from + FIELDS), at)
    this.#cells[at + ENDED] = ended
  }

  #noteEnd(at: number, other: Columns, from: number): void {
    this.#cells[at + ENDED] = Math.max(this.#cells[at + ENDED] as number, other.#cells[from + ENDED] as number)
  }

  #join(at: number, other: Columns, from: number): void {
    const [cells, more] = [this.#cells, other.#cells]
    if (more[from + COUNT] === 0) {
      this.#noteEnd(at, other, from)
      return
    }
    const before = cells[at + LAST_TIME] as number
    if ((cells[at + ENDED] as number) <= before) {
      this.#grew(at, more[from + FIRST]! - cells[at + LAST]!, more[from + FIRST_TIME]! - before)
    }
    for (const field of [COUNT, SUM, GROWN, GROWN_SECONDS]) cells[at + field]! += more[from + field]!
    for (const field of [LEAST, LEAST_RATE]) cells[at + field] = Math.min(cells[at + field]!, more[from + field]!)
    for (const field of [MOST, MOST_RATE]) cells[at + field] = Math.max(cells[at + field]!, more[from + field]!)
    for (const field of [LAST_TIME, LAST]) cells[at + field] = more[from + field]!
    this.#noteEnd(at, other, from)
  }
}

export function middleOf({ firstTime, lastTime }: SampleWindow): number {
  return (firstTime + lastTime) / 2
}

/** The times of the cells that `draw` fills. */
export function columnTimes({ from, to }: ColumnRange): number[] {
  const width = (to - from) / COLUMNS
  return Array.from(
    { length: 2 * COLUMNS },
    (_, cell) => from + (cell % 2 === 0 ? cell / 2 : (cell - 1) / 2 + 0.5) * width,
  )
}
