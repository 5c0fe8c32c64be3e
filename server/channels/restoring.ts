/**
 * How a queue comes back from the store: numbers first, then blocks and GAPs in order, then `recovered`. Frames stay on
 * disk until their turn comes.
 */
import { BasicType, GapReason } from '../../protocol/monitor/constants.ts'
import { BLOCK_WIDTH, CHANNEL_WIDTH, GAP_WIDTH } from '../../storage/store.ts'
import { Block, FRAME_METRIC, FRAME_TYPE } from './block.ts'
import { GapEntry } from './gap.ts'
import type { Entry, Lane } from './lane.ts'
import { dropCauses } from './ledger.ts'
import { addLoss } from './limits.ts'
import type { QueueState } from './queue-state.ts'
import type { ReadBlock } from './selecting.ts'
import { seriesKeyOfFrame } from './series-key.ts'
import { advance, settleAll } from './settling.ts'

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
  queue.reserved = number(3)
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
  block.count = block.unsettled = block.submitted = block.durable = number(4)
  block.length = block.unsettledBytes = block.submittedLength = block.durableLength = number(6)
  block.appendedAge = number(7)
  block.minTime = number(8)
  block.maxTime = number(9)
  block.metric = number(10)
  block.sealed = true
  if (bitmap) block.restoreBitmap(bitmap)
  if (block.lane === 0)
    for (let i = block.settledPrefix; i < Math.min(block.count, floor - block.first); i++) block.settle(i)
  let settled = 0
  for (let i = 0; i < block.count; i++) if (block.isSettled(i)) settled++
  block.unsettledBytes -= Math.floor((block.length * settled) / Math.max(1, block.count))
  block.unsettled -= settled
  if (block.unsettled === 0) {
    queue.removedBlocks.push(block.id)
    return block
  }
  queue.bytes += block.unsettledBytes
  queue.share.bytes += block.unsettledBytes
  queue.ledger.unsettled += block.unsettled
  queue.openLane(block.lane).push(block)
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
    reason: number(8) as GapEntry['reason'],
  }
  const gap = new GapEntry(number(0), number(2), number(3), loss)
  gap.submitted = true
  // It may have been sent before: it never changes again.
  gap.wasSent = true
  const lane = queue.openLane(gap.lane)
  const place = (entry: Entry): boolean => (gap.lane === 0 ? entry.first > gap.transaction : entry.id > gap.id)
  let index = lane.length
  while (index > 0 && place(lane.at(index - 1) as Entry)) index--
  lane.insert(index, gap)
}

/**
 * Everything is back. After an unclean end ids that may have been given are skipped, and a GAP says that values may be
 * missing; so does one for blocks that are damaged and gone: the ledger knows how many values they had [MON 8].
 */
export function recovered(queue: QueueState, clean: boolean): void {
  const { ledger, settings } = queue
  queue.storedNext = queue.next
  if (!clean) queue.next = Math.max(queue.next, queue.reserved)
  const missing = ledger.imbalance
  if (!settings.durable) {
    // Its values survive nothing, and no storage is to blame.
    ledger.accepted -= missing
    return
  }
  const unknown = { metric: 0, from: 0, to: 0 }
  if (missing > 0) {
    ledger.dropped.damaged += missing
    addLoss(queue, queue.sending, { ...unknown, count: missing, reason: GapReason.damaged })
  }
  if (!clean) addLoss(queue, queue.sending, { ...unknown, count: 0, reason: GapReason.restart })
}

/**
 * keep-latest: which series a restored value belongs to stands only in its frame, so these are read back before anything
 * is sent; there is one for each series. `isPattern`: whether the values of a metric id carry labels.
 */
export async function restoreSeries(
  queue: QueueState,
  read: ReadBlock,
  isPattern: (metric: number) => boolean,
): Promise<void> {
  if (queue.settings.overflow !== 'keep-latest') return
  for (const lane of [...queue.lanes()]) {
    for (const block of [...lane]) {
      if (block.kind !== 'block' || block.key !== undefined || block.count !== 1 || block.exempt) continue
      const frame = await read(block)
      // A damaged one is told when its turn comes.
      if (frame === undefined || block.unsettled === 0) continue
      const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
      const labelled = view.getUint32(FRAME_TYPE) === BasicType.REC && isPattern(view.getUint32(FRAME_METRIC))
      keepNewest(queue, lane, block, seriesKeyOfFrame(frame, labelled))
    }
    advance(lane)
  }
}

function keepNewest(queue: QueueState, lane: Lane, block: Block, key: string): void {
  const other = lane.latest.get(key)
  if (other !== undefined && other.id > block.id) {
    settleAll(queue, block, 'superseded')
    return
  }
  if (other !== undefined) settleAll(queue, other, 'superseded')
  block.key = key
  lane.latest.set(key, block)
}
