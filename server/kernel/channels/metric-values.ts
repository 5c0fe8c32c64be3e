/**
 * The values of one metric inside a queue: STOP, purge, and the copies of SUBSCRIBE [MON 6.6, 8 Binding]. Blocks carry many
 * metrics, so their frames have to be walked, and those that are only on disk read back first.
 */

import { GapReason } from '../../../protocol/monitor/constants.ts'
import { FRAME_METRIC, FRAME_TIME } from '../../../protocol/monitor/message.ts'
import { finish, type Steps } from '../core/fair-work.ts'
import { type Block, getUint53 } from './block.ts'
import type { Delivery } from './delivery.ts'
import type { Lane, Lanes } from './lane.ts'
import type { Losses } from './losses.ts'
import type { SettledQueue } from './settlement.ts'

/** What is read back at once, with one more block. */
const READ_BYTES = 512 << 10

/** Reads the frames of a block back; undefined if they are damaged. */
export type ReadBlock = (block: Block) => Promise<Uint8Array | undefined>

interface WalkedFrame {
  readonly block: Block
  readonly ordinal: number
  readonly frame: Uint8Array
  readonly time: number
}

/** A walk over blocks of a lane that may hold values of a metric, as they are now: while one is read the lane changes. */
interface Walk {
  readonly blocks: readonly Block[]
  readonly metric: number
  readonly read: ReadBlock
  readonly visit: (frame: WalkedFrame) => void
}

interface MetricValuesParts extends SettledQueue {
  readonly losses: Losses
  readonly delivery: Delivery
}

export class MetricValues {
  readonly #parts: MetricValuesParts

  constructor(parts: MetricValuesParts) {
    this.#parts = parts
  }

  /**
   * STOP: what waits is dropped, what is in flight leaves the window, what is queued is skipped when its turn comes. A
   * promise if frames have to be read back; without those everything is done at once.
   */
  stop(metric: number, read: ReadBlock): Promise<void> | undefined {
    const { ids, settlement, delivery, listener } = this.#parts
    const { sending } = this.#parts.lanes
    finish(this.dropLane(metric))
    const last = ids.next - 1
    if (sending.length === 0) return undefined
    delivery.stop(metric, last)
    const blocks = sending.blocksOf(metric).filter((block) => block.inFlight > 0)
    const visit = ({ block, ordinal }: WalkedFrame): void => {
      if (block.first + ordinal <= last && ordinal < block.sent) settlement.settleOne(block, ordinal, 'stopped')
    }
    const done = (): void => {
      sending.dropSettledHead()
      listener.ready()
    }
    const reading = walkAll({ blocks, metric, read, visit })
    if (reading !== undefined) return reading.then(done)
    done()
    return undefined
  }

  /** Discards a buffer lane, the GAPs in it included: STOP and DEL_CHANNEL do not report losses. */
  *dropLane(metric: number): Steps<void> {
    const lane = this.#parts.lanes.takeWaiting(metric)
    if (lane !== undefined) yield* this.#parts.settlement.discard(lane)
  }

  /**
   * `channel.purge`: drops values up to an id (and those that wait, if no id is given); returns how many. A GAP at the end of
   * each lane reports its losses, since values of other metrics may stay between.
   */
  async purge(only: { readonly metric?: number; readonly through?: number }, read: ReadBlock): Promise<number> {
    const { ids, lanes, listener } = this.#parts
    const through = Math.min(only.through ?? Number.POSITIVE_INFINITY, ids.next - 1)
    let count = 0
    for (const lane of only.through === undefined ? [...lanes] : [lanes.sending]) {
      count += await this.#purgeLane(lane, only.metric, through, read)
    }
    listener.ready()
    return count
  }

  async #purgeLane(lane: Lane, only: number | undefined, through: number, read: ReadBlock): Promise<number> {
    const { lanes, losses, settlement } = this.#parts
    let [count, from, to, metric] = [0, Number.POSITIVE_INFINITY, 0, -1]
    const lose = (values: number, earliest: number, latest: number, of: number): void => {
      if (values === 0) return
      count += values
      from = Math.min(from, earliest)
      to = Math.max(to, latest)
      metric = metric === -1 || metric === of ? of : 0
    }
    const mixed: Block[] = []
    for (const block of lane.blocksOf(only)) {
      if (only !== undefined && block.metric !== only) mixed.push(block)
      else lose(this.#purgeBlock(block, through), block.minTime, block.maxTime, block.metric)
    }
    const visit = ({ block, ordinal, time }: WalkedFrame): void => {
      if (block.lane === 0 && block.first + ordinal > through) return
      if (settlement.settleOne(block, ordinal, 'purged')) lose(1, time, time, only ?? 0)
    }
    await walkAll({ blocks: mixed, metric: only ?? 0, read, visit })
    lane.dropSettledHead()
    // The lane may have been released meanwhile.
    const now = lanes.get(lane.id) === lane ? lane : lanes.sending
    if (count > 0) losses.add(now, { reason: GapReason.purged, metric, count, from, to })
    return count
  }

