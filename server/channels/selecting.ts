/**
 * What concerns the values of one metric inside a channel: STOP, purge, and the copies of SUBSCRIBE [MON 6.6, 8 Binding].
 * Blocks carry many metrics, so their frames have to be walked, and those that are only on disk read back first.
 */
import { GapReason } from '../../protocol/monitor/constants.ts'
import { type Block, FRAME_METRIC, FRAME_TIME, getUint53 } from './block.ts'
import type { Lane } from './lane.ts'
import { addLoss } from './limits.ts'
import type { QueueState } from './queue-state.ts'
import { advance, settleAll, settleGap, settleOne } from './settling.ts'

/** Reads the frames of a block back; undefined if they are damaged. */
export type ReadBlock = (block: Block) => Promise<Uint8Array | undefined>

interface Walked {
  readonly block: Block
  readonly ordinal: number
  readonly frame: Uint8Array
  readonly time: number
}

/** What to walk: blocks of a lane that may have values of a metric, as they are now: while one is read the lane changes. */
interface Walk {
  readonly blocks: readonly Block[]
  readonly metric: number
  readonly read: ReadBlock
  readonly see: (walked: Walked) => void
}

/**
 * STOP: what waits is dropped, what is in flight leaves the window, what is queued is passed over when its turn comes.
 * The promise is for frames that had to be read back; without those everything is done at once.
 */
export function stop(queue: QueueState, metric: number, read: ReadBlock): Promise<void> | undefined {
  dropLane(queue, metric)
  const last = queue.next - 1
  if (queue.sending.length === 0) return undefined
  queue.stops.set(metric, last)
  const blocks = blocksOf(queue.sending, metric).filter((block) => block.inFlight > 0)
  const see = ({ block, ordinal }: Walked): void => {
    if (block.first + ordinal <= last && ordinal < block.sent) settleOne(queue, block, ordinal, 'stopped')
  }
  const done = (): void => {
    advance(queue.sending)
    queue.listener.ready()
  }
  const reading = walkAll({ blocks, metric, read, see })
  if (reading !== undefined) return reading.then(done)
  done()
  return undefined
}

/** Forgets a buffer lane. GAPs in it go untold: STOP and DEL_CHANNEL discard. */
export function dropLane(queue: QueueState, metric: number): void {
  const lane = queue.waiting.get(metric)
  if (lane === undefined) return
  queue.waiting.delete(metric)
  settleLane(queue, lane)
}

/** DEL_CHANNEL, expiry: all lanes, and nothing is told. */
export function discardAll(queue: QueueState): void {
  for (const metric of [...queue.waiting.keys()]) dropLane(queue, metric)
  settleLane(queue, queue.sending)
  advance(queue.sending)
}

function settleLane(queue: QueueState, lane: Lane): void {
  for (const entry of lane) {
    if (entry.kind === 'gap') settleGap(queue, entry)
    else settleAll(queue, entry, 'stopped')
  }
}

/**
 * `channel.purge`: drops values up to an id (and those that wait, if no id is given). What is lost of a lane is told by
 * a GAP behind it, since values of other metrics may stay between.
 */
export async function purge(
  queue: QueueState,
  only: { readonly metric?: number; readonly through?: number },
  read: ReadBlock,
): Promise<number> {
  const through = Math.min(only.through ?? Number.POSITIVE_INFINITY, queue.next - 1)
  const lanes = only.through === undefined ? [...queue.lanes()] : [queue.sending]
  let count = 0
  for (const lane of lanes) count += await purgeLane(queue, lane, only.metric, through, read)
  queue.listener.ready()
  return count
}

async function purgeLane(
  queue: QueueState,
  lane: Lane,
  only: number | undefined,
  through: number,
  read: ReadBlock,
): Promise<number> {
  let [count, from, to, metric] = [0, Number.POSITIVE_INFINITY, 0, -1]
  const lose = (values: number, earliest: number, latest: number, of: number): void => {
    if (values === 0) return
    count += values
    from = Math.min(from, earliest)
    to = Math.max(to, latest)
    metric = metric === -1 || metric === of ? of : 0
  }
  const mixed: Block[] = []
  for (const block of blocksOf(lane, only)) {
    if (only !== undefined && block.metric !== only) mixed.push(block)
    else lose(settleUpTo(queue, block, through), block.minTime, block.maxTime, block.metric)
  }
  const see = ({ block, ordinal, time }: Walked): void => {
    if (block.lane === 0 && block.first + ordinal > through) return
    if (settleOne(queue, block, ordinal, 'purged')) lose(1, time, time, only ?? 0)
  }
  await walkAll({ blocks: mixed, metric: only ?? 0, read, see })
  advance(lane)
  // The lane may have been released meanwhile.
  const now = queue.lane(lane.id) === lane ? lane : queue.sending
  if (count > 0) addLoss(queue, now, { reason: GapReason.purged, metric, count, from, to })
  return count
}

