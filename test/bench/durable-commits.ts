/**
 * COMMIT frames of a consumer, in the order that the options ask for. The frames of a buffer are laid out once and only
 * their seq and id change: three stores per value.
 *
 *   0 uint32 length | 4 uint32 10 = COMMIT | 8 uint32 seq | 12 uint64 id [| 20 uint32 through]
 */
import type { Commits } from './processes/end.ts'

const COMMIT = 10
const FRAME_BYTES = 20
const THROUGH_FRAME_BYTES = 24
const FRAMES = 16_384

export class CommitFrames {
  readonly #options: Commits
  readonly #write: (bytes: Uint8Array) => void
  readonly #frames = layOut()
  readonly #view = new DataView(this.#frames.buffer)
  readonly #shuffled: Float64Array
  #length = 0
  #pending = 0
  /** The range that is not to be committed yet. */
  #held = 0
  #last = 0
  #lastThrough = 0
  /** COMMITs written or about to be: each has a response. */
  sent = 0

  constructor(options: Commits, write: (bytes: Uint8Array) => void) {
    this.#options = options
    this.#write = write
    this.#shuffled = new Float64Array(options.shuffle)
  }

  /** Values that came and have no COMMIT. */
  get waiting(): boolean {
    return this.#options.writeAll && this.#held <= this.#last
  }

  add(id: number, high: number, low: number): void {
    const { through, shuffle, writeAll } = this.#options
    this.#last = id
    if (through) return
    if (writeAll) {
      if (this.#held === 0) this.#held = id
    } else if (shuffle > 0) {
      this.#shuffled[this.#pending++] = id
      if (this.#pending === shuffle) this.#shuffle()
    } else {
      this.#append(high, low)
    }
  }

  /** What came up to this id is stored: it may be committed. */
  upTo(id: number): void {
    if (this.#held === 0) return
    const end = Math.min(id, this.#last)
    for (; this.#held <= end; this.#held++) this.#appendId(this.#held)
  }

  /** The end of a chunk. */
  flush(): void {
    if (this.#options.through) this.#commitThrough()
    if (this.#length === 0) return
    this.#write(this.#frames.slice(0, this.#length))
    this.#length = 0
  }

  /** Nothing more comes: what waits to be shuffled goes too. */
  finish(): void {
    this.#shuffle()
    this.flush()
  }

  #commitThrough(): void {
    if (this.#last === this.#lastThrough) return
    this.#lastThrough = this.#last
    const frame = new DataView(new ArrayBuffer(THROUGH_FRAME_BYTES))
    const words = [THROUGH_FRAME_BYTES - 4, COMMIT, this.sent++, ...halves(this.#last), 1]
    for (const [index, word] of words.entries()) frame.setUint32(index * 4, word)
    this.#write(new Uint8Array(frame.buffer))
  }

  #shuffle(): void {
    const ids = this.#shuffled
    for (; this.#pending > 0; this.#pending--) {
      const at = Math.floor(Math.random() * this.#pending)
      this.#appendId(ids[at] as number)
      ids[at] = ids[this.#pending - 1] as number
    }
  }

  #appendId(id: number): void {
    const high = Math.floor(id / 0x100000000)
    this.#append(high, id - high * 0x100000000)
  }

  #append(high: number, low: number): void {
    if (this.#length === this.#frames.length) {
      this.#write(this.#frames.slice())
      this.#length = 0
    }
    const at = this.#length
    this.#view.setUint32(at + 8, this.sent++)
    this.#view.setUint32(at + 12, high)
    this.#view.setUint32(at + 16, low)
    this.#length = at + FRAME_BYTES
  }
}

function halves(id: number): [number, number] {
  const high = Math.floor(id / 0x100000000)
  return [high, id - high * 0x100000000]
}

function layOut(): Uint8Array {
  const frames = new Uint8Array(FRAMES * FRAME_BYTES)
  const view = new DataView(frames.buffer)
  for (let at = 0; at < frames.length; at += FRAME_BYTES) {
    view.setUint32(at, FRAME_BYTES - 4)
    view.setUint32(at + 4, COMMIT)
  }
  return frames
}
