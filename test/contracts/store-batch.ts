/** Batches for the tests of stores, written as objects; and the events of a store, to be waited for. */
import {
  type Batch,
  BLOCK_WIDTH,
  CHANNEL_WIDTH,
  type Change,
  GAP_WIDTH,
  type StorageError,
  type StoreEvents,
} from '../../storage/store.ts'

export interface TestBlock {
  readonly id: number
  readonly channel?: number
  readonly lane?: number
  readonly first?: number
  readonly values?: number
  readonly stamp?: number
  readonly from?: number
  readonly to?: number
  readonly metric?: number
  readonly frames: Uint8Array
}

export interface TestBatch {
  readonly blocks?: readonly TestBlock[]
  readonly moved?: readonly (readonly [id: number, lane: number, first: number])[]
  readonly settled?: readonly (readonly [block: number, bits: Uint8Array])[]
  readonly removed?: readonly number[]
  readonly channels?: readonly (readonly number[])[]
  readonly gaps?: readonly (readonly number[])[]
  readonly gapsRemoved?: readonly number[]
  readonly changes?: readonly Change[]
  readonly reserves?: boolean
  readonly age?: number
  readonly wall?: number
}

export function batch(number: number, parts: TestBatch = {}): Batch {
  const { blocks = [], settled = [], moved = [], changes = [], age = number, wall = number } = parts
  const pieces: Uint8Array[] = []
  let length = 0
  const place = (piece: Uint8Array): [offset: number, length: number] => {
    pieces.push(piece)
    length += piece.length
    return [length - piece.length, piece.length]
  }
  const rows = blocks.flatMap((block) => {
    const [id, channel, lane, first, values, , , ...times] = directoryRow(block)
    return [id, channel, lane, first, values, ...place(block.frames), ...times] as number[]
  })
  const bits = settled.flatMap(([id, piece]) => [id, ...place(piece)])
  // Longer than what counts, as a buffer of a pool is.
  const data = new Uint8Array(new SharedArrayBuffer(length + 7))
  let at = 0
  for (const piece of pieces) {
    data.set(piece, at)
    at += piece.length
  }
  return {
    number,
    data: data.buffer,
    dataLength: length,
    blocks: Float64Array.from(rows),
    moved: Float64Array.from(moved.flat()),
    settled: Float64Array.from(bits),
    removed: Float64Array.from(parts.removed ?? []),
    channels: Float64Array.from(parts.channels?.flat() ?? []),
    gaps: Float64Array.from(parts.gaps?.flat() ?? []),
    gapsRemoved: Float64Array.from(parts.gapsRemoved ?? []),
    changes,
    reserves: parts.reserves ?? false,
    age,
    wall,
  }
}

/** `length` bytes that depend on `seed`. */
export function frames(seed: number, length = 124): Uint8Array {
  const bytes = new Uint8Array(length)
  for (let index = 0; index < length; index++) bytes[index] = seed * 31 + index * 7
  return bytes
}

/** BLOCK_WIDTH numbers as the directory gives them. */
export function directoryRow(block: TestBlock): number[] {
  const { id, channel = 1, lane = 0, first = 100, values = 1, stamp = 5.5, metric = 7 } = block
  const { from = 1_700_000_000_000_001, to = from + 1 } = block
  const row = [id, channel, lane, first, values, 0, block.frames.length, stamp, from, to, metric]
  if (row.length !== BLOCK_WIDTH) throw new Error('a row of the directory has another width')
  return row
}

export function numbersOf(channel: number, start = 0): number[] {
  return Array.from({ length: CHANNEL_WIDTH }, (_, index) => (index === 0 ? channel : start + index))
}

export function gapRow(id: number, channel = 1, lane = 0, transaction = 100): number[] {
  const row = [id, channel, lane, transaction, 7, 3, 1_700_000_000_000_001, 1_700_000_000_000_002, 1]
  if (row.length !== GAP_WIDTH) throw new Error('a row of a GAP has another width')
  return row
}

/** Records the events of a store; `durable(n)` waits for batch n. */
export class EventLog implements StoreEvents {
  readonly numbers: number[] = []
  readonly failures: StorageError[] = []
  fullCount = 0
  roomCount = 0
  #waiting: (() => void)[] = []

  onDurable(number: number): void {
    this.numbers.push(number)
    this.#wake()
  }

  onFull(): void {
    this.fullCount++
    this.#wake()
  }

  onRoom(): void {
    this.roomCount++
    this.#wake()
  }

  onFailed(error: StorageError): void {
    this.failures.push(error)
    this.#wake()
  }

  durable(number: number): Promise<void> {
    return this.until(() => this.numbers.includes(number))
  }

  /** Waits until the condition holds, looking after every event. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}
