/**
 * Disk space: how many bytes of values can still be accepted, and a reserve for the time when the disk is full. Accepting more
 * must be refused early: a batch that does not fit even with the reserve would block every later COMMIT.
 */

import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { PAGE_BYTES } from './database.ts'

const MAX_BYTES = 16 * 1024 * 1024
/** Less than this would not carry a batch and a checkpoint. */
const MIN_BYTES = 512 * 1024
const PIECE_BYTES = 1024 * 1024

/** Bytes that this process may still write on the disk of `directory`. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

/**
 * A file that only occupies space and is deleted when the disk is full: COMMIT and STOP have to write too before they can free
 * anything. It is filled with incompressible bytes, because a sparse file would reserve nothing.
 */
export class DiskReserve {
  readonly #directory: string
  readonly #path: string
  readonly #maxBytes: number
  /** Bytes it had or is to have; 0 while there never was room for it. */
  #wanted: number
  #held: boolean

  constructor(directory: string, maxBytes = MAX_BYTES) {
    this.#directory = directory
    this.#maxBytes = maxBytes
    this.#path = join(directory, 'reserve')
    this.#wanted = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0
    this.#held = this.#wanted >= MIN_BYTES
  }

  /** Bytes that the file takes up. */
  get bytes(): number {
    return this.#held ? this.#wanted : 0
  }

  /** Makes the file if there is room for it twice (else it would be needed again at once); true if it is there. */
  make(): boolean {
    if (this.#held) return true
    const free = freeBytes(this.#directory)
    const wanted = this.#wanted >= MIN_BYTES ? this.#wanted : Math.min(this.#maxBytes, Math.floor(free / 8))
    if (wanted < MIN_BYTES || free < 2 * wanted) return false
    this.#wanted = wanted
    this.#held = this.#fill(wanted)
    return this.#held
  }

  /** Deletes the file; true if that gave room. */
  release(): boolean {
    const held = this.#held
    rmSync(this.#path, { force: true })
    this.#held = false
    return held
  }

  #fill(bytes: number): boolean {
    const piece = randomFillSync(Buffer.alloc(Math.min(PIECE_BYTES, bytes)))
    let file: number | undefined
    try {
      file = openSync(this.#path, 'w', 0o600)
      for (let left = bytes; left > 0; ) left -= writeSync(file, piece, 0, Math.min(left, piece.length))
      return true
    } catch {
      // Somebody else took the room meanwhile.
      rmSync(this.#path, { force: true })
      return false
    } finally {
      if (file !== undefined) closeSync(file)
    }
  }
}

/** What a byte of values takes up at most, in log and database, and what pages around them take. */
const ROOM_PER_BYTE = 3
const SPARE_BYTES = 1 << 20
/** With room for less than this, or than twice the largest of the last batches, the disk counts as full. */
const LOW_BYTES = 256 << 10

export class FreeSpace {
  readonly #directory: string
  readonly #reserve: DiskReserve
  /** Pages of the log that are not in the database yet: they need room there. */
  readonly #logPages: () => number
  /** Bytes of the largest of the last batches. */
  #largest = 0

  constructor(directory: string, reserve: DiskReserve, logPages: () => number) {
    this.#directory = directory
    this.#reserve = reserve
    this.#logPages = logPages
  }

  /** Bytes of values that surely find room, with the reserve: in the log, and then in the database. */
  get bytesLeft(): number {
    const free = freeBytes(this.#directory) + this.#reserve.bytes - this.#logPages() * PAGE_BYTES
    return Math.max(0, Math.floor((free - SPARE_BYTES) / ROOM_PER_BYTE))
  }

  /** A batch of so many bytes was stored. */
  noteBatch(bytes: number): void {
    this.#largest = Math.max(bytes, Math.floor(this.#largest * 0.9))
  }

  get isLow(): boolean {
    return this.bytesLeft < this.#low
  }

  /** Twice what would be low, or it would be full again at once. */
  get isEnough(): boolean {
    return this.bytesLeft >= 2 * this.#low
  }

  get #low(): number {
    return Math.max(LOW_BYTES, 2 * this.#largest)
  }
}
