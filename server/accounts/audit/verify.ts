/**
 * Walks the chain of the audit log in a database file. It finds every record that was changed, added, moved or taken out by
 * whoever did not also compute all hashes behind it anew; against that only a hash helps that was noted elsewhere, as every
 * consumer of `producer.audit` has them.
 */
import { type AuditFile, type FoundEnds, type FoundRecord, withAuditFile } from '../../../storage/sqlite/audit-file.ts'
import { auditTexts, type Hashed, hashOf, NO_HASH } from './record.ts'

export type AuditFinding =
  | {
      readonly whole: true
      readonly records: number
      /** Numbers of the first and the last record; 0 without any. */
      readonly first: number
      readonly last: number
      /** Of the last record, in hex: to be noted elsewhere. */
      readonly hash: string
    }
  | {
      readonly whole: false
      /** Records that are right before it breaks. */
      readonly records: number
      /** The number of the first record that is not right or not there. */
      readonly at: number
      /** What is wrong, a sentence for people. */
      readonly problem: string
    }

/** A record as it was noted elsewhere; its hash in hex, small letters. */
export interface NotedRecord {
  readonly number: number
  readonly hash: string
}

/**
 * `databaseFile`: `cinnabar.db` in the data directory; a server may be running on it. `noted` still has to be what it was.
 * Throws StorageError if it cannot be read at all.
 */
export function verifyAudit(databaseFile: string, noted?: NotedRecord): AuditFinding {
  return withAuditFile(databaseFile, (file) => walk(file, noted))
}

function walk({ ends, records }: AuditFile, noted: NotedRecord | undefined): AuditFinding {
  if (ends === undefined) return broken(0, 0, 'the row is gone that says where the log begins and ends')
  let hash = ends.startHash ?? NO_HASH
  let [last, count] = [ends.start, 0]
  if (noted !== undefined && noted.number < last) {
    return broken(0, noted.number, `record ${noted.number} is not kept any more: note down a newer one`)
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

function problemOf(record: FoundRecord, expected: number, before: Uint8Array): string | undefined {
  const { number } = record
  if (number > expected) {
    const missing = number - 1 === expected ? `record ${expected} is` : `records ${expected} to ${number - 1} are`
    return `${missing} missing`
  }
  if (number < expected) return `record ${number} was added before the beginning of the log`
  if (isComplete(record) && same(record.hash, hashOf(record, before))) return undefined
  return `record ${number} does not match its hash: it was changed, or the one before it`
}

function problemAtEnd(ends: FoundEnds, last: number, records: number, hash: Uint8Array): AuditFinding {
  const { number, start } = ends
  if (last < number) {
    const missing = last + 1 === number ? `record ${number} is` : `records ${last + 1} to ${number} are`
    return broken(records, last + 1, `the log ends too early: ${missing} missing`)
  }
  if (last > number) return broken(records, number + 1, `record ${number + 1} was added behind the end of the log`)
  // Never is the last record taken away: a log that has begun has one.
  if (records === 0 && number > 0) return broken(0, number, `record ${number} is missing, and all before it`)
  if (!same(ends.hash ?? NO_HASH, hash)) {
    return broken(records, last, `record ${last} is not the one that was written last under this number`)
  }
  const first = records === 0 ? 0 : start + 1
  return { whole: true, records, first, last, hash: hex(hash) }
}

function broken(records: number, at: number, problem: string): AuditFinding {
  return { whole: false, records, at, problem }
}

function isComplete(record: FoundRecord): record is FoundRecord & Hashed & { readonly hash: Uint8Array } {
  return record.hash !== null && auditTexts.every((text) => record[text] !== null)
}

function hex(hash: Uint8Array): string {
  return Buffer.from(hash).toString('hex')
}

function same(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0
}
