/**
 * Lines of StatsD that have come before but for their number, `name:` and `|type` with what follows it: they are recognised by their
 * bytes, and only the number is read. Senders repeat a few names all the time.
 */
import { ByteMemory } from '../bytes/byte-memory.ts'

/** A number of so many digits is exact, and so is the power of ten that it is divided by. */
const MOST_DIGITS = 15
const POWERS = Array.from({ length: MOST_DIGITS + 1 }, (_, power) => 10 ** power)
const [POINT, ZERO, NINE, COLON, BAR] = [0x2e, 0x30, 0x39, 0x3a, 0x7c]

interface Known<T> {
  /** What comes after the number. */
  readonly rest: Uint8Array
  readonly meaning: T
}

export class KnownLines<T> {
  /** By the bytes of their names. */
  readonly #known: ByteMemory<Known<T>>
  /** The number of the line that was found last. */
  number = 0

  constructor(mostBytes: number) {
    this.#known = new ByteMemory(mostBytes)
  }

  /** What was kept of such a line from `start` to `end`; undefined if it is not known, or if its value is not one plain number. */
  find(bytes: DataView, start: number, end: number): T | undefined {
    const colon = colonIn(bytes, start, end)
    const bar = this.#readNumber(bytes, colon + 1, end)
    if (bar === end) return undefined
    const known = this.#known.find(bytes, start, colon)
    return known !== undefined && isSame(known.rest, bytes, bar, end) ? known.meaning : undefined
  }

  /** Keeps what a line means, if its value is one plain number. */
  keep(bytes: DataView, start: number, end: number, meaning: T): void {
    const colon = colonIn(bytes, start, end)
    const bar = this.#readNumber(bytes, colon + 1, end)
    if (bar === end) return
    const rest = Uint8Array.from({ length: end - bar }, (_, index) => bytes.getUint8(bar + index))
    this.#known.add(bytes, start, colon, { rest, meaning }, { weight: rest.length })
  }

  /** Reads digits, and a point among or after them, up to a bar. Returns where that is; `end` if anything else is there. */
  #readNumber(bytes: DataView, start: number, end: number): number {
    let [mantissa, digits, point] = [0, 0, -1]
    for (let at = start; at < end; at++) {
      const byte = bytes.getUint8(at)
      if (byte >= ZERO && byte <= NINE) {
        mantissa = mantissa * 10 + byte - ZERO
        if (++digits > MOST_DIGITS) return end
      } else if (byte === POINT && point < 0 && digits > 0) point = digits
      else if (byte === BAR && digits > 0) {
        this.number = point < 0 ? mantissa : mantissa / (POWERS[digits - point] as number)
        return at
      } else return end
    }
    return end
  }
}

/** Where the name ends; `end` if it does not. */
function colonIn(bytes: DataView, start: number, end: number): number {
  let at = start
  while (at < end && bytes.getUint8(at) !== COLON) at++
  return at
}

function isSame(rest: Uint8Array, bytes: DataView, start: number, end: number): boolean {
  if (rest.length !== end - start) return false
  for (let at = 0; at < rest.length; at++) if (rest[at] !== bytes.getUint8(start + at)) return false
  return true
}
