/**
 * The three kinds of text in a packet. They treat bytes that are not UTF-8 differently: a name is refused, a label gets
 * replacement characters, and a value keeps its bytes.
 */
import { MAX_NAME_BYTES } from '../monitor/constants.ts'

/** Cinnabar serves the metric `load_one` as `gmetric.load_one`, and the result must be a valid name [MON 1]. */
export const METRIC_PREFIX = 'gmetric.'
export const MAX_METRIC_BYTES = MAX_NAME_BYTES - METRIC_PREFIX.length

const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lossyUtf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** The name; undefined unless it has 1 to `maxBytes` bytes of UTF-8, none below 0x20 [MON 1]. */
export function decodeName(bytes: Uint8Array, maxBytes = MAX_NAME_BYTES): string | undefined {
  if (bytes.length === 0 || bytes.length > maxBytes) return undefined
  for (let i = 0; i < bytes.length; i++) {
    if (bytes[i]! < 0x20) return undefined
  }
  const text = decodeTextOrBytes(bytes)
  return typeof text === 'string' ? text : undefined
}

export function decodeLabel(bytes: Uint8Array): string {
  return bytes.length === 0 ? '' : lossyUtf8.decode(bytes)
}

/** The text, or a copy of its bytes if it is not UTF-8. `slice` would not copy: for a Node Buffer it makes a view. */
export function decodeTextOrBytes(bytes: Uint8Array): string | Uint8Array {
  try {
    return strictUtf8.decode(bytes)
  } catch {
    return new Uint8Array(bytes)
  }
}