  /** Purges the values of a block up to an id, all of them if it waits; returns how many. */
  #purgeBlock(block: Block, through: number): number {
    const { settlement } = this.#parts
    const { unsettled } = block
    if (block.lane !== 0 || block.last <= through) {
      settlement.settleAll(block, 'purged')
      return unsettled
    }
    for (let ordinal = 0; block.first + ordinal <= through; ordinal++) settlement.settleOne(block, ordinal, 'purged')
    return unsettled - block.unsettled
  }
}

/** The copy of a frame, and the id of its block. */
export interface FrameCopy {
  readonly block: number
  readonly frame: Uint8Array
}

/** The uncommitted frames of a metric, as SUBSCRIBE copies them: in flight, queued and waiting, in order. */
export class MetricCopies {
  readonly #metric: number
  readonly #read: ReadBlock
  readonly #lanes: Lanes
  readonly #delivery: Pick<Delivery, 'stops'>
  /** What was read back; undefined where it is damaged. */
  readonly #bytes = new Map<Block, Uint8Array | undefined>()

  constructor(metric: number, read: ReadBlock, lanes: Lanes, delivery: Pick<Delivery, 'stops'>) {
    this.#metric = metric
    this.#read = read
    this.#lanes = lanes
    this.#delivery = delivery
  }

  /** Reads back what is only on disk. */
  async load(): Promise<void> {
    for (let missing = this.#missing(this.#blocks()); missing.length > 0; missing = this.#missing(this.#blocks())) {
      for (const block of missing) this.#bytes.set(block, await this.#read(block))
    }
  }

  /** The frames as they are now, so that no value that comes meanwhile is missed; undefined if `load` has to be called again. */
  now(): FrameCopy[] | undefined {
    const blocks = this.#blocks()
    if (this.#missing(blocks).length > 0) return undefined
    const copies: FrameCopy[] = []
    const stopped = this.#delivery.stops.get(this.#metric) ?? 0
    const visit = ({ block, ordinal, frame }: WalkedFrame): void => {
      if (block.lane !== 0 || block.first + ordinal > stopped) copies.push({ block: block.id, frame: frame.slice() })
    }
    for (const block of blocks) {
      const found = block.chunk?.bytes.subarray(0, block.length) ?? this.#bytes.get(block)
      if (found !== undefined) walkBlock(block, this.#metric, found, visit)
    }
    return copies
  }

  #blocks(): Block[] {
    return [this.#lanes.sending, this.#lanes.get(this.#metric)].flatMap((lane) => lane?.blocksOf(this.#metric) ?? [])
  }

  #missing(blocks: readonly Block[]): Block[] {
    return blocks.filter((block) => block.chunk === undefined && !this.#bytes.has(block))
  }
}

/** Visits every unsettled frame of the metric, reading back what is not in memory; at once if nothing is to be read. */
function walkAll(walk: Walk, from = 0): Promise<void> | undefined {
  for (let index = from; index < walk.blocks.length; index++) {
    const block = walk.blocks[index] as Block
    if (block.unsettled === 0) continue
    if (block.chunk === undefined) return readThenWalk(walk, index)
    walkBlock(block, walk.metric, block.chunk.bytes.subarray(0, block.length), walk.visit)
  }
  return undefined
}

/** Asks for several blocks at once: each answer may have to wait for a transaction, and there may be thousands. */
async function readThenWalk(walk: Walk, from: number): Promise<void> {
  const { blocks, metric, visit } = walk
  const missing: Block[] = []
  let bytes = 0
  let end = from
  for (; end < blocks.length && bytes < READ_BYTES; end++) {
    const block = blocks[end] as Block
    if (block.unsettled === 0) continue
    if (block.chunk !== undefined) break
    missing.push(block)
    bytes += block.length
  }
  const found = await Promise.all(missing.map((block) => walk.read(block)))
  for (const [index, block] of missing.entries()) {
    const frames = found[index]
    if (frames !== undefined && block.unsettled > 0) walkBlock(block, metric, frames, visit)
  }
  await walkAll(walk, end)
}

function walkBlock(block: Block, metric: number, bytes: Uint8Array, visit: Walk['visit']): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let at = 0
  for (let ordinal = 0; at < bytes.length; ordinal++) {
    const end = at + 4 + view.getUint32(at)
    if (!block.isSettled(ordinal) && view.getUint32(at + FRAME_METRIC) === metric) {
      visit({ block, ordinal, frame: bytes.subarray(at, end), time: getUint53(view, at + FRAME_TIME) })
    }
    if (block.unsettled === 0) return
    at = end
  }
}
