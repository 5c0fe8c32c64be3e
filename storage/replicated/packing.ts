/**
 * How the bytes of a record are carried by its parts: as they are, or deflated. A value takes some 110 bytes of a record, and most of
 * them are those of the value before it. Each nats-server writes and sends all of it several times: deflating takes an eighth of a
 * second for a million values, and saves two and a half seconds of their processors, and the same share of the network.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { StorageError } from '../store.ts'

/** The largest record. */
export const MAX_RECORD_BYTES = 2 ** 30

/** What zlib says of bytes that are none of its own, that are cut, or that become too many. */
const DAMAGED = ['Z_DATA_ERROR', 'Z_BUF_ERROR', 'ERR_BUFFER_TOO_LARGE']

const AS_IT_IS = 1
/** RFC 1951 */
const DEFLATED = 2

/** A message costs a nats-server so much by itself that making less shorter gains nothing. */
const MIN_DEFLATED_BYTES = 4_096
/** The fastest level. */
const LEVEL = 1

export interface PackedRecord {
  /** What the header `Cin-Format` says. */
  readonly format: number
  readonly bytes: Uint8Array
}

export function packRecord(bytes: Uint8Array): PackedRecord {
  if (bytes.length < MIN_DEFLATED_BYTES) return { format: AS_IT_IS, bytes }
  const deflated = deflateRawSync(bytes, { level: LEVEL })
  return deflated.length < bytes.length ? { format: DEFLATED, bytes: deflated } : { format: AS_IT_IS, bytes }
}

/** Throws StorageError TOO_NEW if this version cannot read what the node has written. */
export function checkFormat(format: number, node: string): void {
  if (format === AS_IT_IS || format === DEFLATED) return
  throw new StorageError(
    'TOO_NEW',
    `node ${node} runs a newer version, whose records in the cluster's log this one cannot read: upgrade this node`,
  )
}

/**
 * The record that ends at a sequence of the log, whose format is a known one. Throws StorageError: BEHIND if these are no bytes of
 * that format, or more than a record may have; IO if there is no memory for them.
 */
export function unpackRecord({ format, bytes }: PackedRecord, sequence: number): Uint8Array {
  if (format === AS_IT_IS) return bytes
  try {
    return inflateRawSync(bytes, { maxOutputLength: MAX_RECORD_BYTES })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isDamaged = DAMAGED.includes(String(code))
    const what = `record ${sequence} of the cluster's log cannot be inflated (${message})`
    if (!isDamaged) throw new StorageError('IO', what, error)
    throw new StorageError('BEHIND', `${what}: copy the database of another node`, error)
  }
}
