/**
 * A block: the wire-ready bytes of consecutive VALUE frames of one lane. The bytes that are stored are the bytes that
 * are sent. Inside a block of the sending lane transaction ids are consecutive: ordinal = id - first.
 *
 * The numbers outlive the bytes: what is stored and not about to be sent has `chunk` undefined and is read back on demand.
 * Frames waiting in a buffer lane carry id 0; `number` fills the ids in at their release.
 */
import { FRAME_METRIC, FRAME_TIME, FRAME_TRANSACTION } from '../../../protocol/monitor/message.ts'
import { BLOCK_WIDTH } from '../../../storage/store.ts'
import type { Chunk, Pool } from './pool.ts'

export class Block {
  // What each value touches comes first: with a thousand channels, each line of memory counts.
  readonly kind = 'block'
  lane: number
  count = 0
  /** Bytes of all its frames. */
  length = 0
  chunk: Chunk | undefined
  /** Nothing more is appended. */
  sealed = false
  /** Values that are not settled (committed, dropped or stopped), and their bytes: exact when none or all are. */
  unsettled = 0
  unsettledBytes = 0
  /** It is among the blocks that the next batch looks at. */
  dirty = false
  /** The metric id of all its values; 0 if there are several. */
  metric = 0
  /** The earliest and the latest time of its values, microseconds. */
  minTime = 0
  maxTime = 0
  /** Age clock of the last value, ms. */
  appendedAge = 0

  readonly id: number
  /** The transaction id of the first value; 0 while the block waits in a buffer lane. */
  first: number
  /** The result of an EXECUTE: subject to neither age nor overflow [MON 10]. */
  exempt = false
  /** keep-latest: the series of its only value. */
  key: string | undefined

  // Settlement, written by the methods below for `Settlement`.
  /** All ordinals below are settled; from the first one out of order on, `settledBits` has the rest. */
  settledPrefix = 0
  settledBits: Uint8Array | undefined

  // Delivery: the position, moved by `advance` and `rewind`, and what is in flight, counted by `Window`.
  /** Values and bytes that were handed to the connection or skipped, in order. */
  sent = 0
  sentLength = 0
  inFlight = 0
  inFlightBytes = 0

  // Persistence, written by `Persistence`.
  /** Values and bytes in the batches made so far, and in those that are durable. */
  submitted = 0
  submittedLength = 0
  durable = 0
  durableLength = 0
  /** Values were settled since the last batch. */
  settledChanged = false
  /** Its bytes are being read back. */
  isLoading = false

  constructor(id: number, lane: number, first: number) {
    this.lane = lane
    this.id = id
    this.first = first
  }

  /** A block as it was stored: row `row` of `rows`. Ids below `floor`, and those of the bitmap, are settled. */
  static restored(rows: Float64Array, row: number, floor: number, bitmap: Uint8Array | undefined): Block {
    const at = row * BLOCK_WIDTH
    const number = (index: number): number => rows[at + index] as number
    const block = new Block(number(0), number(2), number(3))
    const { lane, first } = block
    const count = number(4)
    const length = number(6)
    block.count = block.submitted = block.durable = count
    block.length = block.submittedLength = block.durableLength = length
    block.appendedAge = number(7)
    block.minTime = number(8)
    block.maxTime = number(9)
    block.metric = number(10)
    block.sealed = true
    if (bitmap) block.restoreBitmap(bitmap)
    if (lane === 0) for (let i = block.settledPrefix; i < Math.min(count, floor - first); i++) block.settle(i)
    let settled = 0
    for (let i = 0; i < count; i++) if (block.isSettled(i)) settled++
    block.unsettled = count - settled
    block.unsettledBytes = length - Math.floor((length * settled) / Math.max(1, count))
    return block
  }

  get last(): number {
    return this.first + this.count - 1
  }

  /** Bytes of memory it holds. */
  get size(): number {
    return this.chunk === undefined ? 0 : this.chunk.bytes.length
  }

  /** Makes room for a frame; false if the block would exceed `maxBytes` with it. A first frame always fits. */
  reserve(bytes: number, maxBytes: number, pool: Pool): boolean {
    if (this.size - this.length >= bytes && this.length + bytes <= maxBytes) return true
    if (this.count > 0 && this.length + bytes > maxBytes) return false
    const grown = pool.take(Math.max(this.length + bytes, Math.min(this.length * 4, maxBytes)))
    if (this.chunk) {
      grown.bytes.set(this.chunk.bytes.subarray(0, this.length))
      this.chunk.release()
    }
    this.chunk = grown
    return true
  }

  /**
   * Counts `count` frames, of `bytes` together, that were written after those that it has, and fills in their ids, which begin
   * with `transaction`; 0 leaves them to be filled in later.
   */
  extend(count: number, bytes: number, transaction: number): void {
    const { view } = this.chunk as Chunk
    const end = this.length + bytes
    if (this.count === 0) {
      this.metric = view.getUint32(FRAME_METRIC)
      this.minTime = getUint53(view, FRAME_TIME)
    }
    let { metric, minTime, maxTime } = this
    let id = transaction
    for (let at = this.length; at < end; at += 4 + view.getUint32(at)) {
      setUint53(view, at + FRAME_TRANSACTION, id)
      if (transaction !== 0) id++
      const time = getUint53(view, at + FRAME_TIME)
      if (time < minTime) minTime = time
      if (time > maxTime) maxTime = time
      if (view.getUint32(at + FRAME_METRIC) !== metric) metric = 0
    }
    this.metric = metric
    this.minTime = minTime
    this.maxTime = maxTime
    this.length = end
    this.count += count
    this.unsettled += count
    this.unsettledBytes += bytes
  }

