/**
 * What of a queue goes into a batch. A block wholly settled before a batch takes it is never written. A small block stays
 * open when it is taken and is written again, longer, by the next batch: else a slow channel would leave a row per value.
 */
import type { BatchBuilder } from './batch.ts'
import type { Block } from './block.ts'
import { type Entry, isUnsettled } from './lane.ts'
import { dropCauses } from './ledger.ts'
import { TOTAL_RESIDENT_BYTES } from './pool.ts'
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
/** The same while all channels together keep to what the pool may give. */
const MAX_RESIDENT_BYTES = 8 << 20

/** Puts into a batch what is to be stored. One batch is on its way at a time; `stored` is the word that it is durable. */
export function take(queue: QueueState, builder: BatchBuilder): void {
  const dirty = queue.dirtyBlocks
  queue.dirtyBlocks = undefined
  for (const block of dirty ?? []) {
    block.dirty = false
    if (block.unsettled > 0) takeBlock(queue, builder, block)
  }
  queue.takenBlocks = dirty
  if (queue.movedBlocks.length > 0) takeMoves(queue, builder)
  for (const id of queue.removedBlocks) builder.removed.add(id)
  if (queue.removedBlocks.length > 0) queue.removedBlocks = []
  takeGaps(queue, builder)
  takeNumbers(queue, builder)
}

function takeMoves(queue: QueueState, builder: BatchBuilder): void {
  for (const block of queue.movedBlocks) {
    if (block.unsettled > 0 && block.submitted > 0) builder.moved.add(block.id, block.lane, block.first)
  }
  queue.movedBlocks = []
}

/** Writes a block that has grown, or its bitmap. */
function takeBlock(queue: QueueState, builder: BatchBuilder, block: Block): void {
  if (block.submitted < block.count && block.chunk !== undefined) {
    const { id, lane, first, count, length, appendedAge, minTime, maxTime, metric } = block
    const offset = builder.copy(block.chunk.bytes.subarray(0, length))
    builder.blocks.add(id, queue.channel, lane, first, count, offset, length, appendedAge, minTime, maxTime, metric)
    block.submitted = count
    block.submittedLength = length
    if (length >= SMALL_BLOCK_BYTES) block.sealed = true
  }
  if (block.settledChanged) {
    block.settledChanged = false
    // At the head and settled in order, the floor says it all.
    if (block.settledBits !== undefined || queue.sending.head !== block) {
      const bitmap = block.bitmap()
      builder.settled.add(block.id, builder.copy(bitmap), bitmap.length)
    }
  }
}

function takeGaps(queue: QueueState, builder: BatchBuilder): void {
  for (const gap of queue.dirtyGaps) {
    gap.dirty = false
    if (gap.settled) continue
    gap.submitted = true
    const { id, lane, transaction, metric, count, from, to, reason } = gap
    builder.gaps.add(id, queue.channel, lane, transaction, metric, count, from, to, reason)
  }
  if (queue.dirtyGaps.length > 0) queue.dirtyGaps = []
  for (const id of queue.removedGaps) builder.gapsRemoved.add(id)
  if (queue.removedGaps.length > 0) queue.removedGaps = []
}

function takeNumbers(queue: QueueState, builder: BatchBuilder): void {
  const { ledger } = queue
  const active = queue.settings.durable && queue.host.age() - queue.lastAppend < QUIET_MS
  const reserving = active ? queue.next + RESERVED_IDS : queue.next
  // What is given back must not be used any more while this batch is on its way.
  queue.reserved = Math.min(queue.reserved, reserving)
  const floor = queue.sending.head === undefined ? queue.next : floorOf(queue.sending.head)
  const dropped = dropCauses.map((cause) => ledger.dropped[cause])
  const { accepted, committed, gaps } = ledger
  builder.channels.add(queue.channel, floor, queue.next, reserving, accepted, committed, ...dropped, gaps)
  queue.numbersChanged = false
  queue.takenReserving = reserving
  queue.takenNext = queue.next
}

function floorOf(head: Entry): number {
  return head.kind === 'gap' ? head.transaction : head.first + head.settledPrefix
}

/** The batch is durable. */
export function stored(queue: QueueState): void {
  const taken = queue.takenBlocks
  queue.takenBlocks = undefined
  queue.reserved = queue.takenReserving
  queue.storedNext = queue.takenNext
  for (const block of taken ?? []) {
    if (block.durable === block.submitted) continue
    if (block.unsettled > 0) queue.host.unstored -= block.submittedLength - block.durableLength
    block.durable = block.submitted
    block.durableLength = block.unsettled > 0 ? block.submittedLength : block.length
    if (!isSentSoon(queue, block)) releaseBytes(queue, block)
  }
  queue.listener.ready()
}

function isSentSoon(queue: QueueState, block: Block): boolean {
  if (!queue.connected || block.lane !== 0 || block.sent === block.count) return false
  const { resident, host } = queue
  if (resident <= RESIDENT_BYTES) return true
  return resident <= MAX_RESIDENT_BYTES && host.pool.used <= TOTAL_RESIDENT_BYTES
}

/** A quiet queue gives back its range of ids, and its memory. */
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

/** The id up to which the sending order is stored or settled as far as an entry of it says. */
export function storedThrough(entry: Entry, storedNext: number): number {
  // A loss that is not on disk: after a crash its values would be missing untold.
  if (entry.kind === 'gap')
    return isUnsettled(entry) && entry.transaction >= storedNext ? storedNext - 1 : Number.POSITIVE_INFINITY
  if (entry.unsettled === 0) return Number.POSITIVE_INFINITY
  // Released, and that is not on disk: after a crash its values would wait again, and get other ids.
  const last = entry.settledFrom(entry.first >= storedNext ? 0 : entry.durable)
  return last === entry.last ? Number.POSITIVE_INFINITY : last
}
