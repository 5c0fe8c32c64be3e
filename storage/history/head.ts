/**
 * The samples of one tenant that are in no page yet: those that were appended and wait for the next commit, and one block of
 * columns for each row that was committed. Blocks never change, so queries and the making of pages share them.
 */

import { HeadIndex } from './head-index.ts'
import { dayOf } from './periods.ts'

/** The samples of one row of fresh.db, in the order in which they were taken. */
export interface HeadBlock {
  readonly series: Uint32Array
  readonly times: Float64Array
  readonly values: Float64Array
}

/** A block that is stored. */
export interface StoredBlock extends HeadBlock {
  readonly row: number
  /** The times of its earliest and its latest sample. */
  readonly fromMs: number
  readonly toMs: number
}

const MIN_CAPACITY = 64
/** Room that an idle tenant keeps. */
const IDLE_CAPACITY = 4096

export class Head {
  /** Ascending by row. */
  readonly blocks: StoredBlock[] = []
  /** Of each block, the number of its first row among all that were ever in blocks. */
  readonly firsts: number[] = []
  /** How many rows were ever in blocks. */
  rows = 0
  /** How many samples are in blocks. */
  samples = 0
  /** When the oldest block came. */
  sinceMs = 0
  #index = new HeadIndex<StoredBlock>()
  #series = new Uint32Array(MIN_CAPACITY)
  #times = new Float64Array(MIN_CAPACITY)
  #values = new Float64Array(MIN_CAPACITY)
  #length = 0

  /** How many samples wait for the next commit. */
  get pending(): number {
    return this.#length
  }

  /** Takes samples from `from` up to, and without, `to`. The columns are copied as they are, with all bits. */
  take({ series, times, values }: HeadBlock, from: number, to: number): void {
    if (from === to) return
    this.#ensure(to - from)
    this.#series.set(series.subarray(from, to), this.#length)
    this.#times.set(times.subarray(from, to), this.#length)
    this.#values.set(values.subarray(from, to), this.#length)
    this.#length += to - from
  }

  /** The bytes of the rows. */
  get bytes(): number {
    return blockBytes(this.samples)
  }

  /** Where the rows of series are in these blocks; undefined if they are not those that there are now. */
  indexOf(blocks: readonly StoredBlock[]): HeadIndex<StoredBlock> | undefined {
    if (blocks[0] !== this.blocks[0] || blocks.at(-1) !== this.blocks.at(-1)) return undefined
    this.#index.follow(this.blocks, this.firsts)
    return this.#index
  }

  /** The start of the earliest day in blocks, or of another one if that is earlier; undefined if there is neither. */
  oldestDay(other = Number.POSITIVE_INFINITY): number | undefined {
    let oldest = other
    for (const { fromMs } of this.blocks) oldest = Math.min(oldest, dayOf(fromMs))
    return oldest === Number.POSITIVE_INFINITY ? undefined : oldest
  }

  /** A copy of what waits. */
  copyPending(): HeadBlock {
    return {
      series: this.#series.slice(0, this.#length),
      times: this.#times.slice(0, this.#length),
      values: this.#values.slice(0, this.#length),
    }
  }

  /** What waited is a row now. */
  committed(block: StoredBlock, nowMs: number): void {
    this.add(block, nowMs)
    this.#length = 0
    if (this.#series.length > IDLE_CAPACITY && block.series.length < this.#series.length / 4) {
      this.#series = new Uint32Array(IDLE_CAPACITY)
      this.#times = new Float64Array(IDLE_CAPACITY)
      this.#values = new Float64Array(IDLE_CAPACITY)
    }
  }

  /** Adds the block of a row. */
  add(block: StoredBlock, nowMs: number): void {
    if (this.blocks.length === 0) this.sinceMs = nowMs
    this.blocks.push(block)
    this.firsts.push(this.rows)
    this.rows += block.series.length
    this.samples += block.series.length
  }

  /** The first so many blocks are in pages now. */
  paged(count: number, nowMs: number): void {
    for (const block of this.blocks.splice(0, count)) this.samples -= block.series.length
    this.firsts.splice(0, count)
    this.sinceMs = nowMs
  }

  /** Forgets everything. */
  clear(): void {
    this.blocks.length = 0
    this.firsts.length = 0
    this.#index = new HeadIndex()
    this.samples = 0
    this.#length = 0
  }

  #ensure(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#series.length) return
    const capacity = Math.max(2 * this.#series.length, needed)
    const series = new Uint32Array(capacity)
    const times = new Float64Array(capacity)
    const values = new Float64Array(capacity)
    series.set(this.#series.subarray(0, this.#length))
    times.set(this.#times.subarray(0, this.#length))
    values.set(this.#values.subarray(0, this.#length))
    this.#series = series
    this.#times = times
    this.#values = values
  }
}

/** The times of the earliest and the latest sample. */
export function rangeOfTimes({ times }: Pick<HeadBlock, 'times'>): Pick<StoredBlock, 'fromMs' | 'toMs'> {
  let fromMs = Number.POSITIVE_INFINITY
  let toMs = 0
  for (const time of times) {
    if (time < fromMs) fromMs = time
    if (time > toMs) toMs = time
  }
  return { fromMs, toMs }
}

const SAMPLE_BYTES = 20

/** The bytes of a row: values, times, series. */
export function encodeBlock({ series, times, values }: HeadBlock): Uint8Array {
  const { length } = series
  const bytes = new Uint8Array(length * SAMPLE_BYTES)
  new Float64Array(bytes.buffer, 0, length).set(values)
  new Float64Array(bytes.buffer, 8 * length, length).set(times)
  new Uint32Array(bytes.buffer, 16 * length, length).set(series)
  return bytes
}

/** How many bytes a row of so many samples has. */
export function blockBytes(samples: number): number {
  return samples * SAMPLE_BYTES
}

/** The samples of a row that is as long as it should be. */
export function decodeBlock(bytes: Uint8Array, length: number): HeadBlock {
  // A copy of its own, since columns have to be aligned.
  const { buffer } = Uint8Array.from(bytes)
  return {
    values: new Float64Array(buffer, 0, length),
    times: new Float64Array(buffer, 8 * length, length),
    series: new Uint32Array(buffer, 16 * length, length),
  }
}
