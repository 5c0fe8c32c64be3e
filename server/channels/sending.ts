/**
 * What goes out next on a channel's connection: slices of blocks, wire-ready, from the cursor on. Sending never copies and
 * never seals a block. Only values that are settled, stopped or beyond the window make it walk along the frames.
 */
import { type Block, FRAME_METRIC } from './block.ts'
import { GAP_FRAME_BYTES, type GapEntry } from './gap.ts'
import { type Entry, isUnsettled } from './lane.ts'
import { Chunk, TOTAL_RESIDENT_BYTES } from './pool.ts'
import type { QueueState } from './queue-state.ts'
import { advance, settleAll, settleGap, settleOne, settleRange } from './settling.ts'

const READ_AHEAD_BYTES = 4 << 20
const READ_AHEAD_BLOCKS = 256

/** Bytes to be written. `chunk`: the buffer they lie in, to be held until they are out. */
export interface Slice {
  readonly bytes: Uint8Array
  readonly chunk: Chunk | undefined
}

/** `load`: the block at the cursor is to be read back first. `window`: nothing more until a COMMIT, which tells `ready`. */
export type Next = Slice | { readonly load: Block } | 'window' | undefined

/** The next slice of at most `maxBytes`, or why there is none. `mayExceed`: one value that is larger may go. */
export function next(queue: QueueState, maxBytes: number, mayExceed: boolean): Next {
  const lane = queue.sending
  const limit = queue.sendLimit
  for (;;) {
    const entry = lane.at(lane.cursor)
    if (entry === undefined) return undefined
    if (entry.kind === 'gap') {
      if (!entry.settled && !entry.inFlight) {
        // On a channel that is not durable it has no id to be compared: any hold keeps it back.
        if (entry.transaction === 0 ? queue.holds.size > 0 : entry.transaction >= limit) return undefined
        if (isWindowFull(queue)) return standStill(queue)
        return GAP_FRAME_BYTES <= maxBytes || mayExceed ? sendGap(queue, entry) : undefined
      }
    } else if (entry.unsettled > 0 && entry.sent < entry.count) {
      if (Math.min(entry.count, limit - entry.first) <= entry.sent) return undefined
      if (isWindowFull(queue)) return standStill(queue)
      if (entry.chunk === undefined) return { load: entry }
      const slice = sendBlock(queue, entry, entry.chunk, { limit, maxBytes, mayExceed })
      if (slice === 'room') return undefined
      if (slice !== undefined) return slice
      continue
    } else {
      if (!entry.sealed && entry === lane.tail) return undefined
      releaseBytes(queue, entry)
    }
    if (lane.cursor === 0 && !isUnsettled(entry)) lane.shift()
    else lane.cursor++
  }
}

function isWindowFull(queue: QueueState): boolean {
  const { durable, window, windowBytes } = queue.settings
  const count = queue.inFlight + queue.inFlightGaps
  return durable && count > 0 && (count >= window || queue.inFlightBytes >= windowBytes)
}

/** A COMMIT tells `ready`. */
function standStill(queue: QueueState): 'window' {
  queue.standsStill = true
  return 'window'
}

function sendGap(queue: QueueState, gap: GapEntry): Slice {
  const slice = { bytes: gap.frame(), chunk: undefined }
  if (!gap.wasSent) queue.unsentGaps--
  gap.wasSent = true
  gap.inFlight = true
  queue.inFlightGaps++
  queue.sending.cursor++
  if (!queue.settings.durable) {
    settleGap(queue, gap)
    advance(queue.sending)
  }
  return slice
}

/** A run of frames from a block; undefined if all that was left of it was passed over. */
function sendBlock(
  queue: QueueState,
  block: Block,
  chunk: Chunk,
  { limit, maxBytes, mayExceed }: { readonly limit: number; readonly maxBytes: number; readonly mayExceed: boolean },
): Slice | 'window' | 'room' | undefined {
  const { durable, window, windowBytes } = queue.settings
  const values = durable ? Math.max(1, window - queue.inFlight - queue.inFlightGaps) : block.count
  const room = durable ? windowBytes - queue.inFlightBytes : Number.POSITIVE_INFINITY
  const bytes = Math.min(maxBytes, room)
  const start = block.sentLength
  const whole = block.settledBits === undefined && block.settledPrefix <= block.sent && queue.stops.size === 0
  const count = block.count - block.sent
  if (whole && count <= values && block.length - start <= bytes && block.last < limit) {
    return hand(queue, block, chunk, start, count, block.length - start)
  }
  const ordinals = Math.min(block.count, limit - block.first)
  const at = passOver(queue, block, chunk, ordinals)
  if (block.unsettled === 0 || block.sent >= ordinals) return undefined
  const length = 4 + chunk.view.getUint32(at)
  // One value may always be in flight; a second one that does not fit the window may not.
  if (length > room && queue.inFlight + queue.inFlightGaps > 0) return standStill(queue)
  if (length > maxBytes && !mayExceed) return 'room'
  return takeRun(queue, block, chunk, { values, bytes, ordinals })
}

