/** Windows of several rollups: the rollups of a series are added in order, and those of one window become one row. */
import type { ChunkColumns } from './codec/chunk.ts'
import { ROLLUP_COLUMNS } from './rollup.ts'
import { newColumns } from './run-cursor.ts'
import { type HistoryWindows, ROLLUP_MS } from './store.ts'

const SUM = 2

/** The length of windows that are as long as this, or as little shorter as can be. */
export function windowMs(stepMs: number): number {
  return Math.max(1, Math.floor(stepMs / ROLLUP_MS)) * ROLLUP_MS
}

export class WindowBuilder {
  readonly #stepMs: number
  /** Rows of windows; there is room for more. */
  #windows = newColumns(ROLLUP_COLUMNS, 0)
  #length = 0
  /** Rollups that are windows as they are. */
  readonly #whole: ChunkColumns[] = []
  /** What the last sum has lost by rounding (Kahan, Neumaier). */
  #rest = 0

  /** `stepMs`: a whole number of rollups. */
  constructor(stepMs: number) {
    this.#stepMs = stepMs
  }

  /** Adds rollups, each later than those before. */
  add(rollups: ChunkColumns): void {
    if (rollups.times.length === 0) return
    if (this.#stepMs === ROLLUP_MS) this.#whole.push(rollups)
    else this.#addEach(rollups)
  }

  /** Undefined if there are none. */
  finish(): HistoryWindows | undefined {
    const [first] = this.#whole
    if (first !== undefined) return windowsOf(this.#whole.length === 1 ? first : concatenated(this.#whole), ROLLUP_MS)
    if (this.#length === 0) return undefined
    this.#windows.values[SUM]![this.#length - 1]! += this.#rest
    return windowsOf(this.#rows(this.#length), this.#stepMs)
  }

  /** The first rows, in columns of so many. */
  #rows(room: number): ChunkColumns {
    const rows = newColumns(ROLLUP_COLUMNS, room)
    copyRows(this.#windows, this.#length, rows, 0)
    return rows
  }

  #addEach({ times, values }: ChunkColumns): void {
    const span = times.at(-1)! - times[0]!
    const most = this.#length + Math.min(times.length, Math.ceil(span / this.#stepMs) + 1)
    if (most > this.#windows.times.length) this.#windows = this.#rows(Math.max(most, 2 * this.#length))
    const { times: ends, values: windows } = this.#windows
    // Most of a query over months is spent here, so that each column has a name of its own.
    const [min, max, sum, count, first, firstDistance, last, lastDistance, resets] = named(values)
    const [mins, maxes, sums, counts, firsts, firstDistances, lasts, lastDistances, allResets] = named(windows)
    let at = this.#length - 1
    let rest = this.#rest
    for (let row = 0; row < times.length; row++) {
      const time = times[row]!
      if (at < 0 || time > ends[at]!) {
        if (at >= 0) sums[at]! += rest
        rest = 0
        at++
        ends[at] = Math.ceil(time / this.#stepMs) * this.#stepMs
        mins[at] = min[row]!
        maxes[at] = max[row]!
        sums[at] = sum[row]!
        counts[at] = count[row]!
        firsts[at] = first[row]!
        firstDistances[at] = firstDistance[row]! + ends[at]! - time
        lasts[at] = last[row]!
        lastDistances[at] = lastDistance[row]! + ends[at]! - time
        allResets[at] = resets[row]!
        continue
      }
      if (min[row]! < mins[at]! || Number.isNaN(mins[at])) mins[at] = min[row]!
      if (max[row]! > maxes[at]! || Number.isNaN(maxes[at])) maxes[at] = max[row]!
      allResets[at]! += resets[row]! + (first[row]! < lasts[at]! ? lasts[at]! : 0)
      counts[at]! += count[row]!
      lasts[at] = last[row]!
      lastDistances[at] = lastDistance[row]! + ends[at]! - time
      const [before, value] = [sums[at]!, sum[row]!]
      const both = before + value
      if (Number.isFinite(both))
        rest += Math.abs(before) >= Math.abs(value) ? before - both + value : value - both + before
      else rest = 0
      sums[at] = both
    }
    this.#length = at + 1
    this.#rest = rest
  }
}

/** Columns in the order of `ROLLUP_COLUMNS`. */
function named(columns: readonly Float64Array[]) {
  return columns as unknown as readonly [
    min: Float64Array,
    max: Float64Array,
    sum: Float64Array,
    count: Float64Array,
    first: Float64Array,
    firstDistance: Float64Array,
    last: Float64Array,
    lastDistance: Float64Array,
    resets: Float64Array,
  ]
}

/** Copies the first rows to where they begin in others. */
function copyRows(from: ChunkColumns, length: number, to: ChunkColumns, at: number): void {
  to.times.set(from.times.subarray(0, length), at)
  for (const [index, column] of from.values.entries()) to.values[index]!.set(column.subarray(0, length), at)
}

function concatenated(parts: readonly ChunkColumns[]): ChunkColumns {
  const length = parts.reduce((sum, { times }) => sum + times.length, 0)
  const joined = newColumns(ROLLUP_COLUMNS, length)
  let at = 0
  for (const part of parts) {
    copyRows(part, part.times.length, joined, at)
    at += part.times.length
  }
  return joined
}

/** Columns of rollups as a reader has them. */
export function windowsOf({ times, values }: ChunkColumns, stepMs: number): HistoryWindows {
  const before = (distances: Float64Array): Float64Array => distances.map((distance, index) => times[index]! - distance)
  const [min, max, sum, count, first, firstDistance, last, lastDistance, resets] = named(values)
  return {
    stepMs,
    ends: times,
    min,
    max,
    sum,
    count,
    first,
    firstTimes: before(firstDistance),
    last,
    lastTimes: before(lastDistance),
    resets,
  }
}