/** Purges the values of a block up to an id, all of them if it waits; gives how many. */
function settleUpTo(queue: QueueState, block: Block, through: number): number {
  const { unsettled } = block
  if (block.lane !== 0 || block.last <= through) {
    settleAll(queue, block, 'purged')
    return unsettled
  }
  for (let ordinal = 0; block.first + ordinal <= through; ordinal++) settleOne(queue, block, ordinal, 'purged')
  return unsettled - block.unsettled
}

/**
 * The uncommitted frames of a metric: in flight, queued and waiting, in order. Copies. What is on disk is read first; then
 * all is collected in one go, so that no value that comes meanwhile is missed.
 */
export async function framesOf(queue: QueueState, metric: number, read: ReadBlock): Promise<Uint8Array[]> {
  const bytes = new Map<Block, Uint8Array | undefined>()
  for (;;) {
    const blocks = [queue.sending, queue.lane(metric)].flatMap((lane) => (lane ? blocksOf(lane, metric) : []))
    const missing = blocks.filter((block) => block.chunk === undefined && !bytes.has(block))
    if (missing.length === 0) return collect(queue, metric, blocks, bytes)
    for (const block of missing) bytes.set(block, await read(block))
  }
}

function collect(
  queue: QueueState,
  metric: number,
  blocks: readonly Block[],
  bytes: ReadonlyMap<Block, Uint8Array | undefined>,
): Uint8Array[] {
  const frames: Uint8Array[] = []
  const stopped = queue.stops.get(metric) ?? 0
  const see = ({ block, ordinal, frame }: Walked): void => {
    if (block.lane !== 0 || block.first + ordinal > stopped) frames.push(frame.slice())
  }
  for (const block of blocks) {
    const found = block.chunk?.bytes.subarray(0, block.length) ?? bytes.get(block)
    if (found !== undefined) walkBlock(block, metric, found, see)
  }
  return frames
}

/** The blocks of a lane in which something is left that may be of a metric. */
function blocksOf(lane: Lane, metric: number | undefined): Block[] {
  const blocks: Block[] = []
  for (const entry of lane) {
    if (entry.kind === 'gap' || entry.unsettled === 0) continue
    if (metric === undefined || entry.metric === 0 || entry.metric === metric) blocks.push(entry)
  }
  return blocks
}

/** Calls `see` for every unsettled frame of the metric, reading back what is not in memory; at once if nothing is to be read. */
function walkAll(all: Walk, from = 0): Promise<void> | undefined {
  for (let index = from; index < all.blocks.length; index++) {
    const block = all.blocks[index] as Block
    if (block.unsettled === 0) continue
    if (block.chunk === undefined) return readThenWalk(all, block, index + 1)
    walkBlock(block, all.metric, block.chunk.bytes.subarray(0, block.length), all.see)
  }
  return undefined
}

async function readThenWalk(all: Walk, block: Block, rest: number): Promise<void> {
  const bytes = await all.read(block)
  if (bytes !== undefined && block.unsettled > 0) walkBlock(block, all.metric, bytes, all.see)
  await walkAll(all, rest)
}

function walkBlock(block: Block, metric: number, bytes: Uint8Array, see: Walk['see']): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  for (let ordinal = 0; at < bytes.length; ordinal++) {
    const end = at + 4 + view.getUint32(at)
    if (!block.isSettled(ordinal) && view.getUint32(at + FRAME_METRIC) === metric) {
      see({ block, ordinal, frame: bytes.subarray(at, end), time: getUint53(view, at + FRAME_TIME) })
    }
    if (block.unsettled === 0) return
    at = end
  }
}
