/**
 * What of a queue goes into a batch, and how the queue comes back from the store. A block wholly settled before a batch
 * takes it is never written. A small block stays open when it is taken and is written again, longer, by the next batch:
 * else a slow channel would leave a row per value.
 */
import { BLOCK_WIDTH, CHANNEL_WIDTH, GAP_WIDTH } from '../../storage/store.ts'
import type { BatchBuilder } from './batch.ts'
import { Block } from './block.ts'
import { Gap } from './gap.ts'
import { type Entry, Lane } from './lane.ts'
import { dropCauses } from './ledger.ts'
import type { QueueState } from './queue-state.ts'
import { releaseBytes } from './sending.ts'

/** Ids reserved on disk ahead of use. A crash skips what is left of them; there are 2^53. */
const RESERVED_IDS = 1 << 20
/** A channel quiet for this long gives the rest of its range back. */
const QUIET_MS = 10_000
/** Below this a block that was taken goes on growing. */
const SMALL_BLOCK_BYTES = 1024
/** A lagging consumer's frames in memory; beyond it they are read back when their turn comes. */
const RESIDENT_BYTES = 512 << 10

/** What a batch took of a queue; to be given back when it is durable. */
export interface Taken {
  readonly blocks: readonly Block[]
  readonly reserving: number
}

export function take(queue: QueueState, builder: BatchBuilder): Taken {
  const taken: Block[] = []
  for (const block of queue.dirtyBlocks) {
    block.dirty = false
    if (block.left === 0) continue
    if (takeBlock(queue, builder, block)) taken.push(block)
  }
  queue.dirtyBlocks = []
  for (const block of queue.movedBlocks) {
    if (block.left > 0 && block.taken > 0) builder.moved.add(block.id, block.lane, block.first)
  }
  queue.movedBlocks = []
  for (const id of queue.removedBlocks) builder.removed.add(id)
  queue.removedBlocks = []
  takeGaps(queue, builder)
  takeNumbers(queue, builder)
  return { blocks: taken, reserving: queue.reserving }
}

/** Writes a block that has grown, or its bitmap; true if its frames went along. */
function takeBlock(queue: QueueState, builder: BatchBuilder, block: Block): boolean {
  const grown = block.taken < block.count
  if (grown && block.chunk !== undefined) {
    const { id, lane, first, count, length, stamp, from, to, metric } = block
    const offset = builder.copy(block.chunk.bytes.subarray(0, length))
    builder.blocks.add(id, queue.channel, lane, first, count, offset, length, stamp, from, to, metric)
    block.taken = count
    block.takenLength = length
    if (length >= SMALL_BLOCK_BYTES) block.sealed = true
  }
  if (block.settledChanged) {
    block.settledChanged = false
    // At the head and settled in order, the floor says it all.
    if (block.bits !== undefined || queue.sending.head !== block) {
      const bitmap = block.bitmap()
      builder.settled.add(block.id, builder.copy(bitmap), bitmap.length)
    }
  }
  return grown
}

function takeGaps(queue: QueueState, builder: BatchBuilder): void {
  for (const gap of queue.dirtyGaps) {
    gap.dirty = false
    if (gap.settled) continue
    gap.taken = true
    const { id, lane, transaction, metric, count, from, to, reason } = gap
    builder.gaps.add(id, queue.channel, lane, transaction, metric, count, from, to, reason)
  }
  queue.dirtyGaps = []
  for (const id of queue.removedGaps) builder.gapsRemoved.add(id)
  queue.removedGaps = []
}

function takeNumbers(queue: QueueState, builder: BatchBuilder): void {
  const { ledger } = queue
  const active = queue.host.age() - queue.lastAppend < QUIET_MS
  queue.reserving = active ? queue.next + RESERVED_IDS : Math.max(queue.next, 0)
  // A range in use is not taken back before everything sent from it is behind `next`.
  const floor = queue.sending.head === undefined ? queue.next : floorOf(queue.sending.head)
  const dropped = dropCauses.map((cause) => ledger.dropped[cause])
  const { accepted, committed, gaps } = ledger
  builder.channels.add(queue.channel, floor, queue.next, queue.reserving, accepted, committed, ...dropped, gaps)
  queue.numbersChanged = false
}

