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
  readonly view: DataView
  /** Of the frame inside `view`. */
  readonly at: number
}

/**
 * STOP: what waits is dropped, what is in flight leaves the window, what is queued is passed over when its turn comes.
 * The promise is for frames that had to be read back; without those everything is done at once.
 */
export function stop(queue: QueueState, metric: number, read: ReadBlock): Promise<void> | undefined {
  dropLane(queue, metric, 'stopped')
  const last = queue.next - 1
  if (queue.sending.length === 0) return undefined
  queue.stops.set(metric, last)
  return visit(queue, queue.sending, metric, read, ({ block, ordinal }) => {
    if (block.first + ordinal <= last && ordinal < block.sent) settleOne(queue, block, ordinal, 'stopped')
  })
}

/** Forgets a buffer lane. GAPs in it go untold: STOP and DEL_CHANNEL discard. */
export function dropLane(queue: QueueState, metric: number, cause: 'stopped' | 'purged'): void {
  const lane = queue.waiting.get(metric)
  if (lane === undefined) return
  queue.waiting.delete(metric)
  for (const entry of lane) {
    if (entry.kind === 'gap') settleGap(queue, entry)
    else settleAll(queue, entry, cause)
  }
}

/** `channel.purge`: drops values up to an id (and those that wait, if no id is given), and tells it by a GAP. */
export async function purge(
  queue: QueueState,
  only: { readonly metric?: number; readonly through?: number },
  read: ReadBlock,
): Promise<number> {
  const through = Math.min(only.through ?? Number.POSITIVE_INFINITY, queue.next - 1)
  const lost = { count: 0, from: 0, to: 0 }
  const book = ({ block, ordinal, view, at }: Walked): void => {
    const id = block.lane === 0 ? block.first + ordinal : 0
    if (id > through || !settleOne(queue, block, ordinal, 'purged')) return
    const time = getUint53(view, at + FRAME_TIME)
    lost.from = lost.count === 0 ? time : Math.min(lost.from, time)
    lost.to = Math.max(lost.to, time)
    lost.count++
  }
  const lanes = only.through === undefined ? [...queue.lanes()] : [queue.sending]
  for (const lane of lanes) await visit(queue, lane, only.metric, read, book)
  const metric = only.metric ?? 0
  if (lost.count > 0) addLoss(queue, queue.sending, { ...lost, metric, reason: GapReason.purged })
  queue.listener.ready()
  return lost.count
}

/** The uncommitted frames of a metric: in flight, queued and waiting, in order. Copies. */
export async function framesOf(queue: QueueState, metric: number, read: ReadBlock): Promise<Uint8Array[]> {
  const frames: Uint8Array[] = []
  const collect = ({ block, ordinal, frame }: Walked): void => {
    const through = queue.stops.get(metric)
    if (block.lane === 0 && through !== undefined && block.first + ordinal <= through) return
    frames.push(frame.slice())
  }
  await visit(queue, queue.sending, metric, read, collect)
  const lane = queue.waiting.get(metric)
  if (lane !== undefined) await visit(queue, lane, metric, read, collect)
  return frames
}

/** Calls `see` for every unsettled frame of a lane (of a metric), reading back what is not in memory. At once if nothing is to be read. */
function visit(
  queue: QueueState,
  lane: Lane,
  metric: number | undefined,
  read: ReadBlock,
  see: (walked: Walked) => void,
): Promise<void> | undefined {
  // Ids of blocks that were there at the start, in order: the lane changes while blocks are read.
  const blocks: Block[] = []
  for (const entry of lane) {
    if (entry.kind === 'block' && (metric === undefined || entry.metric === 0 || entry.metric === metric))
      blocks.push(entry)
  }
  let index = 0
  const run = (): Promise<void> | undefined => {
    for (; index < blocks.length; index++) {
      const block = blocks[index] as Block
      if (block.left === 0) continue
      if (block.chunk === undefined) return readThenRun(block)
      walk(block, block.chunk.bytes.subarray(0, block.length), metric, see)
    }
    advance(lane)
    queue.listener.ready()
    return undefined
  }
  const readThenRun = async (block: Block): Promise<void> => {
    const bytes = await read(block)
    if (bytes !== undefined && block.left > 0) walk(block, bytes, metric, see)
    index++
    await run()
  }
  return run()
}

function walk(block: Block, bytes: Uint8Array, metric: number | undefined, see: (walked: Walked) => void): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  for (let ordinal = 0; at < bytes.length; ordinal++) {
    const end = at + 4 + view.getUint32(at)
    if (!block.isSettled(ordinal) && (metric === undefined || view.getUint32(at + FRAME_METRIC) === metric)) {
      see({ block, ordinal, frame: bytes.subarray(at, end), view, at })
    }
    if (block.left === 0) return
    at = end
  }
}
