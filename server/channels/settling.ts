/**
 * Values leave here: committed, dropped or stopped, each exactly once. The floor is implied: the first unsettled id at the
 * head of the sending lane. Per block in flight there is a count of what is left and, from the first value settled out of
 * order on, a bitmap; a COMMIT in order costs one comparison and a few additions.
 */
import type { Block } from './block.ts'
import type { GapEntry } from './gap.ts'
import { isUnsettled, type Lane } from './lane.ts'
import type { DropCause } from './ledger.ts'
import type { QueueState } from './queue-state.ts'

export type Cause = DropCause | 'committed'

/** COMMIT [MON 8]: false if the channel has never given this id. */
export function commit(queue: QueueState, transaction: number, through: boolean): boolean {
  if (transaction === 0) return true
  if (!queue.settings.durable || !(transaction >= queue.origin && transaction < queue.next)) return false
  const head = queue.sending.head
  if (head?.kind === 'block' && transaction >= head.first && transaction <= head.last) settleAt(queue, 0, transaction)
  else settleAt(queue, queue.sending.find(transaction), transaction)
  if (through) settleThrough(queue, transaction)
  if (queue.standsStill) {
    queue.standsStill = false
    queue.listener.ready()
  }
  return true
}

function settleAt(queue: QueueState, index: number, transaction: number): void {
  const entry = queue.sending.at(index)
  if (entry === undefined) return
  if (entry.kind === 'gap') {
    settleGap(queue, entry)
  } else if (entry.settle(transaction - entry.first)) {
    account(queue, entry, 1, transaction - entry.first < entry.sent ? 1 : 0, 'committed')
  } else {
    settleGapBehind(queue, index, transaction)
    return
  }
  if (index === 0) advance(queue.sending)
}

/** GAPs of values that were dropped behind the sent ones of a block have ids of that block. */
function settleGapBehind(queue: QueueState, block: number, transaction: number): void {
  for (let index = block + 1; ; index++) {
    const entry = queue.sending.at(index)
    if (entry === undefined || entry.first > transaction) return
    if (entry.kind === 'gap' && entry.transaction === transaction) settleGap(queue, entry)
  }
}

/** Everything sent on this connection up to an id. */
function settleThrough(queue: QueueState, transaction: number): void {
  const lane = queue.sending
  let index = 0
  for (;;) {
    const entry = lane.at(index)
    if (entry === undefined || index > lane.cursor || entry.first > transaction) break
    if (entry.kind === 'gap') {
      if (entry.inFlight) settleGap(queue, entry)
    } else {
      settleRange(queue, entry, Math.min(entry.sent, transaction - entry.first + 1), 'committed')
    }
    const length = lane.length
    if (index === 0) advance(lane)
    if (lane.length === length) index++
    else index = 0
  }
}

/** Settles all values of a block below an ordinal that are not settled yet. They are all sent, or all unsent. */
export function settleRange(queue: QueueState, block: Block, end: number, cause: Cause): void {
  let count = 0
  if (block.settledBits === undefined) {
    count = Math.max(0, end - block.settledPrefix)
    block.settledPrefix = Math.max(block.settledPrefix, end)
  } else {
    for (let ordinal = block.settledPrefix; ordinal < end; ordinal++) if (block.settle(ordinal)) count++
  }
  if (count > 0) account(queue, block, count, Math.min(count, block.inFlight), cause)
}

/** Settles what is left of a block that nothing is in flight of, or whose values in flight go with it. */
export function settleAll(queue: QueueState, block: Block, cause: Cause): void {
  const { unsettled, inFlight } = block
  if (unsettled === 0) return
  block.settledPrefix = block.count
  block.settledBits = undefined
  account(queue, block, unsettled, inFlight, cause)
}

/** Settles one value; false if it was settled. */
export function settleOne(queue: QueueState, block: Block, ordinal: number, cause: Cause): boolean {
  if (!block.settle(ordinal)) return false
  account(queue, block, 1, ordinal < block.sent ? 1 : 0, cause)
  return true
}

/** Books `count` values of a block, `inFlight` of them in flight, and lets go of the block when none is left. */
function account(queue: QueueState, block: Block, count: number, inFlight: number, cause: Cause): void {
  const { ledger } = queue
  if (cause === 'committed') ledger.committed += count
  else ledger.dropped[cause] += count
  ledger.unsettled -= count
  // Bytes by the average of the block: exact again when its last value goes.
  const bytes =
    count === block.unsettled ? block.unsettledBytes : Math.floor((block.unsettledBytes * count) / block.unsettled)
  block.unsettled -= count
  block.unsettledBytes -= bytes
  queue.bytes -= bytes
  queue.share.bytes -= bytes
  if (inFlight > 0) {
    const sent =
      inFlight === block.inFlight ? block.inFlightBytes : Math.floor((block.inFlightBytes * inFlight) / block.inFlight)
    block.inFlight -= inFlight
    block.inFlightBytes -= sent
    queue.inFlight -= inFlight
    queue.inFlightBytes -= sent
  }
  if (block.unsettled === 0) discard(queue, block)
  else if (!block.settledChanged) {
    block.settledChanged = true
    queue.touch(block)
  }
  queue.changed()
}

function discard(queue: QueueState, block: Block): void {
  block.sealed = true
  if (block.exempt) queue.listener.resultGone(block.metric)
  queue.resident -= block.size
  block.dropBytes()
  if (queue.settings.durable) queue.host.unstored -= block.length - block.durableLength
  block.durableLength = block.length
  if (block.submitted > 0) queue.removedBlocks.push(block.id)
  if (block.key === undefined) return
  const latest = queue.lane(block.lane)?.latest
  if (latest?.get(block.key) === block) latest.delete(block.key)
}

export function settleGap(queue: QueueState, gap: GapEntry): void {
  if (gap.settled) return
  gap.settled = true
  if (gap.inFlight) queue.inFlightGaps--
  if (!gap.wasSent) queue.unsentGaps--
  gap.inFlight = false
  if (gap.submitted) queue.removedGaps.push(gap.id)
  queue.changed()
}

/** Takes what is settled from the front of a lane. */
export function advance(lane: Lane): void {
  for (let head = lane.head; head !== undefined && !isUnsettled(head); head = lane.head) lane.shift()
}
