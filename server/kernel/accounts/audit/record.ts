/**
 * The bytes of an audit record and its hash. Each text follows its length, so that no two records have the same bytes. This
 * format must never change, or existing logs no longer verify.
 */
import { createHash } from 'node:crypto'
import type { AuditRow } from '../../../../storage/store.ts'

export const HASH_BYTES = 32
/** The hash that is chained into the first record. */
export const NO_HASH: Uint8Array = new Uint8Array(HASH_BYTES)

/** The texts of a record in the order of its bytes. */
export const auditTexts = [
  'action',
  'actor',
  'tenant',
  'address',
  'object',
  'args',
  'outcome',
  'detail',
] as const satisfies readonly (keyof AuditRow)[]
export type AuditText = (typeof auditTexts)[number]

/** A record without its hash. Texts may be given as stored UTF-8. */
export type Hashed = Pick<AuditRow, 'number' | 'time'> & { readonly [T in AuditText]: string | Uint8Array }

/** SHA-256 over the hash of the record before, number and time (64 bits each), and each text as length (32 bits) and UTF-8. */
export function hashOf(record: Hashed, before: Uint8Array): Uint8Array {
  const hash = createHash('sha256').update(before)
  const numbers = Buffer.alloc(16)
  numbers.writeBigInt64BE(BigInt(record.number))
  numbers.writeBigInt64BE(BigInt(record.time), 8)
  hash.update(numbers)
  for (const field of auditTexts) {
    const text = record[field]
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    hash.update(length).update(bytes)
  }
  return new Uint8Array(hash.digest())
}
