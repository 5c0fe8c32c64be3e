/**
 * What of a queue is on disk, what is to be stored, and whose bytes are in memory. A block wholly settled before a batch
 * takes it is never written. A small block stays open when it is taken and is written again, longer, by the next batch:
 * otherwise a slow channel would leave a row per value.
 */
import { SMALL_BLOCK_BYTES } from '../../../storage/store.ts'
import type { BatchBuilder } from './batch.ts'
import type { Block } from './block.ts'
import type { GapEntry } from './gap.ts'
import type { Journaled } from './journal.ts'
import { type Entry, isUnsettled, type Lanes } from './lane.ts'
import type { QueueLedger } from './ledger.ts'
import { Chunk, TOTAL_RESIDENT_BYTES } from './pool.ts'
import type { QueueCore } from './queue-core.ts'
import type { QueueHost, QueueListener } from './queue-host.ts'
import type { TransactionIds } from './transaction-ids.ts'

/** A channel quiet for this long gives the rest of its range of ids back. */
const QUIET_MS = 10_000
/** A lagging consumer's frames in memory; beyond it they are read back when their turn comes. */
const RESIDENT_BYTES = 512 << 10
/** The same while all channels together keep to what the pool may give. */
const MAX_RESIDENT_BYTES = 8 << 20

export class Persistence implements Journaled {
  // What each value touches comes first, and the parts are fields: with a thousand channels, each line of memory counts.
  #isDurable: boolean
  readonly #host: QueueHost
  /** Bytes of frames held in memory. */
  #resident = 0
  /** Age of the last value, for giving the range of ids back. */
  #lastAppend = Number.NEGATIVE_INFINITY
  #numbersChanged = false
  readonly #listener: QueueListener
  readonly #ids: TransactionIds
  readonly #lanes: Lanes
  readonly #ledger: QueueLedger
  readonly #channel: number
  /** A connection has the channel: bytes that it will be sent soon are kept. */
  isConnected = false

  #dirtyBlocks: Block[] | undefined
  #dirtyGaps: GapEntry[] = []
  #movedBlocks: Block[] = []
  #removedBlocks: number[] = []
  #removedGaps: number[] = []
  /** The blocks that the batch on its way was made from. */
  #submittedBlocks: readonly Block[] | undefined

  constructor({ channel, settings, ids, lanes, ledger, host, listener }: QueueCore) {
    this.#isDurable = settings.durable
    this.#host = host
    this.#listener = listener
    this.#ids = ids
    this.#lanes = lanes
    this.#ledger = ledger
    this.#channel = channel
  }

  /** Values survive a restart. */
  get isDurable(): boolean {
    return this.#isDurable
  }

