/**
 * The samples of one series, packed: times in seconds since 1970 and values, ascending by time, NaN where a hole begins. When there
 * is no more room, older samples give way to their smallest and largest neighbours, so that peaks stay.
 */

const FIRST_ROOM = 64
/** Of so many neighbours two stay. */
const THINNED = 4

export class Samples {
  #times = new Float64Array(FIRST_ROOM)
  #values = new Float64Array(FIRST_ROOM)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Of the newest sample; 0 if there is none. */
  get lastTime(): number {
    return this.#length === 0 ? 0 : (this.#times[this.#length - 1] as number)
  }

  /** Undefined if there is none, or if a hole is at the end. */
  get lastValue(): number | undefined {
    const value = this.#length === 0 ? Number.NaN : (this.#values[this.#length - 1] as number)
    return Number.isNaN(value) ? undefined : value
  }

  timeAt(index: number): number {
    return this.#times[index] as number
  }

  valueAt(index: number): number {
    return this.#values[index] as number
  }

  /** The index of the first sample at this time or later. */
  indexOf(time: number): number {
    let [low, high] = [0, this.#length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#times[middle] as number) < time) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Adds a sample that is newer than all others; another one is left out. Keeps at most `room` samples, and none before `since`. */
  push(time: number, value: number, room: number, since: number): boolean {
    if (time <= this.lastTime) return false
    if (this.#length >= this.#times.length) this.#makeRoom(room, since)
    this.#times[this.#length] = time
    this.#values[this.#length++] = drawable(value)
    return true
  }

  /** Drops the samples at this time and later. */
  dropFrom(time: number): void {
    this.#length = this.indexOf(time)
  }

  /** Begins a hole after the newest sample. */
  cut(room: number): void {
    if (this.lastValue !== undefined) this.push(this.lastTime + 0.001, Number.NaN, room, 0)
  }

  /** Adds samples from elsewhere, ascending. A hole that they reach over is none. */
  merge(times: ArrayLike<number>, values: ArrayLike<number>): void {
    const all = this.#length + times.length
    const mergedTimes = new Float64Array(Math.max(FIRST_ROOM, all))
    const mergedValues = new Float64Array(mergedTimes.length)
    let [mine, other, length] = [0, 0, 0]
    while (mine < this.#length || other < times.length) {
      const myTime = mine < this.#length ? (this.#times[mine] as number) : Number.POSITIVE_INFINITY
      const otherTime = other < times.length ? (times[other] as number) : Number.POSITIVE_INFINITY
      const isMine = myTime <= otherTime
      const value = isMine ? (this.#values[mine] as number) : drawable(values[other] as number)
      if (isMine && myTime === otherTime) other++
      if (isMine) mine++
      else other++
      const isBridged = isMine && Number.isNaN(value) && other > 0 && other < times.length
      if (isBridged || (length > 0 && Math.min(myTime, otherTime) <= (mergedTimes[length - 1] as number))) continue
      mergedTimes[length] = Math.min(myTime, otherTime)
      mergedValues[length++] = value
    }
    this.#times = mergedTimes
    this.#values = mergedValues
    this.#length = length
  }

  #makeRoom(room: number, since: number): void {
    const old = this.indexOf(since)
    if (old > 0) this.#drop(old)
    if (this.#length < this.#times.length * 0.75) return
    if (this.#times.length < room) {
      const size = Math.min(room, this.#times.length * 2)
      this.#times = grown(this.#times, size)
      this.#values = grown(this.#values, size)
      return
    }
    this.#thin()
    if (this.#length > this.#times.length * 0.9) this.#drop(this.#length >> 2)
  }

  #drop(count: number): void {
    this.#times.copyWithin(0, count, this.#length)
    this.#values.copyWithin(0, count, this.#length)
    this.#length -= count
  }

  /** Halves the older half. */
  #thin(): void {
    const half = this.#length >> 1
    let to = 0
    let from = 0
    for (; from + THINNED <= half; from += THINNED) {
      let [least, most, hasHole] = [from, from, false]
      for (let index = from; index < from + THINNED; index++) {
        const value = this.#values[index] as number
        if (Number.isNaN(value)) hasHole = true
        if (value < (this.#values[least] as number)) least = index
        if (value > (this.#values[most] as number)) most = index
      }
      if (hasHole) for (let index = from; index < from + THINNED; index++) this.#move(index, to++)
      else {
        this.#move(Math.min(least, most), to++)
        if (least !== most) this.#move(Math.max(least, most), to++)
      }
    }
    const rest = this.#length - from
    this.#times.copyWithin(to, from, this.#length)
    this.#values.copyWithin(to, from, this.#length)
    this.#length = to + rest
  }

  #move(from: number, to: number): void {
    this.#times[to] = this.#times[from] as number
    this.#values[to] = this.#values[from] as number
  }
}

/** What is no finite number has no place in a chart. */
function drawable(value: number): number {
  return Number.isFinite(value) ? value : Number.NaN
}

/** Undefined: no sample; null: a hole. */
export type Cell = number | null | undefined

/** A range of time, in seconds, as so many columns of pixels. */
export interface TimeWindow {
  readonly from: number
  readonly to: number
  readonly columns: number
}

/** The times of the cells that `decimate` fills: one at each end, and two for each column. */
export function cellTimes({ from, to, columns }: TimeWindow): number[] {
  const width = (to - from) / columns
  const times = [from]
  for (let column = 0; column < columns; column++) {
    times.push(from + (column + 0.25) * width, from + (column + 0.75) * width)
  }
  times.push(to)
  return times
}

/**
 * Fills the cells of a window with the smallest and the largest value of each column, in the order in which they came, so that peaks
 * stay. At both ends is what a line to the sample outside would have there. With `isRate`, values are what they grow by per second;
 * a counter that was set back leaves a hole. Returns how many samples there were.
 */
export function decimate(samples: Samples, window: TimeWindow, isRate: boolean, cells: Cell[]): number {
  const { from, to, columns } = window
  cells.length = 2 * columns + 2
  cells.fill(undefined)
  const valueAt = isRate ? (index: number) => rateAt(samples, index) : (index: number) => samples.valueAt(index)
  const first = samples.indexOf(from)
  const end = samples.indexOf(to)
  const perSecond = columns / (to - from)
  let [column, least, most] = [-1, 0, 0]
  let [mostIsLater, hasHole, endsInHole, isEmpty] = [false, false, false, true]
  // What follows a hole is hole up to the next value.
  let isInHole = first > 0 && Number.isNaN(samples.valueAt(first - 1))
  let next = 1
  const close = (): void => {
    if (column < 0) return
    const at = 1 + 2 * column
    if (isInHole) cells.fill(null, next, at)
    if (isEmpty || hasHole) {
      cells[at] = isEmpty || !endsInHole ? null : most
      cells[at + 1] = isEmpty || endsInHole ? null : most
    } else {
      cells[at] = mostIsLater ? least : most
      if (least !== most) cells[at + 1] = mostIsLater ? most : least
    }
    isInHole = endsInHole
    next = at + 2
  }
  // Of the first sample of all no growth is known.
  for (let index = isRate ? Math.max(1, first) : first; index < end; index++) {
    const here = Math.min(columns - 1, Math.floor((samples.timeAt(index) - from) * perSecond))
    if (here !== column) {
      close()
      column = here
      hasHole = false
      isEmpty = true
    }
    const value = valueAt(index)
    endsInHole = Number.isNaN(value)
    if (endsInHole) hasHole = true
    else if (isEmpty) {
      least = most = value
      isEmpty = false
    } else if (value > most) {
      most = value
      mostIsLater = true
    } else if (value < least) {
      least = value
      mostIsLater = false
    }
  }
  close()
  if (isInHole) cells.fill(null, next)
  cells[0] = between(samples, first, from, valueAt)
  cells[cells.length - 1] = between(samples, end, to, valueAt)
  return end - first
}

/** What a line between the sample before `index` and that one has at a time. */
function between(samples: Samples, index: number, time: number, valueAt: (index: number) => number): Cell {
  if (index === 0 || index >= samples.length) return undefined
  const [before, after] = [valueAt(index - 1), valueAt(index)]
  if (Number.isNaN(before) || Number.isNaN(after)) return undefined
  const [start, end] = [samples.timeAt(index - 1), samples.timeAt(index)]
  return before + ((after - before) * (time - start)) / (end - start)
}

/** The growth per second up to a sample; NaN if it is not known. */
export function rateAt(samples: Samples, index: number): number {
  if (index === 0) return Number.NaN
  const growth = samples.valueAt(index) - samples.valueAt(index - 1)
  return growth < 0 ? Number.NaN : growth / (samples.timeAt(index) - samples.timeAt(index - 1))
}

/** The last value, or what it has grown by per second; undefined if there is none, or if a hole is at the end. */
export function lastShown(samples: Samples, isRate: boolean): number | undefined {
  if (!isRate) return samples.lastValue
  const rate = samples.length === 0 ? Number.NaN : rateAt(samples, samples.length - 1)
  return Number.isNaN(rate) ? undefined : rate
}

function grown(array: Float64Array, size: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(size)
  larger.set(array)
  return larger
}
