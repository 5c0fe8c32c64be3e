/** Bodies as they were before their senders compressed them. */
import { promisify } from 'node:util'
import * as zlib from 'node:zlib'
import { ProtocolError } from '../../protocol/errors.ts'
import { decompress } from '../../protocol/prometheus/remote-write.ts'

export type Encoding = 'identity' | 'gzip' | 'snappy' | 'zstd'

interface InflateOptions {
  readonly maxOutputLength: number
  readonly params?: Readonly<Record<number, number>>
}

/** What Node has from 22.15 on. */
interface Zstd {
  readonly zstdDecompress: (
    bytes: Uint8Array,
    options: InflateOptions,
    done: (error: Error | null, inflated: Buffer) => void,
  ) => void
  readonly zstdDecompressSync: (bytes: Uint8Array, options: InflateOptions) => Buffer
  readonly constants: { readonly ZSTD_d_windowLogMax: number }
}

const { zstdDecompress, zstdDecompressSync, constants } = zlib as unknown as Partial<Zstd>

export const hasZstd = zstdDecompress !== undefined

/** A frame may want no more memory than 8 MiB before it has given anything (RFC 9659). */
const ZSTD_WINDOW_LOG = 23

const gunzip = promisify(zlib.gunzip)
const unzstd = zstdDecompress && promisify(zstdDecompress)

/** Throws ProtocolError TOO_LONG before it takes the room for more than `most` bytes. */
export function inflated(bytes: Uint8Array, encoding: Encoding, most: number): Uint8Array {
  if (encoding === 'snappy') return decompress(bytes, { bytes: most })
  if (encoding === 'identity') return bytes
  const inflate = encoding === 'gzip' ? zlib.gunzipSync : needed(zstdDecompressSync)
  try {
    return inflate(bytes, optionsOf(encoding, most))
  } catch (error) {
    throw problemOf(error, encoding, most)
  }
}

/** The same without keeping anybody waiting. Rejects with ProtocolError. */
export async function inflate(bytes: Uint8Array, encoding: 'gzip' | 'zstd', most: number): Promise<Uint8Array> {
  const inflateSoon = encoding === 'gzip' ? gunzip : needed(unzstd)
  try {
    return await inflateSoon(bytes, optionsOf(encoding, most))
  } catch (error) {
    throw problemOf(error, encoding, most)
  }
}

/** Whoever asks has looked at `hasZstd`. */
function needed<T>(decompress: T | undefined): T {
  if (decompress === undefined) throw new Error('this Node has no zstd')
  return decompress
}

function optionsOf(encoding: 'gzip' | 'zstd', maxOutputLength: number): InflateOptions {
  if (encoding === 'gzip' || constants === undefined) return { maxOutputLength }
  return { maxOutputLength, params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } }
}

function problemOf(error: unknown, encoding: Encoding, most: number): ProtocolError {
  const isTooLong = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
  if (isTooLong) return new ProtocolError('TOO_LONG', `a body has at most ${most} bytes when decompressed`)
  return new ProtocolError('BAD_COMPRESSION', `the body is not ${encoding}`)
}
