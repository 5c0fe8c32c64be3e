/**
 * Disk space: how many bytes of values can still be accepted, and a reserve for the time when the disk is full. Accepting more
 * must be refused early: a batch that does not fit even with the reserve would block every later COMMIT.
 */

import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { PAGE_BYTES } from './database.ts'

const MAX_BYTES = 16 * 1024 * 1024
/** A smaller reserve would not be enough for a batch and a checkpoint. */
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
  /** The size it had or will have; 0 while there has never been space for it. */
  #wanted: number
  #held: boolean

  constructor(directory: string, maxBytes = MAX_BYTES) {
    this.#directory = directory
    this.#maxBytes = maxBytes
    this.#path = join(directory, 'reserve')
    this.#wanted = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0
    this.#held = this.#wanted >= MIN_BYTES
  }

  /** The current size of the file. */
  get bytes(): number {
    return this.#held ? this.#wanted : 0
  }

  /** Creates the file if it fits twice (otherwise it would soon be needed again). Returns whether it exists. */
  make(): boolean {
    if (this.#held) return true
    const free = freeBytes(this.#directory)
    const wanted = this.#wanted >= MIN_BYTES ? this.#wanted : Math.min(this.#maxBytes, Math.floor(free / 8))
    if (wanted < MIN_BYTES || free < 2 * wanted) return false
    this.#wanted = wanted
    this.#held = this.#fill(wanted)
    return this.#held
  }

  /** Deletes the file. Returns whether that freed space. */
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
      // Another process has used the space in the meantime.
      rmSync(this.#path, { force: true })
      return false
    } finally {
      if (file !== undefined) closeSync(file)
    }
  }
}

/** The most space that a byte of values takes in log and database, and a margin for other pages. */
const ROOM_PER_BYTE = 3
const SPARE_BYTES = 1 << 20
/** The most pages that the removal of a row changes: its own, its neighbours when they are merged, and one of an index. */
const PAGES_PER_REMOVAL = 4
/** With space for fewer bytes than this, or than twice the largest recent batch, the disk counts as full. */
const LOW_BYTES = 256 << 10

/** Pages of the log, and how many of them are in the database already; the others will need space there. */
export interface LogPages {
  readonly written: number
  readonly carried: number
}

export class FreeSpace {
  readonly #freeBytes: () => number
  readonly #reserve: Pick<DiskReserve, 'bytes'>
  readonly #logPages: () => LogPages
  /** The size of the largest recent batch, which decays. */
  #largest = 0

  constructor(freeBytes: () => number, reserve: Pick<DiskReserve, 'bytes'>, logPages: () => LogPages) {
    this.#freeBytes = freeBytes
    this.#reserve = reserve
    this.#logPages = logPages
  }

  /** Bytes of values that certainly fit into the log and then into the database, including the reserve. */
  get bytesLeft(): number {
    const { written, carried } = this.#logPages()
    const free = this.#freeBytes() + this.#reserve.bytes - (written - carried) * PAGE_BYTES
    return Math.max(0, Math.floor((free - SPARE_BYTES) / ROOM_PER_BYTE))
  }

  /** How many rows may be removed in one transaction, at most `most` and at least one. The reserve is not touched for them. */
  removable(most: number): number {
    const { written, carried } = this.#logPages()
    // A log that is wholly in the database is overwritten from its beginning.
    const pages = Math.floor(this.#freeBytes() / PAGE_BYTES) + (written === carried ? written : carried - written)
    return Math.max(1, Math.min(most, Math.floor(pages / PAGES_PER_REMOVAL)))
  }

  /** Notes the size of a stored batch. */
  noteBatch(bytes: number): void {
    this.#largest = Math.max(bytes, Math.floor(this.#largest * 0.9))
  }

  get isLow(): boolean {
    return this.bytesLeft < this.#low
  }

  /** Whether there is twice the low limit: with less the disk would soon be full again. */
  get isEnough(): boolean {
    return this.bytesLeft >= 2 * this.#low
  }

  get #low(): number {
    return Math.max(LOW_BYTES, 2 * this.#largest)
  }
}