  /** Changes with an empty queue only. */
  set isDurable(durable: boolean) {
    if (durable === this.#isDurable) return
    // Once more while it is durable, so that what was removed goes on disk; or for the first time since it is.
    this.changed()
    this.#isDurable = durable
    // What a channel that left the store had to store was forgotten.
    this.#numbersChanged = false
    this.changed()
  }

  get resident(): number {
    return this.#resident
  }

  /** Makes room for a frame; false if the block would exceed `maxBytes` with it. */
  reserve(block: Block, bytes: number, maxBytes: number): boolean {
    const before = block.size
    if (!block.reserve(bytes, maxBytes, this.#host.pool)) return false
    this.#resident += block.size - before
    return true
  }

  /** Frames were appended to a block, the last one at `age`. */
  appended(block: Block, age: number): void {
    this.#lastAppend = block.appendedAge = age
    this.touch(block)
  }

  /** A GAP entered the queue, or values moved into the sending order. */
  entered(): void {
    this.#lastAppend = this.#host.age()
  }

  touch(block: Block): void {
    if (!this.#isDurable) return
    if (!block.dirty) {
      block.dirty = true
      // An array made by `push` has room for 17: with ten thousand channels and a value a second that was felt.
      if (this.#dirtyBlocks) this.#dirtyBlocks.push(block)
      else this.#dirtyBlocks = [block]
    }
    this.changed()
  }

  touchGap(gap: GapEntry): void {
    if (!this.#isDurable) return
    if (!gap.dirty) {
      gap.dirty = true
      this.#dirtyGaps.push(gap)
    }
    this.changed()
  }

  /** A block was given ids and moved to the sending lane. */
  moved(block: Block): void {
    if (this.#isDurable) this.#movedBlocks.push(block)
  }

  /** The numbers of the channel, at least, are to be stored. */
  changed(): void {
    if (this.#numbersChanged || !this.#isDurable) return
    this.#numbersChanged = true
    this.#listener.changed()
    // Nothing may be sent before, and after a crash nothing would say that a value was there.
    if (this.#ids.reserved <= this.#ids.next) this.#listener.awaited()
  }

  /** Values of a block were settled. */
  settled(block: Block): void {
    if (block.unsettled === 0) this.#discard(block)
    else if (!block.settledChanged) {
      block.settledChanged = true
      this.touch(block)
    }
    this.changed()
  }

  #discard(block: Block): void {
    block.sealed = true
    this.#dropBytes(block)
    if (this.#isDurable) this.#host.unstored -= block.length - block.durableLength
    block.durableLength = block.length
    if (block.submitted > 0) this.#removedBlocks.push(block.id)
  }

  /** A block that came back from the store with nothing left in it. */
  remove(block: Block): void {
    this.#removedBlocks.push(block.id)
  }

  settledGap(gap: GapEntry): void {
    if (gap.submitted) this.#removedGaps.push(gap.id)
    this.changed()
  }

  /** Frees the memory of a block that is stored, unless more is appended to it. */
  releaseBytes(block: Block): void {
    if (block.chunk === undefined || !this.#isDurable || !block.sealed || block.durable < block.count) return
    this.#dropBytes(block)
  }

  #dropBytes(block: Block): void {
    this.#resident -= block.size
    block.dropBytes()
  }

  /** The bytes of a block are back from the store. */
  loaded(block: Block, bytes: Uint8Array): void {
    if (block.chunk !== undefined || block.unsettled === 0 || !this.isConnected) return
    block.chunk = Chunk.of(bytes, this.#host.pool)
    block.number(block.first)
    this.#resident += block.size
  }

  /** Puts into a batch what is to be stored. One batch is on its way at a time; then `durable` follows. */
  submit(builder: BatchBuilder): void {
    const dirty = this.#dirtyBlocks
    this.#dirtyBlocks = undefined
    for (const block of dirty ?? []) {
      block.dirty = false
      if (block.unsettled > 0) this.#submitBlock(builder, block)
    }
    this.#submittedBlocks = dirty
    if (this.#movedBlocks.length > 0) this.#submitMoves(builder)
    for (const id of this.#removedBlocks) builder.removed.add(id)
    if (this.#removedBlocks.length > 0) this.#removedBlocks = []
    this.#submitGaps(builder)
    this.#submitNumbers(builder)
  }

  #submitMoves(builder: BatchBuilder): void {
    for (const block of this.#movedBlocks) {
      if (block.unsettled > 0 && block.submitted > 0) builder.moved.add(block.id, block.lane, block.first)
    }
    this.#movedBlocks = []
  }

  /** Writes a block that has grown, or its bitmap. */
  #submitBlock(builder: BatchBuilder, block: Block): void {
    if (block.submitted < block.count && block.chunk !== undefined) {
      const { id, lane, first, count, length, appendedAge, minTime, maxTime, metric } = block
      const offset = builder.copy(block.chunk.bytes.subarray(0, length))
      builder.blocks.add(id, this.#channel, lane, first, count, offset, length, appendedAge, minTime, maxTime, metric)
      block.submitted = count
      block.submittedLength = length
      if (length >= SMALL_BLOCK_BYTES) block.sealed = true
    }
    if (block.settledChanged) {
      block.settledChanged = false
      // At the head and settled in order, the floor says it all.
      if (block.settledBits !== undefined || this.#lanes.sending.head !== block) {
        const bitmap = block.bitmap()
        builder.settled.add(block.id, builder.copy(bitmap), bitmap.length)
      }
    }
  }

  #submitGaps(builder: BatchBuilder): void {
    for (const gap of this.#dirtyGaps) {
      gap.dirty = false
      if (gap.settled) continue
      gap.submitted = true
      const { id, lane, transaction, metric, count, from, to, reason } = gap
      builder.gaps.add(id, this.#channel, lane, transaction, metric, count, from, to, reason)
    }
    if (this.#dirtyGaps.length > 0) this.#dirtyGaps = []
    for (const id of this.#removedGaps) builder.gapsRemoved.add(id)
    if (this.#removedGaps.length > 0) this.#removedGaps = []
  }

  #submitNumbers(builder: BatchBuilder): void {
    const ids = this.#ids
    const { next } = ids
    const { head } = this.#lanes.sending
    const floor = head === undefined ? next : floorOf(head)
    const reserving = ids.submit(this.#isDurable && !this.#isQuiet)
    builder.reserves ||= ids.reserves
    builder.channels.add(this.#channel, floor, next, reserving, ...this.#ledger.row())
    this.#numbersChanged = false
  }

  /** The batch is durable. */
  durable(): void {
    const submitted = this.#submittedBlocks
    this.#submittedBlocks = undefined
    this.#ids.durable()
    let stored = this.#resident - this.#residentUnstored(submitted)
    for (const block of submitted ?? []) {
      if (block.durable === block.submitted) continue
      if (block.unsettled > 0) this.#host.unstored -= block.submittedLength - block.durableLength
      block.durable = block.submitted
      block.durableLength = block.unsettled > 0 ? block.submittedLength : block.length
      if (this.#isSentSoon(block, stored)) stored += block.size
      else this.releaseBytes(block)
    }
    this.#listener.ready()
  }

  /** The memory of blocks that the batch of `submitted` makes durable, and of those that a later one does. */
  #residentUnstored(submitted: readonly Block[] | undefined): number {
    let bytes = 0
    for (const { durable, submitted: made, size } of submitted ?? []) if (durable < made) bytes += size
    for (const { durable, submitted: made, count, size } of this.#dirtyBlocks ?? []) {
      if (durable === made && made < count) bytes += size
    }
    return bytes
  }

  /** `stored`: the bytes in memory that are on disk, too. */
  #isSentSoon(block: Block, stored: number): boolean {
    if (!this.isConnected || block.lane !== 0 || block.sent === block.count) return false
    if (stored <= RESIDENT_BYTES) return true
    return stored <= MAX_RESIDENT_BYTES && this.#host.pool.used <= TOTAL_RESIDENT_BYTES
  }

  get #isQuiet(): boolean {
    return this.#host.age() - this.#lastAppend >= QUIET_MS
  }

  /** A quiet queue gives back its range of ids, and its memory. */
  rest(): void {
    if (!this.#isQuiet) return
    if (this.#ids.reserved !== this.#ids.next) this.changed()
    for (const { tail } of this.#lanes) {
      if (tail?.kind !== 'block' || tail.sealed) continue
      tail.sealed = true
      this.releaseBytes(tail)
    }
  }

  /** The server stops: the rest of the range of ids is given back with the last batch. */
  close(): void {
    this.#lastAppend = Number.NEGATIVE_INFINITY
    this.changed()
  }

  /** Whether all of it is stored, and no ids are reserved: what came after `close`, or with its batch, may have reserved some. */
  get isClosed(): boolean {
    return !this.#isDurable || (!this.#numbersChanged && this.#ids.reserved === this.#ids.next)
  }

  /** The id up to which the sending order is stored or settled, as far as an entry of it says. */
  storedThrough(entry: Entry): number {
    const { durableNext } = this.#ids
    // A loss that is not on disk: after a crash its values would be missing without a GAP.
    if (entry.kind === 'gap')
      return isUnsettled(entry) && entry.transaction >= durableNext ? durableNext - 1 : Number.POSITIVE_INFINITY
    if (entry.unsettled === 0) return Number.POSITIVE_INFINITY
    // Released, and that is not on disk: after a crash its values would wait again, and get other ids.
    const last = entry.settledFrom(entry.first >= durableNext ? 0 : entry.durable)
    return last === entry.last ? Number.POSITIVE_INFINITY : last
  }
}

function floorOf(head: Entry): number {
  return head.kind === 'gap' ? head.transaction : head.first + head.settledPrefix
}
