import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { auditTexts, hashOf, NO_HASH } from '../../../../../server/kernel/accounts/audit/record.ts'
import { verifyAudit } from '../../../../../server/kernel/accounts/audit/verify.ts'
import { AuditTable } from '../../../../../storage/sqlite/audit.ts'
import { openSqlite } from '../../../../../storage/sqlite/driver.ts'
import { migrate } from '../../../../../storage/sqlite/migrations.ts'
import type { AuditRow } from '../../../../../storage/store.ts'
import { times } from '../../../../support/long.ts'

const RECORDS = 12
/** Records 1 to 3 were taken away because of their age. */
const PRUNED = 3
const FIRST = PRUNED + 1

describe('verifying the audit log', () => {
  let directory = ''
  let sound = ''
  let path = ''
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'audit-'))
    sound = join(directory, 'sound.db')
    path = join(directory, 'cinnabar.db')
    writeLog(sound)
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  beforeEach(() => copyFileSync(sound, path))

  /** A file that nobody waits for to be on disk. */
  function opened(file: string): Database {
    const database = openSqlite(file)
    database.pragma('synchronous = off')
    return database
  }

  function edit(sql: string, ...values: unknown[]): void {
    const database = opened(path)
    database.prepare(sql).run(...values)
    database.close()
  }

  /** Where it breaks, and why. */
  function found(): { at: number; problem: string } {
    const finding = verifyAudit(path)
    if (finding.whole) throw new Error('nothing was found')
    return finding
  }

  test('a log that nobody touched is whole; its last number and hash are reported', () => {
    const last = openSqlite(path, { readonly: true })
    const hash = last.prepare<unknown[], Buffer>('select hash from audit order by number desc').pluck().get()
    last.close()
    const expected = { records: RECORDS - PRUNED, first: FIRST, last: RECORDS, hash: hash?.toString('hex') }
    expect(verifyAudit(path)).toEqual({ whole: true, ...expected })
  })

  test('a log in which nothing was written is whole', () => {
    const empty = join(directory, 'empty.db')
    const database = openSqlite(empty)
    migrate(database)
    database.close()
    expect(verifyAudit(empty)).toEqual({ whole: true, records: 0, first: 0, last: 0, hash: '00'.repeat(32) })
  })

  test.each(auditTexts)('a changed %s is found', (field) => {
    edit(`update audit set ${field} = ${field} || 'x' where number = 7`)
    expect(found()).toMatchObject({ at: 7, records: 3, problem: expect.stringContaining('record 7 does not match') })
  })

  test.each(auditTexts)('a byte of %s that reads the same is found', (field) => {
    // Both are shown as U+FFFD.
    edit(`update audit set ${field} = cast(replace(cast(${field} as blob), x'efbfbd', x'ff') as text) where number = 7`)
    expect(found().at).toBe(7)
  })

  test('a changed time or hash is found, also where no time can be', () => {
    for (const time of ['time + 1', '-1', `${2n ** 62n}`]) {
      copyFileSync(sound, path)
      edit(`update audit set time = ${time} where number = 5`)
      expect(found().at).toBe(5)
    }
    copyFileSync(sound, path)
    edit("update audit set hash = x'00' where number = 5")
    expect(found().at).toBe(5)
  })

  test('a record that was taken out is found', () => {
    edit('delete from audit where number in (6, 7)')
    expect(found()).toMatchObject({ at: 6, problem: 'records 6 to 7 are missing' })
  })

  test('records taken away at the beginning are found, more than their age allowed', () => {
    edit(`delete from audit where number = ${FIRST}`)
    expect(found()).toMatchObject({ at: FIRST, problem: `record ${FIRST} is missing` })
  })

  test('a record before the beginning is found', () => {
    edit('update audit set number = 2 where number = 9')
    expect(found()).toMatchObject({ at: 2, problem: expect.stringContaining('before the beginning') })
  })

  test('a log that was cut off at the end is found', () => {
    edit(`delete from audit where number >= ${RECORDS - 1}`)
    expect(found()).toMatchObject({ at: RECORDS - 1, problem: 'the log ends too early: records 11 to 12 are missing' })
  })

  test('a log that is gone is found', () => {
    edit('delete from audit')
    expect(found().at).toBe(FIRST)
    edit(`update meta set audit_start = ${RECORDS}, audit_start_hash = audit_hash`)
    expect(found()).toMatchObject({ at: RECORDS, problem: `record ${RECORDS} and all before it are missing` })
    edit('delete from meta')
    expect(found().problem).toContain('the beginning and the end of the log')
  })

  test('records that changed places are found', () => {
    edit('update audit set number = case number when 6 then -8 else -6 end where number in (6, 8)')
    edit('update audit set number = -number where number < 0')
    expect(found().at).toBe(6)
  })

  test('a record added at the end is found, also one that follows', () => {
    const database = opened(path)
    const last = database.prepare<unknown[], Buffer>('select hash from audit order by number desc').pluck().get()
    database.close()
    const { hash, ...row } = record(RECORDS + 1, last!)
    const columns = ['number', 'time', ...auditTexts] as const
    edit(`insert into audit values (${columns.map(() => '?')}, ?)`, ...columns.map((column) => row[column]), hash)
    expect(found()).toMatchObject({ at: RECORDS + 1, problem: expect.stringContaining('added after the end') })
  })

  test('a last record that was exchanged, with its hash, is found', () => {
    const database = opened(path)
    const before = database.prepare<unknown[], Buffer>('select hash from audit where number = 11').pluck().get()!
    database.close()
    const { hash } = { ...record(RECORDS, before, 'denied') }
    edit("update audit set outcome = 'denied', hash = ? where number = 12", hash)
    expect(found()).toMatchObject({ at: RECORDS, problem: expect.stringContaining('written last') })
  })

  test('any edit of any column of any row, and of what is kept of the ends, is found', () => {
    const columns = ['number', 'time', 'hash', ...auditTexts]
    const ends = ['audit_number', 'audit_hash', 'audit_start', 'audit_start_hash']
    const number = fc.integer({ min: FIRST, max: RECORDS })
    const value = fc.oneof(
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      fc.string({ unit: 'binary' }),
      fc.uint8Array(),
    )
    const edits = fc.oneof(
      fc.record({ kind: fc.constant('column'), column: fc.constantFrom(...columns), number, value }),
      fc.record({ kind: fc.constant('ends'), column: fc.constantFrom(...ends), number, value }),
    )
    let tried = 0
    const property = fc.property(edits, ({ kind, column, number, value }) => {
      copyFileSync(sound, path)
      const table = kind === 'ends' ? 'meta' : 'audit'
      const where = kind === 'ends' ? '' : `where number = ${number}`
      const read = (database: Database) =>
        JSON.stringify(database.prepare(`select hex(${column}), typeof(${column}) from ${table} order by 1, 2`).all())
      const database = opened(path)
      const before = read(database)
      try {
        database.prepare(`update ${table} set ${column} = ? ${where}`).run(value)
      } catch {
        // Not of the column's type, or a number that is there already: nothing was changed.
      }
      const changed = read(database) !== before
      database.close()
      tried += Number(changed)
      expect(verifyAudit(path).whole).toBe(!changed)
    })
    const numRuns = times({ short: 100, long: 400 })
    fc.assert(property, { numRuns })
    expect(tried).toBeGreaterThan(numRuns / 4)
  })

  test('any set of records taken out, or moved to another number, is found', () => {
    const numbers = Array.from({ length: RECORDS - PRUNED }, (_, index) => FIRST + index)
    const property = fc.property(fc.subarray(numbers, { minLength: 1 }), fc.nat({ max: 30 }), (some, by) => {
      copyFileSync(sound, path)
      const database = opened(path)
      for (const number of some) {
        if (by === 0) database.prepare('delete from audit where number = ?').run(number)
        else database.prepare('update or replace audit set number = number + ? where number = ?').run(by, number)
      }
      database.close()
      expect(verifyAudit(path).whole).toBe(false)
    })
    fc.assert(property, { numRuns: times({ short: 50, long: 200 }) })
  })

  test('what is no database of ours, or has no log yet, is refused with a sentence', () => {
    expect(() => verifyAudit(join(directory, 'nothing.db'))).toThrow('nothing.db')
    edit('pragma user_version = 2')
    expect(() => verifyAudit(path)).toThrow('has no audit log yet: start the server once')
    edit('pragma user_version = 99')
    expect(() => verifyAudit(path)).toThrow('newer version')
    edit('pragma application_id = 1')
    expect(() => verifyAudit(path)).toThrow('another program')
  })
})

function record(number: number, before: Uint8Array, outcome = 'ok\ufffd'): AuditRow {
  const texts = Object.fromEntries(auditTexts.map((text) => [text, `${text} ${number} \ufffd`]))
  const row = {
    ...(texts as Record<(typeof auditTexts)[number], string>),
    outcome,
    number,
    time: 1_700_000_000_000_000 + number,
  }
  return { ...row, hash: hashOf(row, before) }
}

function writeLog(file: string): void {
  const database = openSqlite(file)
  migrate(database)
  const audit = new AuditTable(database)
  let before = NO_HASH
  for (let number = 1; number <= RECORDS; number++) {
    const row = record(number, before)
    audit.change({ put: 'audit', row })
    before = row.hash
  }
  audit.change({ remove: 'audit', through: PRUNED })
  database.close()
}
