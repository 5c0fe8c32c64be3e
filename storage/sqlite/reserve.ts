/**
 * A file that only takes up room, to be deleted when the disk is full: COMMIT and STOP write too, and what they free
 * can be freed only by writing. Written with real, incompressible bytes; a sparse file would reserve nothing.
 */
import { randomFillSync } from 'node:crypto'
import { closeSync, openSync, rmSync, statfsSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const MAX_BYTES = 16 * 1024 * 1024
/** Less than this would not carry a batch and a checkpoint. */
const MIN_BYTES = 512 * 1024
const PIECE_BYTES = 1024 * 1024

/** Bytes that this process may still write on the disk of `directory`. */
export function freeBytes(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}

export class Reserve {
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
