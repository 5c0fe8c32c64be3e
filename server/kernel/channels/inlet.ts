/**
 * The open end of a queue's sending order: a frame that arrives is written into the last block at once, and counted with those
 * that came after it when the inlet is closed. With a thousand channels, the places in memory that a value touches decide what
 * it costs; here they are few, and the limits are judged once for the room that is left.
 *
 * An inlet stays open only while feeds have their turn, or a wing its step. `Queue` has no other way to its parts than `closed`, so
 * nothing of it is read or changed before the inlet is closed. In
 * `fan-out`, 1.03 million values a second arrive instead of 0.86; `durable` needs 1.11 CPU seconds per million instead of 1.2.
 */
import { type Block, writeFrame } from './block.ts'
import type { QueueLedger } from './ledger.ts'
import type { Persistence } from './persistence.ts'
import type { Chunk } from './pool.ts'
import type { QueueHost, SharedLimit } from './queue-host.ts'
import type { SettledQueue, Settlement } from './settlement.ts'
import type { TransactionIds } from './transaction-ids.ts'

export class Inlet<Parts extends SettledQueue = SettledQueue> {
  /** Where the frames in the block end, and where the last one has to end: at 0 while the inlet is closed. */
  #length = 0
  #end = 0
  #chunk: Chunk | undefined
  #count = 0
  #isDurable = false
  readonly #host: QueueHost
  readonly #share: SharedLimit
  /** `QueueHost.refusesAbove`, if it concerns this queue. */
  #mostUnstored = 0
  #block: Block | undefined
  readonly #ids: TransactionIds
  readonly #ledger: QueueLedger
  readonly #persistence: Persistence
  readonly #settlement: Settlement
  readonly #parts: Parts

  constructor(parts: Parts) {
    const { ids, ledger, persistence, settlement, host, share } = parts
    this.#parts = parts
    this.#ids = ids
    this.#ledger = ledger
    this.#persistence = persistence
    this.#settlement = settlement
    this.#host = host
    this.#share = share
  }

  /** Takes a value as `Queue.append` does. Returns false if it is closed, or a limit is near: then more has to be looked at. */
  take(head: Uint8Array, tail: Uint8Array, time: number): boolean {
    const length = head.length + tail.length
    const share = this.#share
    if (this.#length + length > this.#end || share.bytes + length > share.limit) return false
    if (this.#host.unstored > this.#mostUnstored) return false
    this.put(head, tail, time)
    return true
  }

  /** Opens for frames at the end of a block, which has memory for the first: they may reach up to `end` in it. */
  open(block: Block, end: number): void {
    this.#block = block
    this.#chunk = block.chunk
    this.#length = block.length
    this.#end = Math.min(block.size, end)
    this.#isDurable = this.#persistence.isDurable
    this.#mostUnstored = this.#isDurable ? this.#host.refusesAbove : Number.POSITIVE_INFINITY
    this.#persistence.touch(block)
  }

  /** Writes a value into the open block, where there is room for it. Whether it may come was judged. */
  put(head: Uint8Array, tail: Uint8Array, time: number): void {
    const length = writeFrame(this.#chunk as Chunk, this.#length, head, tail, time)
    this.#length += length
    this.#count++
    this.#share.bytes += length
    if (this.#isDurable) this.#host.unstored += length
  }

  /** Stays open if it may. */
  leaveOpen(): void {
    if (!this.#host.inlets.keep(this)) this.close()
  }

  /** The parts of the queue, to be read or changed: it is closed before. */
  closed(): Parts {
    this.close()
    return this.#parts
  }

  /** Counts what it took, and gives it ids. */
  close(): void {
    const block = this.#block
    if (block === undefined) return
    const count = this.#count
    const bytes = this.#length - block.length
    this.#block = undefined
    this.#chunk = undefined
    this.#end = 0
    this.#count = 0
    if (count === 0) return
    const first = block.lane === 0 ? this.#ids.give(count) : 0
    block.extend(count, bytes, this.#isDurable ? first : 0)
    this.#ledger.accepted += count
    this.#host.accepted += count
    this.#settlement.enterCounted(count, bytes)
    this.#persistence.appended(block, this.#host.stamp())
  }
}
