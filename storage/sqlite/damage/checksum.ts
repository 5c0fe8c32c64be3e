/**
 * The CRC-32 of a row of numbers, each as a big-endian 64-bit float, so that it does not matter whether SQLite stores a number as
 * integer or real. All rows share one buffer, since a transaction may write ten thousand.
 */
import { crc32 } from 'node:zlib'

export class RowSum {
  readonly #width: number
  readonly #view: DataView

  /** `width` is the number of numbers in a row. */
  constructor(width: number) {
    this.#width = width
    this.#view = new DataView(new ArrayBuffer(width * 8))
  }

  /** The checksum of the `width` numbers from `at` on. */
  of(row: ArrayLike<number>, at = 0): number {
    // SQLite does not store negative zero.
    for (let index = 0; index < this.#width; index++) this.#view.setFloat64(index * 8, row[at + index]! + 0)
    return crc32(this.#view)
  }

  /** Whether the number after a row is its checksum. */
  isRight(row: ArrayLike<number>): boolean {
    return row[this.#width] === this.of(row)
  }
}
