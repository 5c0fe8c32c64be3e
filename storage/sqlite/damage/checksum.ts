/**
 * CRC-32 of a row of numbers, each as a 64-bit float, big-endian: whether SQLite keeps one as an integer or as a real makes
 * no difference. One buffer serves all rows, since ten thousand may be written in a transaction.
 */
import { crc32 } from 'node:zlib'

export class RowSum {
  readonly #width: number
  readonly #view: DataView

  /** `width`: how many numbers a row has. */
  constructor(width: number) {
    this.#width = width
    this.#view = new DataView(new ArrayBuffer(width * 8))
  }

  /** Of the `width` numbers from `at` on. */
  of(row: ArrayLike<number>, at = 0): number {
    // SQLite keeps no negative zero.
    for (let index = 0; index < this.#width; index++) this.#view.setFloat64(index * 8, row[at + index]! + 0)
    return crc32(this.#view)
  }

  /** Whether the number behind a row is its checksum. */
  isRight(row: ArrayLike<number>): boolean {
    return row[this.#width] === this.of(row)
  }
}
