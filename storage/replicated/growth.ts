/**
 * Blocks that grow: what the log has of those that a later batch may store again, longer (decision 1), so that a record carries
 * only the frames that are new. Whether the old frames really are the beginning of the new ones is decided by their checksum: a
 * release of waiting values writes transaction ids into frames that the log has without.
 */
import { crc32 } from 'node:zlib'
import { type Batch, BLOCK_WIDTH, SMALL_BLOCK_BYTES } from '../store.ts'

/** The columns of a row of `blocks` that say where its frames are in `data`. */
export const BLOCK_OFFSET = 5
export const BLOCK_LENGTH = 6

/** How many blocks are remembered: some MiB. Those that have not grown for the longest time are forgotten, and written whole. */
const MAX_REMEMBERED = 65_536

/** A block of a batch of which the log has a part. */
export interface GrownBlock {
  /** Its row in `blocks`. */
  readonly row: number
  /** The length of the frames that the log has, in bytes. */
  readonly base: number
  /** The CRC-32 of all its frames, old and new. */
  readonly checksum: number
}

/** What the log has of a block: the length of its frames and their CRC-32. */
interface Logged {
  readonly length: number
  readonly checksum: number
}

export class BlockGrowth {
  readonly #max: number
  /** Block ids, the longest without growth first. */
  readonly #logged = new Map<number, Logged>()
  /** What the record under way adds; undefined for what is forgotten with it. */
  #pending = new Map<number, Logged | undefined>()
  #forgotten = 0

  constructor(max = MAX_REMEMBERED) {
    this.#max = max
  }

  /** How many blocks are remembered. */
  get remembered(): number {
    return this.#logged.size
  }

  /** How many blocks were forgotten, so far, because there were too many. */
  get forgotten(): number {
    return this.#forgotten
  }

  /** The blocks of a batch that have grown, in the order of their rows. Their frames are within `data`. */
  find({ blocks, data, removed }: Batch): GrownBlock[] {
    const pending = new Map<number, Logged | undefined>()
    const grown: GrownBlock[] = []
    for (let at = 0; at < blocks.length; at += BLOCK_WIDTH) {
      const id = blocks[at]!
      const length = blocks[at + BLOCK_LENGTH]!
      const before = this.#logged.get(id)
      if (before === undefined && length >= SMALL_BLOCK_BYTES) continue
      const frames = new Uint8Array(data, blocks[at + BLOCK_OFFSET]!, length)
      let checksum: number
      if (before !== undefined && isBeginning(before, frames)) {
        checksum = continuedChecksum(before.checksum, frames.subarray(before.length))
        grown.push({ row: at / BLOCK_WIDTH, base: before.length, checksum })
      } else checksum = crc32(frames)
      pending.set(id, length > 0 && length < SMALL_BLOCK_BYTES ? { length, checksum } : undefined)
    }
    for (const id of removed) if (this.#logged.has(id) || pending.has(id)) pending.set(id, undefined)
    this.#pending = pending
    return grown
  }

  /** The record of the last batch is in the log. */
  appended(): void {
    for (const [id, logged] of this.#pending) {
      this.#logged.delete(id)
      if (logged !== undefined) this.#logged.set(id, logged)
    }
    this.#pending = new Map()
    for (const id of this.#logged.keys()) {
      if (this.#logged.size <= this.#max) break
      this.#logged.delete(id)
      this.#forgotten++
    }
  }

  /** Forgets everything: another node may have written to the log. */
  reset(): void {
    this.#logged.clear()
    this.#pending = new Map()
  }
}

function isBeginning({ length, checksum }: Logged, frames: Uint8Array): boolean {
  return length <= frames.length && crc32(frames.subarray(0, length)) === checksum
}

function continuedChecksum(checksum: number, bytes: Uint8Array): number {
  // zlib returns 0 for no bytes, whatever `checksum` is.
  return bytes.length === 0 ? checksum : crc32(bytes, checksum)
}
