/**
 * Values enter here: one `append` per value and channel, the hottest path of the server.
 * No allocation per value but at the borders of blocks, nothing awaited.
 */
import { GapReason } from '../../protocol/monitor/constants.ts'
import { Block, FRAME_METRIC, FRAME_TIME, getUint53 } from './block.ts'
import type { Loss } from './gap.ts'
import { type Entry, isUnsettled, type Lane } from './lane.ts'
import { addLoss, joinTail, makeRoom } from './limits.ts'
import { MAX_BLOCK_BYTES } from './pool.ts'
import type { QueueState } from './queue-state.ts'
import { seriesKey, seriesKeyOfFrame } from './series-key.ts'
import { advance, settleAll } from './settling.ts'

const MIN_BLOCK_BYTES = 1024
const HEADER_BYTES = 24

/**
 * Takes a value into a lane. `head`: template of the frame (length, metric id, transaction id, time, constants), of which
 * length, id and time are filled in; `tail`: basic type and value. `time`: microseconds since 1970.
 */
export function append(
  queue: QueueState,
  lane: Lane,
  head: Uint8Array,
  tail: Uint8Array,
  time: number,
  key?: string | undefined,
): void {
  const { settings, ledger, host, share } = queue
  const bytes = head.length + tail.length
  ledger.accepted++
  if (host.refusing !== undefined && settings.durable) {
    ledger.dropped[host.refusing]++
    addLoss(queue, lane, lossOf(host.refusing, head, time))
    return
  }
  const latest = settings.overflow === 'keep-latest' ? (key ?? seriesKey(queue.keys, head)) : undefined
  if (latest !== undefined) supersede(queue, lane, latest)
  const isFull = queue.bytes + bytes > settings.maxBytes || share.bytes + bytes > share.limit
  if (isFull && !makeRoom(queue, bytes)) {
    ledger.dropped.overflow++
    addLoss(queue, lane, lossOf('overflow', head, time))
    return
  }
  const block = openBlock(queue, lane, bytes)
  const sending = lane.id === 0
  block.append(head, tail, sending && settings.durable ? queue.next : 0, time)
  if (sending) queue.next++
  queue.lastAppend = block.appendedAge = host.stamp()
  queue.bytes += bytes
  share.bytes += bytes
  if (settings.durable) host.unstored += bytes
  ledger.unsettled++
  if (latest !== undefined) {
    block.sealed = true
    block.key = latest
    lane.latest.set(latest, block)
  }
  if (!block.dirty) queue.touch(block)
  if (sending) queue.listener.ready()
}

/** The result of an EXECUTE: a block of its own that no limit touches. Gives its transaction id. */
export function appendResult(queue: QueueState, head: Uint8Array, tail: Uint8Array, time: number): number {
  const { settings, ledger, host } = queue
  const bytes = head.length + tail.length
  const last = queue.sending.tail
  if (last?.kind === 'block') last.sealed = true
  const block = new Block(host.nextId(), 0, queue.next)
  block.reserve(bytes, bytes, host.pool)
  queue.resident += block.size
  block.append(head, tail, settings.durable ? queue.next : 0, time)
  block.exempt = true
  block.sealed = true
  block.appendedAge = queue.lastAppend = host.age()
  queue.sending.push(block)
  queue.next++
  queue.bytes += bytes
  queue.share.bytes += bytes
  if (settings.durable) host.unstored += bytes
  ledger.accepted++
  ledger.unsettled++
  queue.touch(block)
  queue.listener.ready()
  return block.first
}

/** The block at the end of the lane if it can take the frame, else a new one. */
function openBlock(queue: QueueState, lane: Lane, bytes: number): Block {
  const maxBytes = Math.min(MAX_BLOCK_BYTES, Math.max(MIN_BLOCK_BYTES, queue.settings.maxBytes >> 3))
  const tail = lane.tail
  if (tail?.kind === 'block' && !tail.sealed) {
    const before = tail.size
    if (tail.reserve(bytes, maxBytes, queue.host.pool)) {
      queue.resident += tail.size - before
      return tail
    }
    tail.sealed = true
  }
  const block = new Block(queue.host.nextId(), lane.id, lane.id === 0 ? queue.next : 0)
  block.reserve(bytes, maxBytes, queue.host.pool)
  queue.resident += block.size
  lane.push(block)
  return block
}

function lossOf(reason: 'full' | 'overflow', head: Uint8Array, time: number): Loss {
  const metric = new DataView(head.buffer, head.byteOffset).getUint32(FRAME_METRIC)
  return { reason: GapReason[reason], metric, count: 1, from: time, to: time }
}

/** keep-latest: an unsent older value of the series gives way; one in flight stays until its connection ends. */
function supersede(queue: QueueState, lane: Lane, key: string): void {
  const older = lane.latest.get(key)
  if (older === undefined || older.inFlight > 0) return
  settleAll(queue, older, 'superseded')
  advance(lane)
}

/** GET and SUBSCRIBE: what waits for a metric enters the sending order, in order. */
export function release(queue: QueueState, metric: number): void {
  const lane = queue.waiting.get(metric)
  if (lane === undefined) return
  queue.waiting.delete(metric)
  const tail = queue.sending.tail
  if (tail?.kind === 'block') tail.sealed = true
  for (const entry of lane) if (isUnsettled(entry)) enter(queue, entry)
  queue.lastAppend = queue.host.age()
  queue.changed()
  queue.listener.ready()
}

/** An entry of a buffer lane goes to the end of the sending order and gets its ids. */
function enter(queue: QueueState, entry: Entry): void {
  const { sending, settings } = queue
  entry.lane = 0
  if (entry.kind === 'gap') {
    if (joinTail(queue, entry)) return
    if (settings.durable) entry.transaction = queue.next++
    queue.touchGap(entry)
  } else {
    if (entry.key !== undefined) {
      supersede(queue, sending, entry.key)
      sending.latest.set(entry.key, entry)
    }
    entry.sealed = true
    entry.first = queue.next
    if (settings.durable) {
      entry.number(queue.next)
      queue.movedBlocks.push(entry)
    }
    queue.next += entry.count
  }
  sending.push(entry)
}

/** Takes whole VALUE frames that stand back to back into the sending lane, with new ids and their old times. */
export function appendFrames(queue: QueueState, frames: Uint8Array, pattern: boolean): void {
  const view = new DataView(frames.buffer, frames.byteOffset, frames.byteLength)
  let at = 0
  while (at < frames.length) {
    const end = at + 4 + view.getUint32(at)
    const key =
      queue.settings.overflow === 'keep-latest' ? seriesKeyOfFrame(frames.subarray(at, end), pattern) : undefined
    const head = frames.subarray(at, at + HEADER_BYTES)
    append(queue, queue.sending, head, frames.subarray(at + HEADER_BYTES, end), getUint53(view, at + FRAME_TIME), key)
    at = end
  }
}
