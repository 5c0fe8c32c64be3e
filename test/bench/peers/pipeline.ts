/**
 * Publishes by copies of one frame, in batches, with a bound on what is not confirmed: the peers' publishers differ only in
 * the frame and in what confirms it.
 */
import { Moment, type RawSocket } from '../processes/raw-socket.ts'
import { writeValue } from './counted-value.ts'

const BATCH = 500

export interface Frame {
  /** A whole command with room for the value at `valueAt`. */
  readonly bytes: Uint8Array
  readonly valueAt: number
  /** Sets what else changes from frame to frame. */
  readonly number?: (bytes: Uint8Array, at: number, count: number) => void
}

export class Pipeline {
  readonly #frame: Frame
  readonly #values: number
  readonly #mostUnconfirmed: number
  #sent = 0
  #confirmed = 0
  #room = new Moment()
  readonly #done = new Moment()

  constructor(options: { readonly frame: Frame; readonly values: number; readonly mostUnconfirmed: number }) {
    this.#frame = options.frame
    this.#values = options.values
    this.#mostUnconfirmed = options.mostUnconfirmed
  }

  confirm(count: number): void {
    this.#confirmed += count
    this.#room.reach()
    if (this.#confirmed === this.#values) this.#done.reach()
  }

  async run(socket: RawSocket): Promise<void> {
    while (this.#sent < this.#values) {
      while (this.#sent - this.#confirmed + BATCH > this.#mostUnconfirmed) {
        this.#room = new Moment()
        await socket.until(this.#room.reached)
      }
      if (!socket.write(this.#batch(Math.min(BATCH, this.#values - this.#sent)))) await socket.drained()
    }
    await socket.until(this.#done.reached)
  }

  #batch(count: number): Uint8Array {
    const { bytes, valueAt, number } = this.#frame
    const batch = new Uint8Array(count * bytes.length)
    for (let at = 0; at < batch.length; at += bytes.length) {
      batch.set(bytes, at)
      writeValue(batch, at + valueAt, this.#sent)
      number?.(batch, at, this.#sent)
      this.#sent++
    }
    return batch
  }
}
