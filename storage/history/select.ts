/**
 * Reads what matches: one state of fresh.db, of the files that it names, and of the blocks of the head that it does not have as
 * pages. Series come in the order of their places, so that each page is read once.
 */
import type { Run } from './catalogue.ts'
import { type ChunkColumns, decodeChunk } from './codec/chunk.ts'
import type { ReadPage } from './codec/page.ts'
import { DamagedPage } from './codec/varints.ts'
import { wordsOf } from './codec/words.ts'
import type { HeadBlock, StoredBlock } from './head.ts'
import type { RunPages } from './history-files.ts'
import type { PageKey } from './page-table.ts'
import type { ResolvedSeries } from './resolve.ts'
import { type IsHidden, newColumns } from './run-cursor.ts'
import { numbersBetween, type SeriesNumbers } from './series-numbers.ts'
import { orderRows } from './sorting.ts'

/** Rows of the head that are looked at in one step. */
const ROWS_PER_STEP = 1 << 15

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
  *read(place: number, series: number, parts: Part[]): Generator<undefined, void, void> {
    if (this.#isHidden?.(series) === true) return
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

/** Of blocks of the head, what they have of some series, ascending by time. */
export function* headParts(
  blocks: readonly StoredBlock[],
  wanted: readonly ResolvedSeries[],
  range: MsRange,
): Generator<undefined, ReadonlyMap<number, HeadPart>, void> {
  const rows = new HeadRowsOf(wanted, range)
  for (const block of blocks) {
    if (block.fromMs > range.toMs || block.toMs < range.fromMs) continue
    for (let from = 0; from < block.series.length; from += ROWS_PER_STEP) {
      rows.collect(block, from, Math.min(block.series.length, from + ROWS_PER_STEP))
      yield
    }
  }
  return rows.parts()
}

/** Rows of some series, each in the order in which they came. */
class HeadRowsOf {
  readonly #wanted: readonly ResolvedSeries[]
  readonly #range: MsRange
  /** The entry of a series in `wanted`, from 1 on. */
  readonly #entries: SeriesNumbers
  readonly #parts: (HeadPart | undefined)[]

  constructor(wanted: readonly ResolvedSeries[], range: MsRange) {
    this.#wanted = wanted
    this.#range = range
    let [first, last] = [Number.POSITIVE_INFINITY, 0]
    for (const { id } of wanted) {
      first = Math.min(first, id)
      last = Math.max(last, id)
    }
    this.#entries = numbersBetween(first, last)
    for (const [index, { id }] of wanted.entries()) this.#entries.set(id, index + 1)
    this.#parts = new Array(wanted.length).fill(undefined)
  }

  collect({ series, times, values }: HeadBlock, from: number, to: number): void {
    const { fromMs, toMs } = this.#range
    const entries = this.#entries
    const words = wordsOf(values)
    for (let index = from; index < to; index++) {
      const entry = entries.get(series[index]!)
      if (entry === 0) continue
      const time = times[index]!
      if (time < fromMs || time > toMs) continue
      let part = this.#parts[entry - 1]
      if (part === undefined) {
        part = new HeadPart()
        this.#parts[entry - 1] = part
      }
      part.add(time, words[2 * index]!, words[2 * index + 1]!)
    }
  }

  /** By series, in order. */
  parts(): Map<number, HeadPart> {
    const parts = new Map<number, HeadPart>()
    for (const [index, part] of this.#parts.entries()) {
      if (part === undefined) continue
      part.order()
      parts.set(this.#wanted[index]!.id, part)
    }
    return parts
  }
}

/** What the head has of a series. */
export class HeadPart implements Part {
  readonly columnCount = 1
  times = new Float64Array(16)
  values = [new Float64Array(16)]
  length = 0
  #words = wordsOf(this.values[0]!)

  add(time: number, low: number, high: number): void {
    const { length } = this
    if (length === this.times.length) this.#grow()
    this.times[length] = time
    this.#words[2 * length] = low
    this.#words[2 * length + 1] = high
    this.length = length + 1
  }

  /** After the last row: of those with the same time the last one stays. */
  order(): void {
    this.length = orderRows(this, 0, this.length)
  }

  read(into: ChunkColumns, at: number): number {
    return new ColumnsPart(this, this.length).read(into, at)
  }

  #grow(): void {
    const times = new Float64Array(2 * this.length)
    const values = new Float64Array(2 * this.length)
    times.set(this.times)
    values.set(this.values[0]!)
    this.times = times
    this.values = [values]
    this.#words = wordsOf(values)
  }
}

/** Joins parts, of which the later ones hold where two have a row of the same time; only rows from `fromMs` to `toMs` stay. */
export function joinParts(parts: readonly Part[], fromMs: number, toMs: number): ChunkColumns | undefined {
  const total = parts.reduce((sum, { length }) => sum + length, 0)
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
