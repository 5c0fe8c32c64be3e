/** A VALUE frame of a length: only its length, and that it is a VALUE, is looked at. */
import { u32 } from '../../support/bytes.ts'

const METRIC = 1

export function valueFrame(bytes: number): Uint8Array {
  const frame = new Uint8Array(bytes)
  frame.set(u32(bytes - 4))
  frame.set(u32(METRIC), 4)
  return frame
}
