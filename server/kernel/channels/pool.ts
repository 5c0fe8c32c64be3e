/**
 * Buffers for open blocks, in size classes, used again and again. A buffer goes back only when its block has released it
 * *and* no link still sends from it: sending never copies.
 */

/** A buffer with the number of writes that still read from it. */
export class Chunk {
  readonly bytes: Uint8Array
  readonly view: DataView
  #held = 0
  #released = false
  readonly #pool: Pool

  private constructor(bytes: Uint8Array, pool: Pool) {
    this.bytes = bytes
    this.view = new DataView(this.bytes.buffer, this.bytes.byteOffset, this.bytes.byteLength)
    this.#pool = pool
    pool.used += bytes.length
  }

  static ofSize(size: number, pool: Pool): Chunk {
    // allocUnsafeSlow: a buffer of its own, not zeroed; every byte is written before it is sent or stored.
    return new Chunk(Buffer.allocUnsafeSlow(size), pool)
  }

  /** A chunk around bytes that were read back. */
  static of(bytes: Uint8Array, pool: Pool): Chunk {
    return new Chunk(bytes, pool)
  }

  hold(): void {
    this.#held++
  }

  unhold(): void {
    this.#held--
    if (this.#held === 0 && this.#released) this.#giveBack()
  }

  /** The block does not need it any more. */
  release(): void {
    this.#released = true
    if (this.#held === 0) this.#giveBack()
  }

  #giveBack(): void {
    this.#released = false
    this.#pool.give(this)
  }
}

const CLASSES = [1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18] as const
export const MAX_BLOCK_BYTES = 1 << 18
/** The memory that the frames of all channels should take at most. No bound: what is neither stored nor sent has to stay. */
export const TOTAL_RESIDENT_BYTES = 64 << 20
/** The memory kept for use again; more than this is left to the garbage collector. */
const KEPT_BYTES = TOTAL_RESIDENT_BYTES

export class Pool {
  /** Bytes held by blocks and links. */
  used = 0
  /** Bytes of blocks that are being read back, for which no buffer is held yet. */
  loading = 0
  readonly #free: Chunk[][] = CLASSES.map(() => [])
  #kept = 0

  /** A buffer of at least `size` bytes: a size class, or exactly `size` for one value that is larger than them all. */
  take(size: number): Chunk {
    const index = CLASSES.findIndex((bytes) => bytes >= size)
    const free = this.#free[index]?.pop()
    if (free) {
      this.#kept -= free.bytes.length
      this.used += free.bytes.length
      return free
    }
    return Chunk.ofSize(CLASSES[index] ?? size, this)
  }

  give(chunk: Chunk): void {
    this.used -= chunk.bytes.length
    const index = (CLASSES as readonly number[]).indexOf(chunk.bytes.length)
    const list = this.#free[index]
    if (!list || this.#kept + chunk.bytes.length > KEPT_BYTES) return
    this.#kept += chunk.bytes.length
    list.push(chunk)
  }
}
