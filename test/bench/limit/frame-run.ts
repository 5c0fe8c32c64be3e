/** Frames that differ in one number only: laid out once, so that a frame costs one store, and a run of them one copy. */
const RUN_BYTES = 1 << 20

export class FrameRun {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #frameBytes: number
  readonly #at: number
  #length = 0
  #taken: Uint8Array[] = []

  /** `at`: where the number stands in a frame. */
  constructor(frame: Uint8Array, at: number) {
    const count = Math.ceil(RUN_BYTES / frame.length)
    this.#bytes = new Uint8Array(count * frame.length)
    for (let start = 0; start < this.#bytes.length; start += frame.length) this.#bytes.set(frame, start)
    this.#view = new DataView(this.#bytes.buffer)
    this.#frameBytes = frame.length
    this.#at = at
  }

  add(number: number): void {
    if (this.#length === this.#bytes.length) this.#cut()
    this.#view.setUint32(this.#length + this.#at, number)
    this.#length += this.#frameBytes
  }

  /** What was added since the last call. */
  take(): readonly Uint8Array[] {
    this.#cut()
    const taken = this.#taken
    this.#taken = []
    return taken
  }

  #cut(): void {
    if (this.#length > 0) this.#taken.push(this.#bytes.slice(0, this.#length))
    this.#length = 0
  }
}
