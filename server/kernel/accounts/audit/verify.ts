/**
 * Verifies the hash chain of the audit log in a database file. It finds every record that was changed, added, moved or
 * removed, unless all later hashes were computed again. Only a hash that was noted elsewhere reveals that, and every consumer
 * of `producer.audit` has such hashes.
 */
import {
  type AuditEnds,
  type AuditFile,
  type StoredAuditRecord,
  withAuditFile,
} from '../../../../storage/sqlite/audit-file.ts'
import { auditTexts, type Hashed, hashOf, NO_HASH } from './record.ts'

export type AuditFinding =
  | {
      readonly whole: true
      readonly records: number
      /** The numbers of the first and the last record; 0 if there is none. */
      readonly first: number
      readonly last: number
      /** The hash of the last record, in hex, for noting it elsewhere. */
      readonly hash: string
    }
  | {
      readonly whole: false
      /** The number of correct records before the break. */
      readonly records: number
      /** The number of the first record that is wrong or missing. */
      readonly at: number
      /** What is wrong, as a sentence for people. */
      readonly problem: string
    }

/** A record that was noted elsewhere; its hash is in lower-case hex. */
export interface NotedRecord {
  readonly number: number
  readonly hash: string
}

/**
 * Verifies `databaseFile`, the `cinnabar.db` of a data directory that a server may be using, and checks that the record
 * `noted` has not changed. Throws StorageError if the file cannot be read at all.
 */
export function verifyAudit(databaseFile: string, noted?: NotedRecord): AuditFinding {
  return withAuditFile(databaseFile, (file) => walk(file, noted))
}

function walk({ ends, records }: AuditFile, noted: NotedRecord | undefined): AuditFinding {
  if (ends === undefined) return broken(0, 0, 'the row with the beginning and the end of the log is missing')
  let hash = ends.startHash ?? NO_HASH
  let [last, count] = [ends.start, 0]
  if (noted !== undefined && noted.number < last) {
    return broken(0, noted.number, `record ${noted.number} was pruned: note a newer one`)
  }
  if (noted?.number === last && noted.hash !== hex(hash)) return broken(0, last, exchanged(last))
  try {
    for (const record of records) {
      const problem = problemOf(record, last + 1, hash)
      if (problem !== undefined) return broken(count, Math.min(record.number, last + 1), problem)
      hash = record.hash as Uint8Array
      if (noted?.number === record.number && noted.hash !== hex(hash)) {
        return broken(count, record.number, exchanged(record.number))
      }
      last = record.number
      count++
    }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return broken(count, last + 1, `record ${last + 1} cannot be read: ${reason}`)
  }
  if (noted !== undefined && noted.number > last) {
    return broken(count, last + 1, `the log ends before record ${noted.number}, which was noted down`)
  }
  return problemAtEnd(ends, last, count, hash)
}

function exchanged(number: number): string {
  return `record ${number} is not the one that was noted down: it or one before it was exchanged`
}

function problemOf(record: StoredAuditRecord, expected: number, before: Uint8Array): string | undefined {
  const { number } = record
  if (number > expected) {
    const missing = number - 1 === expected ? `record ${expected} is` : `records ${expected} to ${number - 1} are`
    return `${missing} missing`
  }
  if (number < expected) return `record ${number} was added before the beginning of the log`
  if (isComplete(record) && same(record.hash, hashOf(record, before))) return undefined
  return `record ${number} does not match its hash: it or the record before it was changed`
}

function problemAtEnd(ends: AuditEnds, last: number, records: number, hash: Uint8Array): AuditFinding {
  const { number, start } = ends
  if (last < number) {
    const missing = last + 1 === number ? `record ${number} is` : `records ${last + 1} to ${number} are`
    return broken(records, last + 1, `the log ends too early: ${missing} missing`)
  }
  if (last > number) return broken(records, number + 1, `record ${number + 1} was added after the end of the log`)
  // The last record is never pruned, so a log that has begun has one.
  if (records === 0 && number > 0) return broken(0, number, `record ${number} and all before it are missing`)
  if (!same(ends.hash ?? NO_HASH, hash)) {
    return broken(records, last, `record ${last} is not the one that was written last under this number`)
  }
  const first = records === 0 ? 0 : start + 1
  return { whole: true, records, first, last, hash: hex(hash) }
}

function broken(records: number, at: number, problem: string): AuditFinding {
  return { whole: false, records, at, problem }
}

function isComplete(record: StoredAuditRecord): record is StoredAuditRecord & Hashed & { readonly hash: Uint8Array } {
  return record.hash !== null && auditTexts.every((text) => record[text] !== null)
}

function hex(hash: Uint8Array): string {
  return Buffer.from(hash).toString('hex')
}

function same(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
