/**
 * Values leave a queue here: committed, dropped or stopped, each exactly once. Everything that follows from that is counted
 * here and nowhere else: the ledger's sums, the bytes of the channel and of its tenant.
 *
 * The floor is implied: the first unsettled id at the head of the sending lane. A block in flight has a count of what is
 * unsettled and, from the first value settled out of order on, a bitmap; a COMMIT in order costs one comparison and a few
 * additions.
 */

import type { Steps } from '../core/fair-work.ts'
import type { Block } from './block.ts'
import type { GapEntry } from './gap.ts'
import type { Lane, Lanes } from './lane.ts'
import type { DropCause, QueueLedger } from './ledger.ts'
import type { Persistence } from './persistence.ts'
import type { QueueCore } from './queue-core.ts'
import type { QueueListener, SharedLimit } from './queue-host.ts'
import type { TransactionIds } from './transaction-ids.ts'
import type { Window } from './window.ts'

export type SettleCause = DropCause | 'committed'

/** The parts of a queue that count and store, for those that act on them. */
export interface SettledQueue extends QueueCore {
  readonly persistence: Persistence
  readonly settlement: Settlement
}

export class Settlement {
  // One field each: to look them up in one object cost a tenth of a COMMIT. What each value touches comes first.
  /** Bytes of VALUE frames that are not settled. */
  #bytes = 0
  readonly #share: SharedLimit
  readonly #ledger: QueueLedger
  readonly #sending: Lane
  readonly #ids: TransactionIds
  readonly #persistence: Persistence
  readonly #window: Window
  readonly #lanes: Lanes
  readonly #listener: QueueListener
  #unsentGaps = 0
  /** Bytes of results that are not settled. */
  #resultBytes = 0

  constructor(parts: QueueCore & { readonly persistence: Persistence }) {
    const { ids, lanes, sending, window, ledger, persistence, listener, share } = parts
    this.#ids = ids
    this.#lanes = lanes
    this.#sending = sending
    this.#window = window
    this.#ledger = ledger
    this.#persistence = persistence
    this.#listener = listener
    this.#share = share
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether `bytes` more fit into the channel's limit, and into what its tenant may have. */
  fits(bytes: number, maxBytes: number): boolean {
    const share = this.#share
    return this.#bytes + bytes <= maxBytes && share.bytes + bytes <= share.limit
  }

  /** The bytes that fit into the channel's limit. */
  roomIn(maxBytes: number): number {
    return maxBytes - this.#bytes
  }

  /** The unsettled values of a block from the store enter the queue. */
  enter(values: number, bytes: number): void {
    this.#share.bytes += bytes
    this.enterCounted(values, bytes)
  }

  /** The same for values whose bytes are already counted for the tenant. */
  enterCounted(values: number, bytes: number): void {
    this.#ledger.unsettled += values
    this.#bytes += bytes
  }

  get resultBytes(): number {
    return this.#resultBytes
  }

  /** A block of the queue has the result of an EXECUTE, and nothing else. */
  enterResult(block: Block): void {
    block.exempt = true
    this.#resultBytes += block.length
  }

  get unsentGaps(): number {
    return this.#unsentGaps
  }

  /** A GAP entered the queue. */
  enterGap(): void {
    this.#ledger.gaps++
    this.#unsentGaps++
  }

  /** A GAP is handed to the connection. */
  sendGap(gap: GapEntry): void {
    if (!gap.wasSent) this.#unsentGaps--
    gap.wasSent = true
    this.#window.addGap(gap)
  }

  /** A GAP is committed or discarded, or became part of another one. */
  settleGap(gap: GapEntry): void {
    if (gap.settled) return
    gap.settled = true
    if (!gap.wasSent) this.#unsentGaps--
    this.#window.removeGap(gap)
    this.#persistence.settledGap(gap)
  }

  commit(transaction: number, through: boolean): boolean {
    if (transaction === 0) return true
    if (!this.#persistence.isDurable || !this.#ids.wasGiven(transaction)) return false
    const lane = this.#sending
    const { head } = lane
    // In order: one comparison and a few additions.
    if (head?.kind === 'block' && transaction >= head.first && transaction <= head.last) {
      if (!this.settleOne(head, transaction - head.first, 'committed')) this.#commitGapAfter(lane, 0, transaction)
      else if (head.unsettled === 0) lane.dropSettledHead()
    } else {
      this.#commitAt(lane, lane.find(transaction), transaction)
    }
    if (through) this.#commitThrough(lane, transaction)
    this.#window.reopen()
    return true
  }

  /** Whether a value of the sending order is neither committed nor dropped. */
  isUnsettled(transaction: number): boolean {
    const index = this.#sending.find(transaction)
    const entry = index < 0 ? undefined : this.#sending.at(index)
    return entry?.kind === 'block' && !entry.isSettled(transaction - entry.first)
  }

  /** Commits ids that follow each other, as far as they are in flight at the head, in order; returns how many that is. */
  commitRun(first: number, count: number): number {
    let done = 0
    while (done < count) {
      const more = this.#commitRunOfHead(first + done, count - done)
      if (more === 0) break
      done += more
    }
    if (done > 0) this.#window.reopen()
    return done
  }

  #commitRunOfHead(first: number, count: number): number {
    const { head } = this.#sending
    if (head?.kind !== 'block' || !this.#persistence.isDurable || head.settledBits !== undefined) return 0
    const ordinal = first - head.first
    const run = Math.min(count, head.sent - ordinal)
    if (ordinal !== head.settledPrefix || run <= 0) return 0
    this.settleBelow(head, ordinal + run, 'committed')
    if (head.unsettled === 0) this.#sending.dropSettledHead()
    return run
  }

  #commitAt(lane: Lane, index: number, transaction: number): void {
    const entry = lane.at(index)
    if (entry === undefined) return
    if (entry.kind === 'gap') {
      this.settleGap(entry)
    } else if (!this.settleOne(entry, transaction - entry.first, 'committed')) {
      this.#commitGapAfter(lane, index, transaction)
      return
    }
    if (index === 0) lane.dropSettledHead()
  }

  /** GAPs of values that were dropped after the sent ones of a block have ids of that block. */
  #commitGapAfter(lane: Lane, block: number, transaction: number): void {
    for (let index = block + 1; ; index++) {
      const entry = lane.at(index)
      if (entry === undefined || entry.first > transaction) return
      if (entry.kind === 'gap' && entry.transaction === transaction) this.settleGap(entry)
    }
  }

