/**
 * What goes out next on a channel's connection: slices of blocks, wire-ready, from the cursor on. Sending never copies and
 * never seals a block. Only values that are settled, stopped or beyond the window make it walk along the frames.
 */

import { FRAME_METRIC, GAP_FRAME_BYTES } from '../../../protocol/monitor/message.ts'
import type { Block } from './block.ts'
import type { GapEntry } from './gap.ts'
import { type Entry, isUnsettled } from './lane.ts'
import { type Chunk, TOTAL_RESIDENT_BYTES } from './pool.ts'
import type { SettledQueue } from './settlement.ts'

/**
 * As much as may be in flight unless a channel is configured otherwise. With 4 MiB, a consumer that was held up for 0.2 s at three
 * million values a second never caught up while they came.
 */
const READ_AHEAD_BYTES = 8 << 20
const READ_AHEAD_BLOCKS = 256

/** Bytes to be written. `chunk` is the buffer they lie in, to be held until they are out. */
export interface Slice {
  readonly kind: 'slice'
  readonly bytes: Uint8Array
  readonly chunk: Chunk | undefined
}

/**
 * `load`: the block at the cursor has to be read back first. `window`: nothing more until a COMMIT, after which the queue is
 * `ready`. `nothing`: nothing now, or nothing that has room.
 */
export type Next = Slice | { readonly kind: 'load' } | { readonly kind: 'window' } | { readonly kind: 'nothing' }

const LOAD = { kind: 'load' } as const
const WINDOW = { kind: 'window' } as const
const NOTHING = { kind: 'nothing' } as const
/** What was left of the block is settled or stopped: the next entry may follow. */
const SKIPPED = { kind: 'skipped' } as const

export class Delivery {
  readonly #parts: SettledQueue
  /** Metric id -> transaction id up to which its values are skipped. */
  readonly #stops = new Map<number, number>()

  constructor(parts: SettledQueue) {
    this.#parts = parts
  }

  get stops(): ReadonlyMap<number, number> {
    return this.#stops
  }

  stop(metric: number, through: number): void {
    this.#stops.set(metric, through)
  }

  /** Forgets the stops whose values are all sent or gone; returns their metric ids. */
  endPassedStops(): number[] {
    const floor = this.#parts.sending.head?.first ?? this.#parts.ids.next
    const ended = [...this.#stops].filter(([, through]) => through < floor).map(([metric]) => metric)
    for (const metric of ended) this.#stops.delete(metric)
    return ended
  }

  /** The connection ended or left: what was in flight is queued again, to be sent in order. */
  detach(): void {
    const { sending, window, persistence } = this.#parts
    window.clear(sending)
    sending.cursor = 0
    for (const entry of sending) if (entry.kind === 'block') persistence.releaseBytes(entry)
  }

  /** The next slice of at most `maxBytes`, or why there is none. `mayExceed`: one value that is larger may go. */
  next(maxBytes: number, mayExceed: boolean): Next {
    const { ids, sending: lane, window, persistence } = this.#parts
    const limit = window.limitBy(persistence.isDurable ? ids.reserved : Number.POSITIVE_INFINITY)
    for (;;) {
      const entry = lane.at(lane.cursor)
      if (entry === undefined) return NOTHING
      if (entry.kind === 'gap') {
        if (!entry.settled && !entry.inFlight)
          return this.#sendGap(entry, limit, mayExceed ? GAP_FRAME_BYTES : maxBytes)
      } else if (entry.unsettled > 0 && entry.sent < entry.count) {
        const next = this.#sendBlock(entry, limit, maxBytes, mayExceed)
        if (next.kind !== 'skipped') return next
        continue
      } else {
        if (!entry.sealed && entry === lane.tail) return NOTHING
        persistence.releaseBytes(entry)
      }
      if (lane.cursor === 0 && !isUnsettled(entry)) lane.shift()
      else lane.cursor++
    }
  }

  #sendGap(gap: GapEntry, limit: number, maxBytes: number): Next {
    const { sending, window, persistence, settlement } = this.#parts
    // On a channel that is not durable it has no id to be compared: any barrier keeps it back.
    if (gap.transaction === 0 ? window.hasBarriers : gap.transaction >= limit) return NOTHING
    if (window.isFull) return this.#standStill()
    if (GAP_FRAME_BYTES > maxBytes) return NOTHING
    const slice: Slice = { kind: 'slice', bytes: gap.frame(), chunk: undefined }
    settlement.sendGap(gap)
    sending.cursor++
    if (!persistence.isDurable) {
      settlement.settleGap(gap)
      sending.dropSettledHead()
    }
    return slice
  }

