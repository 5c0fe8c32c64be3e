/**
 * Reads what matches: one state of fresh.db, of the files that it names, and of the blocks of the head that it does not have as
 * pages. Series come in the order of their places, so that each page is read once.
 */
import type { Run } from './catalogue.ts'
import { type ChunkColumns, decodeChunk } from './codec/chunk.ts'
import { type ReadPage, seriesAt } from './codec/page.ts'
import { DamagedPage } from './codec/varints.ts'
import type { RunPages } from './history-files.ts'
import type { PageKey } from './page-table.ts'
import { type IsHidden, newColumns } from './run-cursor.ts'
import { orderRows } from './sorting.ts'
import { HistoryBoundError } from './store.ts'

/** Both ends are included. */
export interface MsRange {
  readonly fromMs: number
  readonly toMs: number
}

/** Rows of one run, or of the head, ascending by time. */
export interface Part {
  readonly columnCount: number
  /** How many rows there are, or were before they were damaged. */
  readonly length: number
  /** Writes the rows into columns from `at` on; returns where they end. */
  read(into: ChunkColumns, at: number): number
}

/** Reads series of one run, each later in the order of places than the one before. */
export class RunReader {
  readonly run: Run
  readonly #pages: RunPages
  readonly #isHidden: IsHidden
  readonly #range: MsRange
  readonly #columnCount: number
  #key: PageKey | undefined
  #page: ReadPage | undefined
  #hasEnded = false

  constructor(pages: RunPages, isHidden: IsHidden, range: MsRange, columnCount: number) {
    this.run = pages.run
    this.#pages = pages
    this.#isHidden = isHidden
    this.#range = range
    this.#columnCount = columnCount
  }

  /** Adds what the run has of a series to `parts`. Each step reads a page at most. */
  *read(place: number, parts: Part[]): Generator<undefined, void, void> {
    if (this.#isHidden?.(seriesAt(place)) === true) return
    while (!this.#hasEnded) {
      if (this.#key === undefined || this.#key.hi < place) {
        this.#seek(place)
        yield
        continue
      }
      if (this.#key.lo > place) return
      const part = this.#page === undefined ? undefined : this.#part(this.#page, place)
      if (part !== undefined) parts.push(part)
      // The next page may go on with it.
      if (this.#key.hi > place) return
      this.#next()
      yield
    }
  }

  #seek(place: number): void {
    this.#take(this.#pages.holding(place, this.#range.fromMs, this.#range.toMs))
  }

  #next(): void {
    this.#take(this.#pages.after(this.#key))
  }

  #take(key: PageKey | undefined): void {
    this.#key = key
    this.#hasEnded = key === undefined
    const { fromMs, toMs } = this.#range
    const isInRange = key !== undefined && key.from <= toMs && key.to >= fromMs
    this.#page = isInRange ? this.#pages.read(key) : undefined
  }

  #part(page: ReadPage, place: number): Part | undefined {
    const first = page.find(place)
    let end = first
    while (end < page.length && page.places[end] === place) end++
    if (end === first) return undefined
    const key = this.#key!
    const damaged = (): void => this.#pages.damaged(key)
    return new PagePart({ page, first, end, baseMs: this.run.period, columnCount: this.#columnCount, damaged })
  }
}

interface PageChunks {
  readonly page: ReadPage
  /** The chunks from the first up to, and without, the end. */
  readonly first: number
  readonly end: number
  readonly baseMs: number
  readonly columnCount: number
  readonly damaged: () => void
}

/** It is decoded when there is room for all rows of its series, so that none is copied. */
class PagePart implements Part {
  readonly columnCount: number
  readonly length: number
  readonly #chunks: PageChunks

  constructor(chunks: PageChunks) {
    const { page, first, end, columnCount } = chunks
    this.#chunks = chunks
    this.columnCount = columnCount
    let length = 0
    for (let chunk = first; chunk < end; chunk++) length += page.counts[chunk]!
    this.length = length
  }

  read(into: ChunkColumns, at: number): number {
    const { page, first, end, baseMs, damaged } = this.#chunks
    try {
      for (let chunk = first; chunk < end; chunk++) {
        decodeChunk(page.chunk(chunk), baseMs, into, at, page.counts[chunk]!)
        at += page.counts[chunk]!
      }
    } catch (error) {
      if (!(error instanceof DamagedPage)) throw error
      damaged()
    }
    return at
  }
}

/** The first rows of columns. */
export class ColumnsPart implements Part {
  readonly columnCount: number
  readonly length: number
  readonly #columns: ChunkColumns

  constructor(columns: ChunkColumns, length: number) {
    this.#columns = columns
    this.columnCount = columns.values.length
    this.length = length
  }

  read(into: ChunkColumns, at: number): number {
    const { times, values } = this.#columns
    into.times.set(times.subarray(0, this.length), at)
    for (const [index, column] of values.entries()) into.values[index]!.set(column.subarray(0, this.length), at)
    return at + this.length
  }
}

/** More rows of a series are not in memory at once: 256 MiB of samples. */
const MAX_ROWS = 1 << 24
/** How many rows parts have. */
export function rowsOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0)
}

/**
 * Joins parts, of which the later ones hold where two have a row of the same time; only rows from `fromMs` to `toMs` stay. Throws
 * HistoryBoundError if they are too many.
 */
export function joinParts(parts: readonly Part[], fromMs: number, toMs: number): ChunkColumns | undefined {
  const total = rowsOf(parts)
  if (total > MAX_ROWS) throw new HistoryBoundError(total, MAX_ROWS)
  const joined = newColumns(parts[0]?.columnCount ?? 0, total)
  const { times } = joined
  let end = 0
  let isAscending = true
  for (const part of parts) {
    const start = end
    end = part.read(joined, start)
    if (start > 0 && start < end) isAscending &&= times[start]! > times[start - 1]!
  }
  if (!isAscending) end = orderRows(joined, 0, end)
  const start = firstAtLeast(times, end, fromMs)
  const stop = firstAtLeast(times, end, toMs + 1)
  if (start >= stop) return undefined
  if (stop - start === total) return joined
  const cut = (column: Float64Array): Float64Array => column.slice(start, stop)
  return { times: cut(times), values: joined.values.map(cut) }
}

/** The first row of the first `end` whose time is at least this. */
function firstAtLeast(times: Float64Array, end: number, timeMs: number): number {
  let from = 0
  let to = end
  while (from < to) {
    const middle = (from + to) >>> 1
    if (times[middle]! < timeMs) from = middle + 1
    else to = middle
  }
  return from
}