  /** Everything sent on this connection up to an id. */
  #commitThrough(lane: Lane, transaction: number): void {
    let index = 0
    for (;;) {
      const entry = lane.at(index)
      if (entry === undefined || index > lane.cursor || entry.first > transaction) break
      if (entry.kind === 'gap') {
        if (entry.inFlight) this.settleGap(entry)
      } else {
        this.settleBelow(entry, Math.min(entry.sent, transaction - entry.first + 1), 'committed')
      }
      const { length } = lane
      if (index === 0) lane.dropSettledHead()
      if (lane.length === length) index++
      else index = 0
    }
  }

  /** Settles one value; false if it was settled. */
  settleOne(block: Block, ordinal: number, cause: SettleCause): boolean {
    if (!block.settle(ordinal)) return false
    this.#record(block, 1, ordinal < block.sent ? 1 : 0, cause)
    return true
  }

  /** Settles the values of a block below an ordinal. They are all sent, or all unsent. */
  settleBelow(block: Block, end: number, cause: SettleCause): void {
    const count = block.settleBelow(end)
    if (count > 0) this.#record(block, count, Math.min(count, block.inFlight), cause)
  }

  /** Settles what is left of a block of which nothing is in flight, or whose values in flight go with it. */
  settleAll(block: Block, cause: SettleCause): void {
    const { unsettled, inFlight } = block
    if (unsettled === 0) return
    block.settleAll()
    this.#record(block, unsettled, inFlight, cause)
  }

  /** Counts values of a block as settled, `inFlight` of them in flight, and releases the block when none is left. */
  #record(block: Block, count: number, inFlight: number, cause: SettleCause): void {
    const ledger = this.#ledger
    const share = this.#share
    if (cause === 'committed') ledger.committed += count
    else ledger.drop(cause, count)
    ledger.unsettled -= count
    const bytes = block.countSettled(count)
    this.#bytes -= bytes
    share.bytes -= bytes
    if (inFlight > 0) this.#window.remove(block, inFlight)
    if (block.unsettled === 0) this.#release(block)
    this.#persistence.settled(block)
  }

  #release(block: Block): void {
    if (block.exempt) {
      this.#resultBytes -= block.length
      this.#listener.resultGone(block.metric)
    }
    if (block.key === undefined) return
    const latest = this.#lanes.get(block.lane)?.latest
    if (latest?.get(block.key) === block) latest.delete(block.key)
  }

  /** Discards what is in a lane, without a GAP. */
  *discard(lane: Lane): Steps<void> {
    for (const entry of lane) {
      if (entry.kind === 'gap') this.settleGap(entry)
      else this.settleAll(entry, 'stopped')
      yield
    }
  }
}
