/**
 * What blocks of the head have of some series. Blocks never change, so only the numbers of rows are kept, four bytes each, until it is
 * the turn of their series.
 */
import type { ChunkColumns } from './codec/chunk.ts'
import { seriesAt } from './codec/page.ts'
import { wordsOf } from './codec/words.ts'
import type { Head, StoredBlock } from './head.ts'
import type { HeadIndex } from './head-index.ts'
import { ColumnsPart, type MsRange, type Part } from './select.ts'
import { numbersBetween, type SeriesNumbers } from './series-numbers.ts'
import { orderRows } from './sorting.ts'

/** Rows that are looked at in one step. */
const ROWS_PER_STEP = 1 << 15

/** So many rows are looked at in the time that those of one series are found by the index. */
const ROWS_PER_SERIES = 256

/** What blocks have of some series, by their entries. */
export interface HeadRowsFound {
  /** Undefined if there is nothing. */
  part(entry: number): HeadPart | undefined
}

/** `blocks`: those that the head had when the query began. `places`: of the series that are wanted, ascending. */
export function* rowsOfSeries(
  head: Pick<Head, 'indexOf'>,
  blocks: readonly StoredBlock[],
  places: Float64Array,
  range: MsRange,
): Generator<undefined, HeadRowsFound, void> {
  const rowCount = blocks.reduce((sum, { series }) => sum + series.length, 0)
  const index = places.length * ROWS_PER_SERIES < rowCount ? head.indexOf(blocks) : undefined
  if (index !== undefined) return new IndexedRows(blocks, index, places, range)
  const inRange = blocks.filter(({ fromMs, toMs }) => fromMs <= range.toMs && toMs >= range.fromMs)
  const rows = new RowsOfSeries(inRange, places, range)
  yield* rows.each((entry) => rows.count(entry))
  rows.begin()
  yield* rows.each((entry, row) => rows.put(entry, row))
  return rows
}

/** Rows that the index knows. */
class IndexedRows implements HeadRowsFound {
  readonly #blocks: readonly StoredBlock[]
  readonly #index: HeadIndex<StoredBlock>
  readonly #range: MsRange
  /** By entry, the number of the last row; undefined if there is none. */
  readonly #last: readonly (number | undefined)[]

  constructor(blocks: readonly StoredBlock[], index: HeadIndex<StoredBlock>, places: Float64Array, range: MsRange) {
    this.#blocks = blocks
    this.#index = index
    this.#range = range
    this.#last = Array.from(places, (place) => index.lastOf(seriesAt(place)))
  }

  part(entry: number): HeadPart | undefined {
    const last = this.#last[entry]
    if (last === undefined) return undefined
    const { fromMs, toMs } = this.#range
    const found: { readonly block: StoredBlock; readonly row: number }[] = []
    this.#index.each(this.#blocks, last, (block, row) => {
      const time = block.times[row]!
      if (time >= fromMs && time <= toMs) found.push({ block, row })
    })
    if (found.length === 0) return undefined
    const [times, values] = [new Float64Array(found.length), new Float64Array(found.length)]
    const words = wordsOf(values)
    for (const [at, { block, row }] of found.reverse().entries()) {
      const from = wordsOf(block.values)
      times[at] = block.times[row]!
      words[2 * at] = from[2 * row]!
      words[2 * at + 1] = from[2 * row + 1]!
    }
    return new HeadPart({ times, values: [values] })
  }
}

class RowsOfSeries implements HeadRowsFound {
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