/** Passes over what is settled or stopped; gives where the next frame is. */
function passOver(queue: QueueState, block: Block, chunk: Chunk, ordinals: number): number {
  while (
    block.unsettled > 0 &&
    block.sent < ordinals &&
    isPassedOver(queue, block, chunk, block.sent, block.sentLength)
  ) {
    const length = 4 + chunk.view.getUint32(block.sentLength)
    // Settled before it counts as sent: it was never in flight.
    settleOne(queue, block, block.sent, 'stopped')
    block.sent++
    block.sentLength += length
  }
  if (block.unsettled === 0) advance(queue.sending)
  return block.sentLength
}

/** A run of frames that fits, at least one. */
function takeRun(
  queue: QueueState,
  block: Block,
  chunk: Chunk,
  room: { readonly values: number; readonly bytes: number; readonly ordinals: number },
): Slice {
  const { view } = chunk
  const start = block.sentLength
  let at = start
  let count = 0
  for (let ordinal = block.sent; ordinal < room.ordinals && count < room.values; ordinal++) {
    if (isPassedOver(queue, block, chunk, ordinal, at)) break
    const length = 4 + view.getUint32(at)
    if (count > 0 && at + length - start > room.bytes) break
    at += length
    count++
  }
  return hand(queue, block, chunk, start, count, at - start)
}

function isPassedOver(queue: QueueState, block: Block, chunk: Chunk, ordinal: number, at: number): boolean {
  if (block.isSettled(ordinal)) return true
  if (queue.stops.size === 0) return false
  const through = queue.stops.get(chunk.view.getUint32(at + FRAME_METRIC))
  return through !== undefined && block.first + ordinal <= through
}

/** Books `count` values as in flight; on a channel that is not durable, sent is committed. */
function hand(queue: QueueState, block: Block, chunk: Chunk, start: number, count: number, length: number): Slice {
  const slice = { bytes: chunk.bytes.subarray(start, start + length), chunk }
  chunk.hold()
  block.sent += count
  block.sentLength = start + length
  if (queue.settings.durable) {
    block.inFlight += count
    block.inFlightBytes += length
    queue.inFlight += count
    queue.inFlightBytes += length
  } else {
    settleSent(queue, block)
    advance(queue.sending)
  }
  return slice
}

function settleSent(queue: QueueState, block: Block): void {
  if (block.sent === block.count) settleAll(queue, block, 'committed')
  else settleRange(queue, block, block.sent, 'committed')
}

/** Memory of a block that is stored and handed out is needed no more. */
export function releaseBytes(queue: QueueState, block: Block): void {
  if (block.chunk === undefined || !queue.settings.durable || !block.sealed || block.durable < block.count) return
  queue.resident -= block.size
  block.dropBytes()
}

/** A connection took the channel. */
export function attach(queue: QueueState): void {
  queue.connected = true
  queue.listener.ready()
}

/** The connection ended or left: in flight becomes queued, to be sent again in order. */
export function detach(queue: QueueState): void {
  queue.connected = false
  queue.standsStill = false
  const lane = queue.sending
  for (let index = 0; index <= lane.cursor; index++) {
    const entry = lane.at(index)
    if (entry === undefined) break
    if (entry.kind === 'gap') entry.inFlight = false
    else entry.rewind()
  }
  queue.inFlight = 0
  queue.inFlightGaps = 0
  queue.inFlightBytes = 0
  lane.cursor = 0
  if (queue.settings.overflow === 'keep-latest') supersedeOlder(queue)
  if (!queue.settings.durable) return
  for (const entry of lane) if (entry.kind === 'block') releaseBytes(queue, entry)
}

function supersedeOlder(queue: QueueState): void {
  const { latest } = queue.sending
  for (const entry of queue.sending) {
    if (entry.kind === 'block' && entry.key !== undefined && latest.get(entry.key) !== entry) {
      settleAll(queue, entry, 'superseded')
    }
  }
  advance(queue.sending)
}

/**
 * The blocks to be read back: the one at the cursor and what follows it, since reads wait for the batch that is being
 * written. A consumer that takes 256 KiB per batch would never catch up.
 */
export function ahead(queue: QueueState): Block[] {
  const { sending, host } = queue
  const room = Math.min(READ_AHEAD_BYTES, TOTAL_RESIDENT_BYTES - host.pool.used)
  const blocks: Block[] = []
  let bytes = 0
  for (let index = sending.cursor; index < sending.length; index++) {
    const entry = sending.at(index) as Entry
    if (entry.kind === 'gap' || entry.unsettled === 0 || entry.chunk !== undefined) continue
    bytes += entry.length
    if (blocks.length > 0 && (bytes > room || blocks.length === READ_AHEAD_BLOCKS)) break
    blocks.push(entry)
  }
  return blocks
}

/** The bytes of a block are back from the store. */
export function loaded(queue: QueueState, block: Block, bytes: Uint8Array): void {
  if (block.chunk !== undefined || block.unsettled === 0 || !queue.connected) return
  block.chunk = Chunk.of(bytes, queue.host.pool)
  block.number(block.first)
  queue.resident += block.size
}
