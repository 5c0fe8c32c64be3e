/**
 * The lines of a text as they were when it was read last. Most lines of a scrape are those of the scrape before, byte for byte, but
 * for their values: to compare them costs a tenth of reading them. Bytes are compared, four at a time: `startsWith` of a text takes
 * five times as long.
 */

/** What a comment has said of a family, and what was known of the family before and after it. */
export class FamilyComment<Metadata> {
  readonly name: string
  readonly change: Partial<Metadata>
  readonly before: Metadata | undefined
  readonly after: Metadata

  constructor(name: string, change: Partial<Metadata>, before: Metadata | undefined, after: Metadata) {
    this.name = name
    this.change = change
    this.before = before
    this.after = after
  }
}

/** Lines that are gone are looked for among so many. */
const LOOK_AHEAD = 16
const LEAST_BYTES = 1_024
/** Of a longer text, the rest is read each time. When its lines change, what is remembered is copied, which nothing interrupts. */
const MOST_LINES = 32_768
const MOST_BYTES = 4 << 20

export class RememberedLines<Line> {
  #bytes = new Uint8Array(0)
  #view = new DataView(this.#bytes.buffer)
  #length = 0
  /** Where each ends in the bytes. */
  readonly #ends: number[] = []
  readonly #lines: Line[] = []

  get size(): number {
    return this.#lines.length
  }

  line(index: number): Line {
    return this.#lines[index] as Line
  }

  /** Bytes of what is remembered of a line. */
  lengthOf(index: number): number {
    return (this.#ends[index] as number) - this.#startOf(index)
  }

  /** The line that bytes begin with which go from `at` to the end of the view: the one at `from`, or a near one after it; -1 if none. */
  find(from: number, view: DataView, at: number): number {
    const end = Math.min(this.size, from + LOOK_AHEAD)
    for (let index = from; index < end; index++) if (this.#isAt(index, view, at)) return index
    return -1
  }

  /** Adds a line that begins as these bytes do, if there is room. */
  add(bytes: Uint8Array, line: Line): void {
    if (this.size >= MOST_LINES || this.#length + bytes.length > MOST_BYTES) return
    this.#reserve(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
    this.#ends.push(this.#length)
    this.#lines.push(line)
  }

  /** Adds some lines of another one, if there is room. Their bytes are copied at once: there may be very many. */
  addFrom(other: RememberedLines<Line>, from: number, to: number): void {
    if (from === to) return
    const [start, end] = [other.#startOf(from), other.#ends[to - 1] as number]
    if (this.size + to - from > MOST_LINES || this.#length + end - start > MOST_BYTES) return
    this.#reserve(end - start)
    this.#bytes.set(other.#bytes.subarray(start, end), this.#length)
    for (let index = from; index < to; index++) {
      this.#ends.push(this.#length + (other.#ends[index] as number) - start)
      this.#lines.push(other.line(index))
    }
    this.#length += end - start
  }

  #startOf(index: number): number {
    return index === 0 ? 0 : (this.#ends[index - 1] as number)
  }

  #isAt(index: number, view: DataView, at: number): boolean {
    const own = this.#view
    const end = this.#ends[index] as number
    let place = this.#startOf(index)
    if (at + end - place > view.byteLength) return false
    for (; place + 4 <= end; place += 4, at += 4) if (own.getInt32(place) !== view.getInt32(at)) return false
    for (; place < end; place++, at++) if (own.getUint8(place) !== view.getUint8(at)) return false
    return true
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const grown = new Uint8Array(Math.max(LEAST_BYTES, needed, this.#length + (this.#length >> 1)))
    grown.set(this.#bytes)
    this.#bytes = grown
    this.#view = new DataView(grown.buffer)
  }
}