function floorOf(head: Entry): number {
  return head.kind === 'gap' ? head.transaction : head.first + head.prefix
}

/** The batch is durable. */
export function stored(queue: QueueState, taken: Taken): void {
  queue.reserved = taken.reserving
  for (const block of taken.blocks) {
    if (block.left > 0) queue.host.unstored -= block.takenLength - block.storedLength
    block.stored = block.taken
    block.storedLength = block.left > 0 ? block.takenLength : block.length
    const unsent = queue.connected && block.sent < block.count && block.lane === 0
    if (!unsent || queue.resident > RESIDENT_BYTES) releaseBytes(queue, block)
  }
  queue.listener.ready()
}

/** True if a quiet queue holds a range, or memory, that it could give back. */
export function rest(queue: QueueState): void {
  if (queue.host.age() - queue.lastAppend < QUIET_MS) return
  if (queue.reserved !== queue.next) queue.changed()
  for (const lane of queue.lanes()) {
    const tail = lane.tail
    if (tail?.kind !== 'block' || tail.sealed) continue
    tail.sealed = true
    releaseBytes(queue, tail)
  }
}

/** The numbers of a queue as they were stored. Blocks and GAPs follow by `restoreBlock` and `restoreGap`, in order. */
export function restoreNumbers(
  queue: QueueState,
  numbers: Float64Array,
  row: number,
): { floor: number; clean: boolean } {
  const at = row * CHANNEL_WIDTH
  const number = (index: number): number => numbers[at + index] as number
  const { ledger } = queue
  queue.next = number(2)
  queue.reserved = queue.reserving = number(3)
  ledger.accepted = number(4)
  ledger.committed = number(5)
  dropCauses.forEach((cause, index) => {
    ledger.dropped[cause] = number(6 + index)
  })
  ledger.gaps = number(13)
  return { floor: number(1), clean: queue.reserved <= queue.next }
}

export function restoreBlock(
  queue: QueueState,
  rows: Float64Array,
  row: number,
  floor: number,
  bitmap?: Uint8Array,
): Block {
  const at = row * BLOCK_WIDTH
  const number = (index: number): number => rows[at + index] as number
  const block = new Block(number(0), number(2), number(3))
  block.count = block.left = block.taken = block.stored = number(4)
  block.length = block.leftBytes = block.takenLength = block.storedLength = number(6)
  block.stamp = number(7)
  block.from = number(8)
  block.to = number(9)
  block.metric = number(10)
  block.sealed = true
  if (bitmap) block.restore(bitmap)
  if (block.lane === 0) for (let i = block.prefix; i < Math.min(block.count, floor - block.first); i++) block.mark(i)
  let settled = 0
  for (let i = 0; i < block.count; i++) if (block.isSettled(i)) settled++
  block.leftBytes -= Math.floor((block.length * settled) / Math.max(1, block.count))
  block.left -= settled
  if (block.left === 0) {
    queue.removedBlocks.push(block.id)
    return block
  }
  queue.bytes += block.leftBytes
  queue.ledger.unsettled += block.left
  laneOf(queue, block.lane).push(block)
  return block
}

export function restoreGap(queue: QueueState, rows: Float64Array, row: number): void {
  const at = row * GAP_WIDTH
  const number = (index: number): number => rows[at + index] as number
  const loss = {
    metric: number(4),
    count: number(5),
    from: number(6),
    to: number(7),
    reason: number(8) as Gap['reason'],
  }
  const gap = new Gap(number(0), number(2), number(3), loss)
  gap.taken = true
  // It may have been sent before: it never changes again.
  gap.told = true
  const lane = laneOf(queue, gap.lane)
  const place = (entry: Entry): boolean => (gap.lane === 0 ? entry.first > gap.transaction : entry.id > gap.id)
  let index = lane.length
  while (index > 0 && place(lane.at(index - 1) as Entry)) index--
  lane.insert(index, gap)
}

function laneOf(queue: QueueState, id: number): Lane {
  if (id === 0) return queue.sending
  let lane = queue.waiting.get(id)
  if (lane === undefined) {
    lane = new Lane(id)
    queue.waiting.set(id, lane)
  }
  return lane
}
