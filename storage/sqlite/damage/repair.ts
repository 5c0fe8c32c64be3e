/**
 * Repairs the numbers of channels with rows that are missing or do not match their checksums, so that no transaction id is used
 * twice, the ledger balances [MON 8 Ledger], and the channel reports possible loss: with ids reserved beyond the next one it
 * looks like after an unclean shutdown [MON 8 Durability]. Values are rather sent again than lost.
 */
import { BLOCK_WIDTH, CHANNEL_WIDTH, type ChannelRow, GAP_WIDTH, type Recovered } from '../../store.ts'
import { FLOOR, NEXT, type NumbersFound, RESERVED, SKIPPED_IDS } from '../numbers.ts'

const ACCEPTED = 4
const COMMITTED = 5
const GAPS = 13
/** An id in a damaged row is believed if it is at most this far above all others: years of values at any rate. */
const BELIEVED_IDS = 2 ** 44

export interface SoundRows extends Pick<Recovered, 'channels' | 'blocks' | 'settled' | 'gaps'> {
  readonly numbers: NumbersFound
}

/** The totals over the blocks and GAPs of a channel. */
interface Tally {
  /** The number of values that are not settled. */
  unsettled: number
  /** Greater than every transaction id in them. */
  next: number
  gaps: number
}

export interface LostRows {
  /** Channels that have lost rows. */
  readonly channels: ReadonlySet<number>
  /** Whether bitmaps are lost, possibly of unknown blocks. */
  readonly bitmaps: boolean
}

/** Returns the rows to replace, CHANNEL_WIDTH numbers each. */
export function repairNumbers(sound: SoundRows, lost: LostRows): number[][] {
  const { channels, numbers } = sound
  const repaired: number[][] = []
  if (lost.channels.size === 0 && !lost.bitmaps && channels.every(({ id }) => numbers.sound.has(id))) return repaired
  const tallies = tallyAll(sound)
  for (const channel of channels) {
    const { id, durable } = channel
    const tally = tallies.get(id) ?? newTally()
    const row = numbers.sound.get(id)
    if (row === undefined) repaired.push(rebuilt(channel, tally, numbers.damaged.get(id)))
    else if (durable && (lost.channels.has(id) || (lost.bitmaps && imbalance(row, tally) < 0)))
      repaired.push(balanced(row, tally))
  }
  return repaired
}

function tallyAll({ numbers, blocks, settled, gaps }: SoundRows): Map<number, Tally> {
  const tallies = new Map<number, Tally>()
  const of = (channel: number): Tally => {
    const tally = tallies.get(channel) ?? newTally()
    tallies.set(channel, tally)
    return tally
  }
  for (let at = 0; at < blocks.length; at += BLOCK_WIDTH) {
    const [channel, first, count] = [blocks[at + 1]!, blocks[at + 3]!, blocks[at + 4]!]
    const tally = of(channel)
    const below = blocks[at + 2] === 0 ? (numbers.sound.get(channel)?.[FLOOR] ?? 0) - first : 0
    tally.unsettled += unsettled(count, below, settled.get(blocks[at]!))
    tally.next = Math.max(tally.next, first + count)
  }
  for (let at = 0; at < gaps.length; at += GAP_WIDTH) {
    const tally = of(gaps[at + 1]!)
    tally.gaps++
    tally.next = Math.max(tally.next, gaps[at + 3]! + 1)
  }
  return tallies
}

function newTally(): Tally {
  return { unsettled: 0, next: 0, gaps: 0 }
}

/** The number of `count` values that are neither below an ordinal nor in the bitmap. */
function unsettled(count: number, below: number, bitmap: Uint8Array | undefined): number {
  const start = Math.max(0, Math.min(below, count))
  let left = count - start
  if (bitmap === undefined) return left
  for (let ordinal = start; ordinal < count; ordinal++) {
    if (((bitmap[ordinal >> 3] ?? 0) & (1 << (ordinal & 7))) !== 0) left--
  }
  return left
}

/** The number of missing values; negative if values that are counted as settled are there. */
function imbalance(row: readonly number[], tally: Tally): number {
  const settled = row.slice(COMMITTED, GAPS).reduce((sum, count) => sum + count, 0)
  return row[ACCEPTED]! - settled - tally.unsettled
}

/** Corrects a row for values that are sent again. How they were settled is not known; most were committed. */
function balanced(row: readonly number[], tally: Tally): number[] {
  const again = Math.max(0, -imbalance(row, tally))
  const committed = Math.min(again, row[COMMITTED]!)
  return row
    .with(COMMITTED, row[COMMITTED]! - committed)
    .with(ACCEPTED, row[ACCEPTED]! + again - committed)
    .with(RESERVED, Math.max(row[RESERVED]!, row[NEXT]! + 1))
}

/** Rebuilds a row from blocks and GAPs. A believed id of the damaged row can only waste ids. */
function rebuilt({ id, origin }: ChannelRow, tally: Tally, damaged: readonly number[] = []): number[] {
  const seen = Math.max(origin, tally.next)
  const said = damaged.slice(FLOOR, RESERVED + 1)
  const next = Math.max(seen, ...said.filter((one) => Number.isSafeInteger(one) && one < seen + BELIEVED_IDS))
  return Array<number>(CHANNEL_WIDTH)
    .fill(0)
    .with(0, id)
    .with(FLOOR, origin)
    .with(NEXT, next)
    .with(RESERVED, next + SKIPPED_IDS)
    .with(ACCEPTED, tally.unsettled)
    .with(GAPS, tally.gaps)
}
