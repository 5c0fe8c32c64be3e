/**
 * A batch for the store in the making. Frames are copied out of the blocks, from which they may still be sent, into memory
 * that is shared with the storage thread. Rows are numbers in Float64Arrays.
 */
import type { Batch, Change } from '../../../storage/store.ts'

class Rows {
  #numbers = new Float64Array(64)
  #length = 0

  add(...row: number[]): void {
    if (this.#length + row.length > this.#numbers.length) {
      const grown = new Float64Array(this.#numbers.length * 2 + row.length)
      grown.set(this.#numbers)
      this.#numbers = grown
    }
    this.#numbers.set(row, this.#length)
    this.#length += row.length
  }

  get empty(): boolean {
    return this.#length === 0
  }

  take(): Float64Array {
    return this.#numbers.slice(0, this.#length)
  }
}

export class BatchBuilder {
  readonly blocks = new Rows()
  readonly moved = new Rows()
  readonly settled = new Rows()
  readonly removed = new Rows()
  readonly channels = new Rows()
  readonly gaps = new Rows()
  readonly gapsRemoved = new Rows()
  changes: Change[] = []
  /** Transaction ids are reserved or given back. */
  reserves = false
  #data: Uint8Array<SharedArrayBuffer>
  #length = 0

  /** `buffer` is that of a durable batch, to be used again. */
  constructor(buffer = new SharedArrayBuffer(1 << 16)) {
    this.#data = new Uint8Array(buffer)
  }

  get length(): number {
    return this.#length
  }

  /** Copies bytes into the batch; returns their offset. */
  copy(bytes: Uint8Array): number {
    const at = this.#length
    const need = at + bytes.length
    if (need > this.#data.length) {
      const grown = new Uint8Array(new SharedArrayBuffer(Math.max(need, this.#data.length * 2)))
      grown.set(this.#data.subarray(0, at))
      this.#data = grown
    }
    this.#data.set(bytes, at)
    this.#length = need
    return at
  }

  /** The memory with the frames. */
  get buffer(): SharedArrayBuffer {
    return this.#data.buffer
  }

  build(number: number, age: number, wall: number): Batch {
    return {
      number,
      data: this.#data.buffer,
      dataLength: this.#length,
      blocks: this.blocks.take(),
      moved: this.moved.take(),
      settled: this.settled.take(),
      removed: this.removed.take(),
      channels: this.channels.take(),
      gaps: this.gaps.take(),
      gapsRemoved: this.gapsRemoved.take(),
      changes: this.changes,
      reserves: this.reserves,
      age,
      wall,
    }
  }
}
