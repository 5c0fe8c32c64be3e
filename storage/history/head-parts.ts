/**
 * What blocks of the head have of some series. Blocks never change, so only the numbers of rows are kept, four bytes each, until it is
 * the turn of their series.
 */
import type { ChunkColumns } from './codec/chunk.ts'
import { seriesAt } from './codec/page.ts'
import { wordsOf } from './codec/words.ts'
import type { StoredBlock } from './head.ts'
import { ColumnsPart, type MsRange, type Part } from './select.ts'
import { numbersBetween, type SeriesNumbers } from './series-numbers.ts'
import { orderRows } from './sorting.ts'

/** Rows that are looked at in one step. */
const ROWS_PER_STEP = 1 << 15

/** `places`: of the series that are wanted, ascending. */
export function* rowsOfSeries(
  blocks: readonly StoredBlock[],
  places: Float64Array,
  range: MsRange,
): Generator<undefined, RowsOfSeries, void> {
  const inRange = blocks.filter(({ fromMs, toMs }) => fromMs <= range.toMs && toMs >= range.fromMs)
  const rows = new RowsOfSeries(inRange, places, range)
  yield* rows.each((entry) => rows.count(entry))
  rows.begin()
  yield* rows.each((entry, row) => rows.put(entry, row))
  return rows
}

export class RowsOfSeries {
  readonly #blocks: readonly StoredBlock[]
  /** Of each block, the number of its first row. */
  readonly #firsts: readonly number[]
  readonly #range: MsRange
  /** The entry of a series in `places`, from 1 on. */
  readonly #entries: SeriesNumbers
  /** Where the rows of each entry end; in the beginning, how many there are. */
  readonly #ends: Uint32Array
  /** By entry, then in the order in which they came. */
  #rows = new Uint32Array(0)

  constructor(blocks: readonly StoredBlock[], places: Float64Array, range: MsRange) {
    this.#blocks = blocks
    let rows = 0
    this.#firsts = blocks.map(({ series }) => {
      const first = rows
      rows += series.length
      return first
    })
    this.#range = range
    this.#ends = new Uint32Array(places.length)
    let [first, last] = [Number.POSITIVE_INFINITY, 0]
    for (const place of places) {
      first = Math.min(first, seriesAt(place))
      last = Math.max(last, seriesAt(place))
    }
    this.#entries = numbersBetween(first, last)
    for (const [index, place] of places.entries()) this.#entries.set(seriesAt(place), index + 1)
  }

  /** All rows of the range that are of one of the series. */
  *each(take: (entry: number, row: number) => void): Generator<undefined, void, void> {
    const { fromMs, toMs } = this.#range
    for (const [block, { series, times }] of this.#blocks.entries()) {
      const first = this.#firsts[block]!
      for (let from = 0; from < series.length; from += ROWS_PER_STEP) {
        const end = Math.min(series.length, from + ROWS_PER_STEP)
        for (let index = from; index < end; index++) {
          const entry = this.#entries.get(series[index]!)
          if (entry === 0) continue
          const time = times[index]!
          if (time >= fromMs && time <= toMs) take(entry - 1, first + index)
        }
        yield
      }
    }
  }

  count(entry: number): void {
    this.#ends[entry]!++
  }

  /** All are counted, and are put now. */
  begin(): void {
    let total = 0
    for (const [entry, count] of this.#ends.entries()) {
      this.#ends[entry] = total
      total += count
    }
    this.#rows = new Uint32Array(total)
  }

  put(entry: number, row: number): void {
    this.#rows[this.#ends[entry]!++] = row
  }

  /** What there is of the series with this entry; undefined if there is nothing. */
  part(entry: number): HeadPart | undefined {
    const rows = this.#rows.subarray(entry === 0 ? 0 : this.#ends[entry - 1]!, this.#ends[entry])
    return rows.length === 0 ? undefined : new HeadPart(this.#columns(rows))
  }

  #columns(rows: Uint32Array): ChunkColumns {
    const [times, values] = [new Float64Array(rows.length), new Float64Array(rows.length)]
    const words = wordsOf(values)
    let index = 0
    for (const [block, first] of this.#firsts.entries()) {
      const after = this.#firsts[block + 1] ?? Number.POSITIVE_INFINITY
      if (index === rows.length) break
      if (rows[index]! >= after) continue
      const { times: blockTimes, values: blockValues } = this.#blocks[block]!
      const from = wordsOf(blockValues)
      for (; index < rows.length && rows[index]! < after; index++) {
        const at = rows[index]! - first
        times[index] = blockTimes[at]!
        words[2 * index] = from[2 * at]!
        words[2 * index + 1] = from[2 * at + 1]!
      }
    }
    return { times, values: [values] }
  }
}

/** Rows of one series, ascending by time. */
export class HeadPart implements Part {
  readonly columnCount = 1
  readonly length: number
  readonly times: Float64Array
  readonly #columns: ChunkColumns

  /** Of rows with the same time the last one stays. */
  constructor(columns: ChunkColumns) {
    this.#columns = columns
    this.times = columns.times
    this.length = orderRows(columns, 0, columns.times.length)
  }

  read(into: ChunkColumns, at: number): number {
    return new ColumnsPart(this.#columns, this.length).read(into, at)
  }
}
