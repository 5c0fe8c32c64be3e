/**
 * Losses: what happens when a channel is full, its values are too old, or a block cannot be read back [MON 8 Limits, GAP].
 * Limits never touch a value in flight on an open connection. A GAP in the place of the values reports what is dropped;
 * losses of the same reason side by side become one GAP as long as it is unsent. One drop frees at most a block: an eighth
 * of the limit.
 */

import { GapReason } from '../../../protocol/monitor/constants.ts'
import { FRAME_METRIC, FRAME_TIME } from '../../../protocol/monitor/message.ts'
import { type Block, getUint53 } from './block.ts'
import { GapEntry, type Loss } from './gap.ts'
import type { Entry, Lane, Lanes } from './lane.ts'
import { LanesByAge } from './lanes-by-age.ts'
import type { DropCause } from './ledger.ts'
import type { QueueSettings } from './queue-host.ts'
import type { SettledQueue } from './settlement.ts'

const MAX_UNSENT_GAPS = 1024

export class Losses {
  readonly #parts: SettledQueue
  /** The buffer lanes that may have values to drop, by age. It exists only while the channel is full. */
  #waitingByAge: LanesByAge | undefined
  /** Nothing that is not in flight was appended before this age. */
  #noneBefore = Number.NEGATIVE_INFINITY
  /** The lanes that may have more than one unsent GAP. */
  readonly #lanesWithGaps = new Set<Lane>()

  constructor(parts: SettledQueue) {
    this.#parts = parts
  }

  /**
   * Frees room for `bytes` by the channel's policy; false if the arriving value has to go. Where it is the tenant that has
   * too much, the channel that wants more gives way: no other one loses values for it. `older` is the block that the
   * arriving value supersedes: its bytes count as free, and it is not dropped.
   */
  makeRoom({ overflow, maxBytes }: QueueSettings, bytes: number, older?: Block): boolean {
    if (overflow === 'drop-newest' || bytes > maxBytes) return false
    const more = older === undefined ? bytes : bytes - older.unsettledBytes
    while (!this.#parts.settlement.fits(more, maxBytes)) {
      const oldest = this.#oldestUnsent(older)
      if (oldest === undefined) {
        // It may be dropped for the next value.
        if (older !== undefined && older.lane !== 0) this.waits(older)
        return false
      }
      this.#dropUnsent(oldest.lane, oldest.index, 'overflow')
    }
    return true
  }

  /** A block of a buffer lane took a value. */
  waits(block: Block): void {
    if (this.#waitingByAge === undefined) return
    const lane = this.#parts.lanes.get(block.lane)
    if (lane !== undefined) this.#waitingByAge.add(lane, block.appendedAge)
  }

  /**
   * Drops what was appended before an age and is not in flight. If anything may be that old, all blocks are looked at: released
   * ones may be older than those before.
   */
  expire(before: number): void {
    // It is built again when it is needed, so that it keeps no ended lanes in memory.
    this.#waitingByAge = undefined
    if (before <= this.#noneBefore) return
    let oldest = this.#parts.host.age()
    for (const lane of this.#parts.lanes) {
      for (let index = lane.unsentIndex(0); index >= 0; ) {
        const { appendedAge } = lane.at(index) as Block
        const isOld = appendedAge < before
        if (isOld) this.#dropUnsent(lane, index, 'expired')
        else oldest = Math.min(oldest, appendedAge)
        index = lane.unsentIndex(isOld ? index : index + 1)
      }
    }
    this.#noneBefore = oldest
  }

  /** What was in flight is not any more: it may be of any age. */
  detached(): void {
    this.#noneBefore = Number.NEGATIVE_INFINITY
  }

  /** A block cannot be read back: what is not in flight of it is lost, and only that. */
  dropDamaged(block: Block): void {
    const lane = this.#parts.lanes.sending
    const index = lane.find(block.first)
    if (lane.at(index) === block && block.unsettled > block.inFlight) this.#dropUnsent(lane, index, 'damaged')
  }

  #oldestUnsent(older: Block | undefined): { lane: Lane; index: number } | undefined {
    const { lanes } = this.#parts
    const ageOf = (lane: Lane): number | undefined =>
      (lane.at(firstUnsent(lane, older)) as Block | undefined)?.appendedAge
    this.#waitingByAge ??= lanesByAge(lanes)
    const waiting = this.#waitingByAge.oldest((lane) => (lanes.get(lane.id) === lane ? ageOf(lane) : undefined))
    const age = ageOf(lanes.sending)
    const lane = waiting === undefined || (age !== undefined && age <= ageOf(waiting)!) ? lanes.sending : waiting
    const index = firstUnsent(lane, older)
    return index < 0 ? undefined : { lane, index }
  }

  /** Drops the values of a block that are not in flight and puts a GAP in their place. */
  #dropUnsent(lane: Lane, index: number, cause: DropCause & keyof typeof GapReason): void {
    const { settlement, persistence, listener } = this.#parts
    const block = lane.at(index) as Block
    const loss = lossOf(block, GapReason[cause])
    const transaction = persistence.isDurable && lane.id === 0 ? block.lastUnsettled : 0
    block.sealed = true
    if (block.inFlight === 0) {
      settlement.settleAll(block, cause)
      lane.remove(index)
      this.#insertLoss(lane, index, loss, transaction, block)
    } else {
      for (let ordinal = block.sent; ordinal < block.count; ordinal++) settlement.settleOne(block, ordinal, cause)
      // Nothing of it is to be sent any more: it need not be read back to find that out.
      block.advance(block.count - block.sent, block.length - block.sentLength)
      this.#insertLoss(lane, index + 1, loss, transaction, block)
    }
    listener.ready()
  }