  isSettled(ordinal: number): boolean {
    if (ordinal < this.settledPrefix) return true
    return this.settledBits !== undefined && ((this.settledBits[ordinal >> 3] ?? 0) & (1 << (ordinal & 7))) !== 0
  }

  /** How many values are neither settled nor in a durable batch. */
  get countUnstored(): number {
    let unstored = 0
    for (let ordinal = this.durable; ordinal < this.count; ordinal++) if (!this.isSettled(ordinal)) unstored++
    return unstored
  }

  /** The last id of the run of settled values that begins at `ordinal`, or the id before it. */
  settledFrom(ordinal: number): number {
    while (ordinal < this.count && this.isSettled(ordinal)) ordinal++
    return this.first + ordinal - 1
  }

  /** The transaction id of its last value that is not settled. */
  get lastUnsettled(): number {
    let ordinal = this.count - 1
    while (this.isSettled(ordinal)) ordinal--
    return this.first + ordinal
  }

  /** Marks a value as settled; false if it was. `countSettled` has to follow, here and below. */
  settle(ordinal: number): boolean {
    if (ordinal === this.settledPrefix) {
      this.settledPrefix++
      if (this.settledBits) {
        while (this.settledPrefix < this.count && this.#bit(this.settledPrefix)) this.settledPrefix++
      }
      return true
    }
    if (this.isSettled(ordinal)) return false
    const index = ordinal >> 3
    if (this.settledBits === undefined || index >= this.settledBits.length) this.#growBits(index)
    const bits = this.settledBits as Uint8Array
    bits[index] = (bits[index] as number) | (1 << (ordinal & 7))
    return true
  }

  /** Marks all values below an ordinal as settled; returns how many were not. */
  settleBelow(end: number): number {
    let count = 0
    if (this.settledBits === undefined) {
      count = Math.max(0, end - this.settledPrefix)
      this.settledPrefix = Math.max(this.settledPrefix, end)
    } else {
      for (let ordinal = this.settledPrefix; ordinal < end; ordinal++) if (this.settle(ordinal)) count++
    }
    return count
  }

  settleAll(): void {
    this.settledPrefix = this.count
    this.settledBits = undefined
  }

  /** Counts values as settled; returns their bytes, by the average of the block: exact again with its last value. */
  countSettled(count: number): number {
    const { unsettled, unsettledBytes } = this
    const bytes = count === unsettled ? unsettledBytes : Math.floor((unsettledBytes * count) / unsettled)
    this.unsettled = unsettled - count
    this.unsettledBytes = unsettledBytes - bytes
    return bytes
  }

  #bit(ordinal: number): boolean {
    return (((this.settledBits as Uint8Array)[ordinal >> 3] ?? 0) & (1 << (ordinal & 7))) !== 0
  }

  #growBits(index: number): void {
    const grown = new Uint8Array(Math.max(index + 1, (this.count + 7) >> 3, 2 * (this.settledBits?.length ?? 0)))
    if (this.settledBits) grown.set(this.settledBits)
    this.settledBits = grown
  }

  /** The bitmap of settled values, as it is stored. */
  bitmap(): Uint8Array {
    const bitmap = new Uint8Array((this.count + 7) >> 3)
    if (this.settledBits) bitmap.set(this.settledBits.subarray(0, bitmap.length))
    for (let i = 0; i < this.settledPrefix; i++) bitmap[i >> 3] = (bitmap[i >> 3] as number) | (1 << (i & 7))
    return bitmap
  }

  /** Takes over a stored bitmap. */
  restoreBitmap(bitmap: Uint8Array): void {
    for (let i = 0; i < this.count; i++) {
      if (((bitmap[i >> 3] ?? 0) & (1 << (i & 7))) !== 0) this.settle(i)
    }
  }

  /** Gives waiting frames their transaction ids, in memory if the bytes are here. */
  number(first: number): void {
    this.first = first
    if (this.chunk) numberFrames(this.chunk.view, this.length, first)
  }

  /** The next frames were handed to the connection, or skipped. */
  advance(count: number, length: number): void {
    this.sent += count
    this.sentLength += length
  }

  /** The connection is gone: everything that is not settled is to be sent again. */
  rewind(): void {
    this.sent = 0
    this.sentLength = 0
    this.inFlight = 0
    this.inFlightBytes = 0
  }

  dropBytes(): void {
    this.chunk?.release()
    this.chunk = undefined
  }
}

/**
 * Writes a frame without its id. `head` is a template of length, metric id, id, time and constants; `tail` is the type and value.
 * Returns its length.
 */
export function writeFrame(
  { bytes, view }: Pick<Chunk, 'bytes' | 'view'>,
  at: number,
  head: Uint8Array,
  tail: Uint8Array,
  time: number,
): number {
  const length = head.length + tail.length
  bytes.set(head, at)
  bytes.set(tail, at + head.length)
  view.setUint32(at, length - 4)
  setUint53(view, at + FRAME_TIME, time)
  return length
}

/** Writes consecutive ids into VALUE frames that stand back to back. */
export function numberFrames(view: DataView, length: number, first: number): void {
  let id = first
  for (let at = 0; at < length; at += 4 + view.getUint32(at)) setUint53(view, at + FRAME_TRANSACTION, id++)
}

/** A number below 2^53 as uint64. */
export function setUint53(view: DataView, at: number, value: number): void {
  const high = Math.floor(value / 0x100000000)
  view.setUint32(at, high)
  view.setUint32(at + 4, value - high * 0x100000000)
}

export function getUint53(view: DataView, at: number): number {
  return view.getUint32(at) * 0x100000000 + view.getUint32(at + 4)
}
