/** The value that the peers are given: 24 bytes, of which the last ten count in ASCII, so that no two are the same. */
import { VALUE_BYTES } from '../processes/end.ts'

const DIGITS = 10

/** Writes value number `count` at `at`. */
export function writeValue(bytes: Uint8Array, at: number, count: number): void {
  bytes.fill(0x76, at, at + VALUE_BYTES - DIGITS)
  let rest = count
  for (let digit = at + VALUE_BYTES - 1; digit >= at + VALUE_BYTES - DIGITS; digit--) {
    const next = Math.floor(rest / 10)
    bytes[digit] = 0x30 + rest - next * 10
    rest = next
  }
}
