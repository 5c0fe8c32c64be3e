/**
 * The room on the disk that the history leaves to others, above all to the database beside it: what comes while the history stores
 * nothing waits in the channels, which are there. Below the reserve nothing is stored and nothing merged; only retention goes on.
 */
import { statfsSync } from 'node:fs'
import { StorageError } from '../store.ts'

export interface HistorySpace {
  readonly sizeBytes: number
  /** Bytes that this process may still write. */
  readonly freeBytes: number
}

const MEBIBYTE = 1 << 20
const SHARE = 0.05
const LEAST_BYTES = 64 << 20
const MOST_BYTES = 1 << 30
/** Of a disk that is smaller than that. */
const LEAST_SHARE = 0.25
/** Storing goes on when there is so much more than the reserve, as a part of it. */
const MARGIN = 0.25

export function historySpaceOf(directory: string): HistorySpace {
  const { blocks, bavail, bsize } = statfsSync(directory)
  return { sizeBytes: blocks * bsize, freeBytes: bavail * bsize }
}

/** What is left free on a disk: a twentieth, from 64 MiB to 1 GiB. */
export function reserveOn(sizeBytes: number): number {
  return Math.min(MOST_BYTES, Math.max(sizeBytes * SHARE, Math.min(LEAST_BYTES, sizeBytes * LEAST_SHARE)))
}

export class HistoryRoom {
  readonly #directory: string
  readonly #space: () => HistorySpace
  #isLow = false

  constructor(directory: string, space: () => HistorySpace) {
    this.#directory = directory
    this.#space = space
  }

  /** Bytes that may be written without touching the reserve; negative if there are none. */
  get bytesLeft(): number {
    const { sizeBytes, freeBytes } = this.#space()
    const reserve = reserveOn(sizeBytes)
    const left = freeBytes - reserve
    if (this.#isLow) this.#isLow = left < reserve * MARGIN
    else this.#isLow = left < 0
    return this.#isLow ? Math.min(-1, left) : left
  }

  get isLow(): boolean {
    return this.bytesLeft < 0
  }

  /** Whether there is room for so many bytes more. Throws StorageError with FULL. */
  checkFor(bytes: number): void {
    const left = Math.max(0, this.bytesLeft)
    if (bytes <= left) return
    const [needed, free] = [Math.ceil(bytes / MEBIBYTE), Math.floor(left / MEBIBYTE)]
    throw new StorageError(
      'FULL',
      `a copy of the history needs ${needed} MiB on the disk of ${this.#directory}, and there are ${free} besides those that are left ` +
        'to the database: free some space',
    )
  }

  /** Throws StorageError with FULL. */
  check(): void {
    if (!this.isLow) return
    const mebibytes = Math.ceil(reserveOn(this.#space().sizeBytes) / MEBIBYTE)
    throw new StorageError(
      'FULL',
      `the disk of ${this.#directory} has less than ${mebibytes} MiB free, which are left to the database: free some space, ` +
        'or lower `max_bytes` of [history]',
    )
  }
}