  /** Records a loss at the end of a lane: values that were not accepted. */
  add(lane: Lane, loss: Loss): void {
    const last = lane.lastUnsettled
    if (mergeable(last, loss)) {
      this.#mergeInto(last, loss, last.transaction)
      return
    }
    const { ids, host, persistence } = this.#parts
    lane.sealTail()
    const transaction = lane.id === 0 ? ids.give() : 0
    this.#insertGap(
      lane,
      lane.length,
      new GapEntry(host.nextId(), lane.id, persistence.isDurable ? transaction : 0, loss),
    )
  }

  /**
   * Records a loss at `index`, in the place of a dropped block or after it: in a neighbour of the same reason, or as a GAP
   * of its own.
   */
  #insertLoss(lane: Lane, index: number, loss: Loss, transaction: number, dropped: Block): void {
    const before = lane.at(index - 1)
    const after = lane.at(index)
    if (mergeable(after, loss)) {
      this.#mergeInto(after, loss, transaction)
      if (mergeable(before, loss)) this.#join(lane, index - 1, after)
    } else if (mergeable(before, loss)) {
      this.#mergeInto(before, loss, transaction)
    } else {
      // A buffer lane comes back from the store in the order of ids, so there the GAP takes the id of its block.
      const id = lane.id === 0 ? this.#parts.host.nextId() : dropped.id
      this.#insertGap(lane, index, new GapEntry(id, lane.id, transaction, loss))
    }
  }

  /** A released GAP joins one of the same reason at the end of the sending order; false if there is none. */
  joinTail(gap: GapEntry): boolean {
    const last = this.#parts.lanes.sending.lastUnsettled
    if (!mergeable(last, gap)) {
      this.#lanesWithGaps.add(this.#parts.lanes.sending)
      return false
    }
    this.#mergeInto(last, gap, last.transaction)
    this.#parts.settlement.settleGap(gap)
    return true
  }

  /** The GAP at `index` becomes part of a later one. */
  #join(lane: Lane, index: number, into: GapEntry): void {
    const gap = lane.at(index) as GapEntry
    this.#mergeInto(into, gap, into.transaction)
    this.#parts.settlement.settleGap(gap)
    lane.remove(index)
  }

  #mergeInto(gap: GapEntry, loss: Loss, transaction: number): void {
    gap.merge(loss, transaction)
    this.#parts.persistence.touchGap(gap)
  }

  #insertGap(lane: Lane, index: number, gap: GapEntry): void {
    const { persistence, settlement, listener } = this.#parts
    lane.insert(index, gap)
    settlement.enterGap()
    persistence.entered()
    persistence.touchGap(gap)
    this.#lanesWithGaps.add(lane)
    if (settlement.unsentGaps > MAX_UNSENT_GAPS) this.#mergeOldest()
    if (lane.id === 0) listener.ready()
  }

  /** There are too many GAPs: the two oldest of a lane become one, in the place of the second. */
  #mergeOldest(): void {
    for (const lane of this.#lanesWithGaps) {
      let first = -1
      const isOpen = this.#parts.lanes.get(lane.id) === lane
      for (let index = lane.cursor; isOpen && index < lane.length; index++) {
        const entry = lane.at(index)
        if (entry?.kind !== 'gap' || entry.wasSent || entry.settled) continue
        if (first < 0) {
          first = index
          continue
        }
        this.#join(lane, first, entry)
        return
      }
      this.#lanesWithGaps.delete(lane)
    }
  }
}

function lanesByAge(lanes: Lanes): LanesByAge {
  const byAge = new LanesByAge()
  for (const lane of lanes) if (lane !== lanes.sending) byAge.add(lane, Number.NEGATIVE_INFINITY)
  return byAge
}

/** As `Lane.unsentIndex(0)`, except that `older` does not count. */
function firstUnsent(lane: Lane, older: Block | undefined): number {
  const index = lane.unsentIndex(0)
  return older !== undefined && lane.at(index) === older ? lane.unsentIndex(index + 1) : index
}

function mergeable(entry: Entry | undefined, loss: Loss): entry is GapEntry {
  return (
    entry?.kind === 'gap' &&
    !entry.wasSent &&
    !entry.settled &&
    entry.reason === loss.reason &&
    entry.producer === loss.producer
  )
}

/** The loss of the values of a block that are not in flight; from their frames if not all go and the bytes are here. */
function lossOf(block: Block, reason: GapReason): Loss {
  const { chunk, sent, sentLength, length } = block
  const count = block.unsettled - block.inFlight
  if (chunk === undefined || count === block.count) {
    return { reason, metric: block.metric, count, from: block.minTime, to: block.maxTime }
  }
  const { view } = chunk
  let [metric, from, to] = [-1, Number.POSITIVE_INFINITY, 0]
  for (let ordinal = sent, at = sentLength; at < length; ordinal++, at += 4 + view.getUint32(at)) {
    if (block.isSettled(ordinal)) continue
    const time = getUint53(view, at + FRAME_TIME)
    const of = view.getUint32(at + FRAME_METRIC)
    metric = metric === -1 || metric === of ? of : 0
    from = Math.min(from, time)
    to = Math.max(to, time)
  }
  return { reason, metric, count, from, to }
}
