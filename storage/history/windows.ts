/** Windows of several rollups: the rollups of a series are added in order, and those of one window become one row. */
import type { ChunkColumns } from './codec/chunk.ts'
import { ROLLUP_COLUMNS } from './rollup.ts'
import { newColumns } from './run-cursor.ts'
import { type HistoryWindows, ROLLUP_MS } from './store.ts'

const [MIN, MAX, SUM, COUNT, FIRST, FIRST_DISTANCE, LAST, LAST_DISTANCE, RESETS] = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const

/** The length of windows that are as long as this, or as little shorter as can be. */
export function windowMs(stepMs: number): number {
  return Math.max(1, Math.floor(stepMs / ROLLUP_MS)) * ROLLUP_MS
}

export class WindowBuilder {
  readonly #stepMs: number
  readonly #ends: number[] = []
  readonly #columns: readonly number[][] = Array.from({ length: ROLLUP_COLUMNS }, () => [])
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
    if (this.#stepMs !== ROLLUP_MS) this.#addEach(rollups)
    else if (rollups.times.length > 0) this.#whole.push(rollups)
  }

  /** Undefined if there are none. */
  finish(): HistoryWindows | undefined {
    const [first] = this.#whole
    if (first !== undefined) return windowsOf(this.#whole.length === 1 ? first : concatenated(this.#whole), ROLLUP_MS)
    this.#round()
    if (this.#ends.length === 0) return undefined
    const columns = {
      times: Float64Array.from(this.#ends),
      values: this.#columns.map((each) => Float64Array.from(each)),
    }
    return windowsOf(columns, this.#stepMs)
  }

  #addEach({ times, values }: ChunkColumns): void {
    for (let row = 0; row < times.length; row++) {
      const end = Math.ceil(times[row]! / this.#stepMs) * this.#stepMs
      if (end === this.#ends.at(-1)) this.#join(values, row, end - times[row]!)
      else this.#begin(values, row, end, end - times[row]!)
    }
  }

  #begin(values: readonly Float64Array[], row: number, end: number, shift: number): void {
    this.#round()
    this.#ends.push(end)
    for (const [index, column] of this.#columns.entries()) column.push(values[index]![row]!)
    const at = this.#ends.length - 1
    this.#columns[FIRST_DISTANCE]![at]! += shift
    this.#columns[LAST_DISTANCE]![at]! += shift
  }

  #join(values: readonly Float64Array[], row: number, shift: number): void {
    const at = this.#ends.length - 1
    const columns = this.#columns
    const [min, max, first, last] = [values[MIN]![row]!, values[MAX]![row]!, values[FIRST]![row]!, columns[LAST]![at]!]
    if (min < columns[MIN]![at]! || Number.isNaN(columns[MIN]![at])) columns[MIN]![at] = min
    if (max > columns[MAX]![at]! || Number.isNaN(columns[MAX]![at])) columns[MAX]![at] = max
    columns[RESETS]![at]! += values[RESETS]![row]! + (first < last ? last : 0)
    columns[COUNT]![at]! += values[COUNT]![row]!
    columns[LAST]![at] = values[LAST]![row]!
    columns[LAST_DISTANCE]![at] = values[LAST_DISTANCE]![row]! + shift
    const [before, value] = [columns[SUM]![at]!, values[SUM]![row]!]
    const sum = before + value
    if (Number.isFinite(sum)) {
      this.#rest += Math.abs(before) >= Math.abs(value) ? before - sum + value : value - sum + before
    } else this.#rest = 0
    columns[SUM]![at] = sum
  }

  /** The last window is complete. */
  #round(): void {
    const at = this.#ends.length - 1
    if (at >= 0) this.#columns[SUM]![at]! += this.#rest
    this.#rest = 0
  }
}

function concatenated(parts: readonly ChunkColumns[]): ChunkColumns {
  const length = parts.reduce((sum, { times }) => sum + times.length, 0)
  const joined = newColumns(ROLLUP_COLUMNS, length)
  let at = 0
  for (const { times, values } of parts) {
    joined.times.set(times, at)
    for (const [index, column] of values.entries()) joined.values[index]!.set(column, at)
    at += times.length
  }
  return joined
}

/** Columns of rollups as a reader has them. */
export function windowsOf({ times, values }: ChunkColumns, stepMs: number): HistoryWindows {
  const before = (distances: Float64Array): Float64Array => distances.map((distance, index) => times[index]! - distance)
  return {
    stepMs,
    ends: times,
    min: values[MIN]!,
    max: values[MAX]!,
    sum: values[SUM]!,
    count: values[COUNT]!,
    first: values[FIRST]!,
    firstTimes: before(values[FIRST_DISTANCE]!),
    last: values[LAST]!,
    lastTimes: before(values[LAST_DISTANCE]!),
    resets: values[RESETS]!,
  }
}
