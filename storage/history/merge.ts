/**
 * Merges runs of one tenant and period into one: each series in order, its rows ascending by time, and of two rows with the same
 * time the one of the run with the higher number. It holds a page and a chunk of each run, whatever their size. Pages of files
 * that nothing else touches are passed on as they are.
 */
import { type ChunkColumns, ChunkEncoder, MAX_SAMPLES } from './codec/chunk.ts'
import { type Deflating, type HistoryPage, PAGE_TARGET_BYTES, PageWriter } from './codec/page.ts'
import { newColumns, type RunCursor } from './run-cursor.ts'

/** A page with fewer bytes is not passed on as it is: otherwise small ones would stay small. */
const MIN_COPIED_BYTES = PAGE_TARGET_BYTES / 8

/** Who is given the rows of a merge besides. */
export interface MergeObserver {
  /** A series begins; `cursors` have something of it. */
  begin(place: number, cursors: readonly RunCursor[]): void
  rows(columns: ChunkColumns, length: number): void
  /** The series that was begun last has no more rows. */
  end(place: number): void
}

export class Merge {
  readonly #cursors: readonly RunCursor[]
  readonly #put: (page: HistoryPage) => void
  readonly #observer: MergeObserver | undefined
  readonly #writer: PageWriter
  readonly #encoder = new ChunkEncoder()
  readonly #baseMs: number
  readonly #rows: ChunkColumns
  #length = 0

  /** `cursors` of runs of one period, ascending by number. `put` gets the pages of the new run. */
  constructor(
    cursors: readonly RunCursor[],
    put: (page: HistoryPage) => void,
    { deflating, observer }: { readonly deflating: Deflating; readonly observer?: MergeObserver | undefined },
  ) {
    const [first] = cursors
    this.#cursors = cursors
    this.#put = put
    this.#observer = observer
    this.#writer = new PageWriter(put, deflating)
    this.#baseMs = first?.pages.run.period ?? 0
    this.#rows = newColumns(first?.columns.values.length ?? 1, MAX_SAMPLES)
  }

  *run(): Generator<undefined, void, void> {
    for (;;) {
      const place = Math.min(...this.#cursors.map((cursor) => cursor.place))
      if (place === Number.POSITIVE_INFINITY) break
      if (!this.#copy(place)) yield* this.#series(place)
      yield
    }
    this.#writer.flush()
  }

  /** Passes a page on that begins at this place, if no other run has anything from there to its end. */
  #copy(place: number): boolean {
    let single: RunCursor | undefined
    let next = Number.POSITIVE_INFINITY
    for (const cursor of this.#cursors) {
      if (cursor.place === place && single === undefined) single = cursor
      else next = Math.min(next, cursor.place)
    }
    // What is fresh is observed, and well packed by this merge alone.
    if (single === undefined || single.pages.run.file === null) return false
    const page = single.untouched(next)
    if (page === undefined || page.data.length < MIN_COPIED_BYTES) return false
    this.#writer.flush()
    this.#put(page)
    single.skipPage()
    return true
  }

  *#series(place: number): Generator<undefined, void, void> {
    let active = this.#cursors.filter((cursor) => cursor.read(place))
    this.#observer?.begin(place, active)
    while (active.length > 0) {
      active = this.#take(active, place)
      if (this.#length < MAX_SAMPLES) continue
      this.#writeChunk(place)
      yield
    }
    if (this.#length > 0) this.#writeChunk(place)
    this.#observer?.end(place)
  }

  /** Takes the earliest row, and those after it up to the first of another run. Returns the cursors that have more. */
  #take(active: RunCursor[], place: number): RunCursor[] {
    let winner = active[0]!
    for (const cursor of active) if (cursor.time <= winner.time) winner = cursor
    const { time } = winner
    let limit = Number.POSITIVE_INFINITY
    let hasEnded = false
    for (const cursor of active) {
      if (cursor === winner) continue
      if (cursor.time === time && !this.#pass(cursor, 1, place)) hasEnded = true
      else limit = Math.min(limit, cursor.time)
    }
    const count = Math.min(winner.before(limit), MAX_SAMPLES - this.#length)
    this.#append(winner, count)
    if (!this.#pass(winner, count, place)) hasEnded = true
    return hasEnded ? active.filter((cursor) => cursor.at < cursor.length) : active
  }

  /** Passes over rows of a cursor; returns whether it has more of the series. */
  #pass(cursor: RunCursor, count: number, place: number): boolean {
    cursor.at += count
    return cursor.at < cursor.length || cursor.read(place)
  }

  #append({ columns, at }: RunCursor, count: number): void {
    this.#rows.times.set(columns.times.subarray(at, at + count), this.#length)
    for (const [index, column] of columns.values.entries()) {
      this.#rows.values[index]!.set(column.subarray(at, at + count), this.#length)
    }
    this.#length += count
  }

  #writeChunk(place: number): void {
    const length = this.#length
    const { times } = this.#rows
    this.#encoder.encode(this.#writer.body, this.#baseMs, this.#rows, length)
    this.#observer?.rows(this.#rows, length)
    this.#writer.end(place, length, times[0]!, times[length - 1]!)
    this.#length = 0
  }
}
