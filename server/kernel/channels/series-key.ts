/**
 * The key of a series, of which keep-latest keeps the newest value [MON 8 Limits]: the metric id and the constants of the
 * frame, which is all of it but id, time and value.
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { FRAME_METRIC, HEADER_BYTES } from '../../../protocol/monitor/message.ts'

export function seriesKey(keys: WeakMap<Uint8Array, string>, head: Uint8Array): string {
  let key = keys.get(head)
  if (key === undefined) {
    key = keyOf(head, head.length)
    keys.set(head, key)
  }
  return key
}

/**
 * The same, from a whole frame. `pattern`: its value is a REC whose last field, `value`, is what varies. An ARRAY is the
 * answer to a GET of the pattern, which had no connection to go to: there are no constants in it.
 */
export function seriesKeyOfFrame(frame: Uint8Array, pattern: boolean): string {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength)
  const hasConstants = pattern && view.getUint32(HEADER_BYTES) === BasicType.REC
  return keyOf(frame, hasConstants ? endOfConstants(view) : HEADER_BYTES)
}

function endOfConstants(view: DataView): number {
  const count = view.getUint32(HEADER_BYTES + 4)
  let at = HEADER_BYTES + 8
  for (let i = 0; i < count; i++) {
    at += 4 + padded(view.getUint32(at))
    if (i === count - 1) break
    // The constants of a pattern are strings: type, length, text.
    at += 8 + padded(view.getUint32(at + 4))
  }
  return at
}

function padded(length: number): number {
  return (length + 3) & ~3
}

function keyOf(frame: Uint8Array, end: number): string {
  let key = ''
  for (let i = FRAME_METRIC; i < FRAME_METRIC + 4; i++) key += String.fromCharCode(frame[i] as number)
  for (let i = HEADER_BYTES; i < end; i++) key += String.fromCharCode(frame[i] as number)
  return key
}
