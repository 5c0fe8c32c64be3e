/** Bodies as they were before their senders compressed them. */
import { gunzipSync } from 'node:zlib'
import { ProtocolError } from '../../protocol/errors.ts'
import { decompress } from '../../protocol/prometheus/remote-write.ts'

export const encodings = ['identity', 'gzip', 'snappy'] as const
export type Encoding = (typeof encodings)[number]

/** Throws ProtocolError TOO_LONG before it takes the room for more than `most` bytes. */
export function inflated(bytes: Uint8Array, encoding: Encoding, most: number): Uint8Array {
  if (encoding === 'snappy') return decompress(bytes, { bytes: most })
  if (encoding === 'identity') return bytes
  try {
    return gunzipSync(bytes, { maxOutputLength: most })
  } catch (error) {
    if (tooLong(error)) {
      throw new ProtocolError('TOO_LONG', `a body has at most ${most} bytes when decompressed`)
    }
    throw new ProtocolError('BAD_GZIP', 'the body is not gzip')
  }
}

/** Whether zlib has stopped at the most bytes that it was to give. */
export function tooLong(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
}
