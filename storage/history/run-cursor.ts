/** The rows of one run, chunk by chunk, in the order of places. What is damaged or hidden is passed over. */

import { type ChunkColumns, decodeChunk, MAX_SAMPLES } from './codec/chunk.ts'
import { type HistoryPage, type ReadPage, seriesAt } from './codec/page.ts'
import { DamagedPage } from './codec/varints.ts'
import type { RunPages } from './history-files.ts'
import type { PageKey } from './page-table.ts'

/** Whether a series of a run was dropped after the run was made; undefined if none was. */
export type IsHidden = ((series: number) => boolean) | undefined

/** With any numbers in them: to fill them with zeros first would take as long as to read what they are for. */
export function newColumns(count: number, length: number): ChunkColumns {
  const all = new Float64Array(Buffer.allocUnsafeSlow(8 * (count + 1) * length).buffer)
  const column = (index: number): Float64Array => all.subarray(index * length, (index + 1) * length)
  return { times: column(0), values: Array.from({ length: count }, (_, index) => column(index + 1)) }
}

export class RunCursor {
  readonly pages: RunPages
  /** The chunk that was read last. */
  readonly columns: ChunkColumns
  /** Its next row, and how many it has. */
  at = 0
  length = 0
  /** Where the next chunk stands; infinite after the last one. */
  place = 0
  readonly #isHidden: IsHidden
  #key: PageKey | undefined
  /** Undefined while the page is not read. */
  #page: ReadPage | undefined
  #chunk = 0

  constructor(pages: RunPages, columnCount: number, isHidden: IsHidden) {
    this.pages = pages
    this.columns = newColumns(columnCount, MAX_SAMPLES)
    this.#isHidden = isHidden
    this.#nextPage()
  }

  /** The time of the next row. */
  get time(): number {
    return this.columns.times[this.at]!
  }

  /** Reads the next chunk if it stands at this place; returns whether it does. */
  read(place: number): boolean {
    while (this.place === place) {
      if (this.#page === undefined) this.#open()
      if (this.#page === undefined || this.place !== place) continue
      const chunk = this.#chunk
      const isRead = this.#decode(this.#page, chunk)
      this.#seek(this.#page, chunk + 1)
      if (isRead) return true
    }
    return false
  }

  /** How many rows of the chunk are before this time. */
  before(timeMs: number): number {
    const { times } = this.columns
    if (times[this.length - 1]! < timeMs) return this.length - this.at
    let end = this.at
    while (end < this.length && times[end]! < timeMs) end++
    return end - this.at
  }

  /** A page that is not begun and that ends before this place, as it is; undefined if there is none, or it is damaged. */
  untouched(place: number): HistoryPage | undefined {
    if (this.#page !== undefined || this.#key === undefined || this.#isHidden !== undefined) return undefined
    return this.#key.hi < place ? this.pages.page(this.#key) : undefined
  }

  /** Passes over the page that `untouched` gave. */
  skipPage(): void {
    this.#nextPage()
  }

  #open(): void {
    this.#page = this.#key === undefined ? undefined : this.pages.read(this.#key)
    if (this.#page === undefined) this.#nextPage()
    else this.#seek(this.#page, 0)
  }

  #seek(page: ReadPage, chunk: number): void {
    while (chunk < page.length && this.#isHidden?.(seriesAt(page.places[chunk]!)) === true) chunk++
    if (chunk === page.length) {
      this.#nextPage()
      return
    }
    this.#chunk = chunk
    this.place = page.places[chunk]!
  }

  #nextPage(): void {
    this.#key = this.pages.after(this.#key)
    this.#page = undefined
    this.place = this.#key?.lo ?? Number.POSITIVE_INFINITY
  }

  #decode(page: ReadPage, chunk: number): boolean {
    try {
      const length = page.counts[chunk]!
      decodeChunk(page.chunk(chunk), this.pages.run.period, this.columns, 0, length)
      this.at = 0
      this.length = length
      return true
    } catch (error) {
      if (!(error instanceof DamagedPage)) throw error
      this.pages.damaged(this.#key!)
      return false
    }
  }
}
