/**
 * Reads what matches: one state of fresh.db, of the files that it names, and of the blocks of the head that it does not have as
 * pages. Series come in the order of their places, so that each page is read once.
 */
import type { Run } from './catalogue.ts'
import { type ChunkColumns, decodeChunk } from './codec/chunk.ts'
import type { ReadPage } from './codec/page.ts'
import { DamagedPage } from './codec/varints.ts'
import { wordsOf } from './codec/words.ts'
import type { HeadBlock } from './head.ts'
import type { RunPages } from './history-files.ts'
import type { PageKey } from './page-table.ts'
import { type IsHidden, newColumns } from './run-cursor.ts'
import { orderRows } from './sorting.ts'

/** Rows of the head that are looked at in one step. */
const ROWS_PER_STEP = 1 << 15

/** Both ends are included. */
export interface MsRange {
  readonly fromMs: number
  readonly toMs: number
}

/** Rows of one run, or of the head, ascending by time unless they are of the head. */
export interface Part extends ChunkColumns {
  readonly length: number
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
      const part = this.#page === undefined ? undefined : this.#decode(this.#page, place)
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

  #decode(page: ReadPage, place: number): Part | undefined {
    const first = page.find(place)
    let end = first
    let length = 0
    for (; end < page.length && page.places[end] === place; end++) length += page.counts[end]!
    if (length === 0) return undefined
    const columns = newColumns(this.#columnCount, length)
    let at = 0
    try {
      for (let chunk = first; chunk < end; chunk++) {
        decodeChunk(page.chunk(chunk), this.run.period, columns, at, page.counts[chunk]!)
        at += page.counts[chunk]!
      }
    } catch (error) {
      if (!(error instanceof DamagedPage)) throw error
      this.#pages.damaged(this.#key!)
    }
    return at === 0 ? undefined : { ...columns, length: at }
  }
}

/** Of blocks of the head, what they have of some series; each of it in the order in which it came. */
export function* headParts(
  blocks: readonly HeadBlock[],
  wanted: ReadonlySet<number>,
  { fromMs, toMs }: MsRange,
): Generator<undefined, Map<number, Part>, void> {
  const rows = new Map<number, GrowingPart>()
  for (const block of blocks) {
    const words = wordsOf(block.values)
    for (let index = 0; index < block.series.length; index++) {
      if (index % ROWS_PER_STEP === ROWS_PER_STEP - 1) yield
      const id = block.series[index]!
      if (!wanted.has(id)) continue
      const time = block.times[index]!
      if (time < fromMs || time > toMs) continue
      let part = rows.get(id)
      if (part === undefined) {
        part = new GrowingPart()
        rows.set(id, part)
      }
      part.add(time, words[2 * index]!, words[2 * index + 1]!)
    }
    yield
  }
  return rows
}

class GrowingPart implements Part {
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
  const [first] = parts
  if (first === undefined) return undefined
  const total = parts.reduce((sum, { length }) => sum + length, 0)
  const joined = newColumns(first.values.length, total)
  let at = 0
  for (const part of parts) {
    joined.times.set(part.times.subarray(0, part.length), at)
    for (const [index, column] of part.values.entries()) {
      joined.values[index]!.set(column.subarray(0, part.length), at)
    }
    at += part.length
  }
  const end = orderRows(joined, 0, total)
  const start = firstAtLeast(joined.times, end, fromMs)
  const stop = firstAtLeast(joined.times, end, toMs + 1)
  if (start >= stop) return undefined
  const cut = (column: Float64Array): Float64Array => column.slice(start, stop)
  return { times: cut(joined.times), values: joined.values.map(cut) }
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