  #standStill(): Next {
    this.#parts.window.standStill()
    return WINDOW
  }

  /** A run of frames from a block. */
  #sendBlock(block: Block, limit: number, maxBytes: number, mayExceed: boolean): Next | typeof SKIPPED {
    const end = Math.min(block.count, limit - block.first)
    if (end <= block.sent) return NOTHING
    const { window } = this.#parts
    if (window.isFull) return this.#standStill()
    const { chunk } = block
    if (chunk === undefined) return LOAD
    const room = window.roomForBytes
    const bytes = Math.min(maxBytes, room)
    const count = block.count - block.sent
    const length = block.length - block.sentLength
    const isWhole = block.settledBits === undefined && block.settledPrefix <= block.sent && this.#stops.size === 0
    if (isWhole && end === block.count && count <= window.roomForValues && length <= bytes) {
      return this.#hand(block, chunk, count, length)
    }
    this.#skip(block, chunk, end)
    if (block.unsettled === 0 || block.sent >= end) return SKIPPED
    const first = 4 + chunk.view.getUint32(block.sentLength)
    // One value may always be in flight; a second one that does not fit the window may not.
    if (first > room && !window.isEmpty) return this.#standStill()
    if (first > maxBytes && !mayExceed) return NOTHING
    return this.#takeRun(block, chunk, end, bytes)
  }

  /** Skips what is settled or stopped. */
  #skip(block: Block, chunk: Chunk, end: number): void {
    while (block.unsettled > 0 && block.sent < end && this.#isSkipped(block, chunk, block.sent, block.sentLength)) {
      const length = 4 + chunk.view.getUint32(block.sentLength)
      // Settled before it counts as sent: it was never in flight.
      this.#parts.settlement.settleOne(block, block.sent, 'stopped')
      block.advance(1, length)
    }
    if (block.unsettled === 0) this.#parts.sending.dropSettledHead()
  }

  #isSkipped(block: Block, chunk: Chunk, ordinal: number, at: number): boolean {
    if (block.isSettled(ordinal)) return true
    if (this.#stops.size === 0) return false
    const through = this.#stops.get(chunk.view.getUint32(at + FRAME_METRIC))
    return through !== undefined && block.first + ordinal <= through
  }

  /** The frames below the ordinal `end` that fit, at least one. */
  #takeRun(block: Block, chunk: Chunk, end: number, maxBytes: number): Slice {
    const { view } = chunk
    const start = block.sentLength
    const last = Math.min(end, block.sent + this.#parts.window.roomForValues)
    let at = start
    let ordinal = block.sent
    for (; ordinal < last && !this.#isSkipped(block, chunk, ordinal, at); ordinal++) {
      const length = 4 + view.getUint32(at)
      if (at > start && at + length - start > maxBytes) break
      at += length
    }
    return this.#hand(block, chunk, ordinal - block.sent, at - start)
  }

  /** Counts `count` values as in flight; on a channel that is not durable, sent is committed. */
  #hand(block: Block, chunk: Chunk, count: number, length: number): Slice {
    const { sending, window, persistence, settlement, host } = this.#parts
    const start = block.sentLength
    const slice: Slice = { kind: 'slice', bytes: chunk.bytes.subarray(start, start + length), chunk }
    chunk.hold()
    block.advance(count, length)
    host.sent += count
    if (persistence.isDurable) {
      window.add(block, count, length)
    } else {
      if (block.sent === block.count) settlement.settleAll(block, 'committed')
      else settlement.settleBelow(block, block.sent, 'committed')
      sending.dropSettledHead()
    }
    return slice
  }

  /**
   * The blocks to be read back of those that are sent next, without those that are being read: `loaded` follows for each.
   * They are several, since reads wait for the batch that is being written. A consumer that takes 256 KiB per batch would never catch up.
   */
  readAhead(): Block[] {
    const {
      sending: lane,
      host: { pool },
    } = this.#parts
    const room = Math.min(READ_AHEAD_BYTES, TOTAL_RESIDENT_BYTES - pool.used - pool.loading)
    const blocks: Block[] = []
    let bytes = 0
    let seen = 0
    for (let index = lane.cursor; index < lane.length && seen < READ_AHEAD_BLOCKS; index++) {
      const entry = lane.at(index) as Entry
      if (entry.kind === 'gap' || entry.unsettled === 0) continue
      seen++
      bytes += entry.length
      // The one at the cursor is read, whatever room there is.
      if (bytes > room && bytes > entry.length) break
      if (entry.chunk !== undefined || entry.isLoading) continue
      entry.isLoading = true
      pool.loading += entry.length
      blocks.push(entry)
    }
    return blocks
  }

  endLoading(block: Block): void {
    if (!block.isLoading) return
    block.isLoading = false
    this.#parts.host.pool.loading -= block.length
  }
}
