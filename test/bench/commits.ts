/** COMMITs of the values of one read, each by itself or one `through`, to be written at once. */
import { TRANSACTION } from './connection.ts'

const COMMIT = 10
const PLAIN_BYTES = 20
const THROUGH_BYTES = 24
/** The seq of the first COMMIT: those of other commands are below. */
const FIRST_SEQ = 1 << 24

export class Commits {
  readonly #through: boolean
  #bytes = Buffer.allocUnsafe(1 << 12)
  #view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset)
  #length = 0
  #values = 0
  #high = 0
  #low = 0
  /** Values that COMMITs were taken for. */
  committed = 0
  /** COMMITs taken: so many responses are due. */
  sent = 0

  constructor(through: boolean) {
    this.#through = through
  }

  /** Of the VALUE or GAP frame at `at`. */
  add(view: DataView, at: number): void {
    this.#values++
    this.#high = view.getUint32(at + TRANSACTION)
    this.#low = view.getUint32(at + TRANSACTION + 4)
    if (!this.#through) this.#put(PLAIN_BYTES)
  }

  /** The COMMITs added since the last call; undefined if there are none. */
  take(): Uint8Array | undefined {
    if (this.#values === 0) return undefined
    if (this.#through) {
      this.#put(THROUGH_BYTES)
      this.#view.setUint32(this.#length - 4, 1)
    }
    this.committed += this.#values
    this.#values = 0
    const bytes = Buffer.from(this.#bytes.subarray(0, this.#length))
    this.#length = 0
    return bytes
  }

  #put(bytes: number): void {
    const at = this.#length
    if (at + bytes > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes], this.#bytes.length * 2)
      this.#view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset)
    }
    this.#view.setUint32(at, bytes - 4)
    this.#view.setUint32(at + 4, COMMIT)
    this.#view.setUint32(at + 8, FIRST_SEQ + this.sent)
    this.#view.setUint32(at + 12, this.#high)
    this.#view.setUint32(at + 16, this.#low)
    this.#length = at + bytes
    this.sent++
  }
}
