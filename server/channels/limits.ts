/**
 * What happens when a channel is full or its values are too old [MON 8 Limits, GAP]. Limits never touch a value in flight
 * on an open connection; what they drop is told by a GAP in its place. One drop frees at most a block: an eighth of the limit.
 */
import { GapReason } from '../../protocol/monitor/constants.ts'
import { type Block, FRAME_METRIC, FRAME_TIME, getUint53 } from './block.ts'
import { GapEntry, type Loss } from './gap.ts'
import type { Lane } from './lane.ts'
import type { DropCause } from './ledger.ts'
import type { QueueState } from './queue-state.ts'
import { settleAll, settleGap, settleOne } from './settling.ts'

const MAX_UNSENT_GAPS = 1024

/**
 * Frees room for `bytes` by the channel's policy; false if the arriving value has to go. Where it is the tenant that has
 * too much, the channel that wants more gives way: no other one loses for it.
 */
export function makeRoom(queue: QueueState, bytes: number): boolean {
  const { overflow, maxBytes } = queue.settings
  const { share } = queue
  if (overflow === 'drop-newest' || bytes > maxBytes) return false
  while (queue.bytes + bytes > maxBytes || share.bytes + bytes > share.limit) {
    const oldest = oldestUnsent(queue)
    if (oldest === undefined) return false
    dropUnsent(queue, oldest.lane, oldest.index, 'overflow')
  }
  return true
}

/** Drops what is older than `max_age` and not in flight. All blocks are looked at: released ones may be older than those before. */
export function expire(queue: QueueState): void {
  const before = queue.host.age() - queue.settings.maxAgeMs
  for (const lane of queue.lanes()) {
    for (let index = unsentIndex(lane, 0); index >= 0; ) {
      const isOld = (lane.at(index) as Block).appendedAge < before
      if (isOld) dropUnsent(queue, lane, index, 'expired')
      index = unsentIndex(lane, isOld ? index : index + 1)
    }
  }
}

function oldestUnsent(queue: QueueState): { lane: Lane; index: number } | undefined {
  let oldest: { lane: Lane; index: number; stamp: number } | undefined
  for (const lane of queue.lanes()) {
    const index = unsentIndex(lane, 0)
    if (index < 0) continue
    const { appendedAge } = lane.at(index) as Block
    if (oldest === undefined || appendedAge < oldest.stamp) oldest = { lane, index, stamp: appendedAge }
  }
  return oldest
}

/** The first block from the cursor on with values that are not sent; -1 if there is none. */
function unsentIndex(lane: Lane, from: number): number {
  for (let index = Math.max(from, lane.cursor); index < lane.length; index++) {
    const entry = lane.at(index)
    if (entry?.kind === 'block' && entry.unsettled > entry.inFlight && !entry.exempt) return index
  }
  return -1
}

/** Drops the values of a block that are not in flight and puts a GAP in their place. */
function dropUnsent(queue: QueueState, lane: Lane, index: number, cause: DropCause & keyof typeof GapReason): void {
  const block = lane.at(index) as Block
  const loss = lossOf(block, GapReason[cause])
  const transaction = queue.settings.durable && lane.id === 0 ? block.lastUnsettled : 0
  block.sealed = true
  if (block.inFlight === 0) {
    settleAll(queue, block, cause)
    lane.remove(index)
    insertLoss(queue, lane, index, loss, transaction, block)
  } else {
    for (let ordinal = block.sent; ordinal < block.count; ordinal++) settleOne(queue, block, ordinal, cause)
    // Nothing of it is to be sent any more: it need not be read back to find that out.
    block.sent = block.count
    block.sentLength = block.length
    insertLoss(queue, lane, index + 1, loss, transaction, block)
  }
  queue.listener.ready()
}

/** A block that cannot be read back: what is not in flight of it is lost, and only that. */
export function addDamage(queue: QueueState, block: Block): void {
  const lane = queue.sending
  const index = lane.find(block.first)
  if (lane.at(index) === block && block.unsettled > block.inFlight) dropUnsent(queue, lane, index, 'damaged')
}

/** What is lost with the values of a block that are not in flight; by their frames if not all go and they are here. */
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

/** Books a loss at `index`, in the place of a dropped block or behind it: into a neighbour of the same reason, or as a GAP of its own. */
function insertLoss(
  queue: QueueState,
  lane: Lane,
  index: number,
  loss: Loss,
  transaction: number,
  dropped: Block,
): void {
  const before = lane.at(index - 1)
  const behind = lane.at(index)
  if (mergeable(behind, loss)) {
    mergeInto(queue, behind, loss, transaction)
    if (mergeable(before, loss)) joinGaps(queue, lane, index - 1, behind)
  } else if (mergeable(before, loss)) {
    mergeInto(queue, before, loss, transaction)
  } else {
    // A buffer lane comes back from the store in the order of ids, so there the GAP takes over that of its block.
    const id = lane.id === 0 ? queue.host.nextId() : dropped.id
    addGap(queue, lane, index, new GapEntry(id, lane.id, transaction, loss))
  }
}

/** Books a loss at the end of a lane: values that were not taken in. */
export function addLoss(queue: QueueState, lane: Lane, loss: Loss): void {
  const last = lane.lastUnsettled
  if (mergeable(last, loss)) {
    mergeInto(queue, last, loss, last.transaction)
    return
  }
  const { tail } = lane
  if (tail?.kind === 'block') tail.sealed = true
  const transaction = lane.id === 0 ? queue.next++ : 0
  const id = queue.host.nextId()
  addGap(queue, lane, lane.length, new GapEntry(id, lane.id, queue.settings.durable ? transaction : 0, loss))
}

function mergeable(entry: Block | GapEntry | undefined, loss: Loss): entry is GapEntry {
  return entry?.kind === 'gap' && !entry.wasSent && !entry.settled && entry.reason === loss.reason
}

/** The GAP at `index` becomes part of one behind it. */
function joinGaps(queue: QueueState, lane: Lane, index: number, into: GapEntry): void {
  const gap = lane.at(index) as GapEntry
  mergeInto(queue, into, gap, into.transaction)
  settleGap(queue, gap)
  lane.remove(index)
}

/** A GAP that is released joins one of the same reason at the end of the sending order; false if there is none. */
export function joinTail(queue: QueueState, gap: GapEntry): boolean {
  const last = queue.sending.lastUnsettled
  if (!mergeable(last, gap)) return false
  mergeInto(queue, last, gap, last.transaction)
  settleGap(queue, gap)
  return true
}

function mergeInto(queue: QueueState, gap: GapEntry, loss: Loss, transaction: number): void {
  gap.merge(loss, transaction)
  queue.touchGap(gap)
}

function addGap(queue: QueueState, lane: Lane, index: number, gap: GapEntry): void {
  lane.insert(index, gap)
  queue.ledger.gaps++
  queue.unsentGaps++
  queue.lastAppend = queue.host.age()
  queue.touchGap(gap)
  if (queue.unsentGaps > MAX_UNSENT_GAPS) mergeOldest(queue)
  if (lane.id === 0) queue.listener.ready()
}

/** Too many GAPs: the two oldest of a lane become one, in the place of the second. */
function mergeOldest(queue: QueueState): void {
  for (const lane of queue.lanes()) {
    let first = -1
    for (let index = lane.cursor; index < lane.length; index++) {
      const entry = lane.at(index)
      if (entry?.kind !== 'gap' || entry.wasSent || entry.settled) continue
      if (first < 0) {
        first = index
        continue
      }
      joinGaps(queue, lane, first, entry)
      return
    }
  }
}
