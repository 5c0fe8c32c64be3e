/**
 * How much may still come before the disk is full. More must not be accepted: a batch that finds no room even with the
 * reserve would stop every COMMIT behind it.
 */
import { PAGE_BYTES } from './database.ts'
import { freeBytes, type Reserve } from './reserve.ts'

/** What a byte of values takes up at most, in log and database, and what pages around them take. */
const ROOM_PER_BYTE = 3
const SPARE_BYTES = 1 << 20
/** With room for less than this, or than twice the largest of the last batches, the disk counts as full. */
const LOW_BYTES = 256 << 10

export class Room {
  readonly #directory: string
  readonly #reserve: Reserve
  /** Pages of the log that are not in the database yet: they need room there. */
  readonly #logPages: () => number
  /** Bytes of the largest of the last batches. */
  #largest = 0

  constructor(directory: string, reserve: Reserve, logPages: () => number) {
    this.#directory = directory
    this.#reserve = reserve
    this.#logPages = logPages
  }

  /** Bytes of values that surely find room, with the reserve: in the log, and then in the database. */
  get left(): number {
    const free = freeBytes(this.#directory) + this.#reserve.bytes - this.#logPages() * PAGE_BYTES
    return Math.max(0, Math.floor((free - SPARE_BYTES) / ROOM_PER_BYTE))
  }

  /** A batch of so many bytes was stored. */
  stored(bytes: number): void {
    this.#largest = Math.max(bytes, Math.floor(this.#largest * 0.9))
  }

  get isLow(): boolean {
    return this.left < this.#low
  }

  /** Twice what would be low, or it would be full again at once. */
  get isEnough(): boolean {
    return this.left >= 2 * this.#low
  }

  get #low(): number {
    return Math.max(LOW_BYTES, 2 * this.#largest)
  }
}
