/**
 * What happens when a channel is full or its values are too old [MON 8 Limits, GAP]. Limits never touch a value in flight
 * on an open connection; what they drop is told by a GAP in its place. One drop frees at most a block: an eighth of the limit.
 */
import { GapReason } from '../../protocol/monitor/constants.ts'
import { type Block, FRAME_TIME, getUint53 } from './block.ts'
import { Gap, type Loss } from './gap.ts'
import type { Lane } from './lane.ts'
import type { DropCause } from './ledger.ts'
import type { QueueState } from './queue-state.ts'
import { advance, settleAll, settleGap, settleOne } from './settling.ts'

const MAX_UNSENT_GAPS = 1024

/** Frees room for `bytes` by the channel's policy; false if the arriving value has to go. */
export function makeRoom(queue: QueueState, bytes: number): boolean {
  if (queue.settings.overflow === 'drop-newest') return false
  while (queue.bytes + bytes > queue.settings.maxBytes) {
    const oldest = oldestUnsent(queue)
    if (oldest === undefined) return false
    dropUnsent(queue, oldest.lane, oldest.index, 'overflow')
  }
  return true
}

/** Drops what is older than `max_age` and not in flight. */
export function expire(queue: QueueState): void {
  const before = queue.host.age() - queue.settings.maxAgeMs
  for (const lane of queue.lanes()) {
    for (let index = unsentIndex(lane, 0); index >= 0; index = unsentIndex(lane, index)) {
      if ((lane.at(index) as Block).stamp >= before) break
      dropUnsent(queue, lane, index, 'expired')
    }
  }
}

function oldestUnsent(queue: QueueState): { lane: Lane; index: number } | undefined {
  let oldest: { lane: Lane; index: number; stamp: number } | undefined
  for (const lane of queue.lanes()) {
    const index = unsentIndex(lane, 0)
    if (index < 0) continue
    const { stamp } = lane.at(index) as Block
    if (oldest === undefined || stamp < oldest.stamp) oldest = { lane, index, stamp }
  }
  return oldest
}

/** The first block from the cursor on with values that are not sent; -1 if there is none. */
function unsentIndex(lane: Lane, from: number): number {
  for (let index = Math.max(from, lane.cursor); index < lane.length; index++) {
    const entry = lane.at(index)
    if (entry?.kind === 'block' && entry.left > entry.inFlight && !entry.exempt) return index
  }
  return -1
}

/** Drops the values of a block that are not in flight and puts a GAP in their place. */
export function dropUnsent(
  queue: QueueState,
  lane: Lane,
  index: number,
  cause: DropCause & keyof typeof GapReason,
): void {
  const block = lane.at(index) as Block
  const loss: Loss = {
    ...rangeOf(block),
    reason: GapReason[cause],
    metric: block.metric,
    count: block.left - block.inFlight,
  }
  block.sealed = true
  if (block.inFlight === 0) {
    settleAll(queue, block, cause)
    lane.remove(index)
    insertLoss(queue, lane, index, block, loss)
  } else {
    for (let ordinal = block.sent; ordinal < block.count; ordinal++) settleOne(queue, block, ordinal, cause)
    insertLoss(queue, lane, index + 1, block, loss)
  }
  advance(lane)
  queue.listener.ready()
}

/** A block that cannot be read back: what was left of it is lost, and only that. */
export function addDamage(queue: QueueState, block: Block): void {
  const lane = queue.sending
  const index = lane.find(block.first)
  if (lane.at(index) !== block || block.left === 0) return
  const loss: Loss = { ...rangeOf(block), reason: GapReason.damaged, metric: block.metric, count: block.left }
  // The store has set its row aside: there is nothing left to remove.
  block.taken = 0
  settleAll(queue, block, 'damaged')
  lane.remove(index)
  insertLoss(queue, lane, index, block, loss)
  advance(lane)
  queue.listener.ready()
}

/** Times of the unsent values of a block: from the frames if they are here. */
function rangeOf(block: Block): { from: number; to: number } {
  const { chunk, sentLength, from, to } = block
  if (chunk === undefined || block.sent === 0) return { from, to }
  return { from: getUint53(chunk.view, sentLength + FRAME_TIME), to }
}

/** Books a loss at `index`, in the place of a dropped block or behind it: into a neighbour of the same reason, or as a GAP of its own. */
function insertLoss(queue: QueueState, lane: Lane, index: number, block: Block, loss: Loss): void {
  const transaction = queue.settings.durable ? (lane.id === 0 ? block.last : 0) : 0
  const before = index > 0 ? lane.at(index - 1) : undefined
  const behind = lane.at(index)
  if (mergeable(before, loss)) mergeInto(queue, before, loss, transaction)
  else if (mergeable(behind, loss)) mergeInto(queue, behind, loss, transaction)
  else addGap(queue, lane, index, new Gap(block.id, lane.id, transaction, loss))
}

/** Books a loss at the end of a lane: values that were not taken in. */
export function addLoss(queue: QueueState, lane: Lane, loss: Loss): void {
  const tail = lane.tail
  if (mergeable(tail, loss)) {
    mergeInto(queue, tail, loss, tail.transaction)
    return
  }
  if (tail?.kind === 'block') tail.sealed = true
  const transaction = lane.id === 0 ? queue.next++ : 0
  const id = queue.host.nextId()
  addGap(queue, lane, lane.length, new Gap(id, lane.id, queue.settings.durable ? transaction : 0, loss))
}

function mergeable(entry: Block | Gap | undefined, loss: Loss): entry is Gap {
  return entry?.kind === 'gap' && !entry.told && !entry.settled && entry.reason === loss.reason
}

function mergeInto(queue: QueueState, gap: Gap, loss: Loss, transaction: number): void {
  gap.merge(loss, transaction)
  queue.touchGap(gap)
}

function addGap(queue: QueueState, lane: Lane, index: number, gap: Gap): void {
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
      if (entry?.kind !== 'gap' || entry.told || entry.settled) continue
      if (first < 0) {
        first = index
        continue
      }
      const older = lane.at(first) as Gap
      mergeInto(queue, entry, older, entry.transaction)
      settleGap(queue, older)
      lane.remove(first)
      return
    }
  }
}
