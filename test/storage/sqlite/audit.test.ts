import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import type { SqliteStore } from '../../../storage/sqlite/store.ts'
import type { AuditRow, Recovered } from '../../../storage/store.ts'
import { batch, EventLog, frames } from '../../contracts/store-batch.ts'
import { threadlessStore } from '../../support/threadless-store.ts'

const texts = { action: 'a', actor: '', tenant: '', address: '', object: '', args: '{}', outcome: '', detail: '' }
const record = (number: number): AuditRow => ({ ...texts, number, time: number, hash: frames(number, 32) })

describe('an audit log that somebody cut', () => {
  let directory = ''
  let store: SqliteStore
  let events: EventLog
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'audit-'))
    await open()
    await write(1, [1, 2, 3])
  })
  afterEach(async () => {
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  })

  async function open(): Promise<Recovered> {
    store = threadlessStore({ directory, reserveBytes: 0 })
    events = new EventLog()
    return store.open(events)
  }

  async function write(number: number, records: readonly number[]): Promise<void> {
    store.write(batch(number, { changes: records.map((one) => ({ put: 'audit', row: record(one) })) }))
    await events.durable(number)
  }

  async function cut(sql: string): Promise<Recovered> {
    await store.close()
    const database = openSqlite(join(directory, 'cinnabar.db'))
    database.exec(sql)
    database.close()
    return open()
  }

  test.each([
    'delete from audit where number = 3',
    'delete from audit',
    "update audit set hash = x'00' where number = 3",
  ])('goes on after what was written last, and says so: %s', async (sql) => {
    const { audited, warnings } = await cut(sql)
    expect([audited?.number, ...(audited?.hash ?? [])]).toEqual([3, ...frames(3, 32)])
    expect(warnings?.join()).toContain('cinnabar audit verify')
  })

  test('goes on after a record that was added, since its number is taken', async () => {
    const { audited, warnings } = await cut("insert into audit values (9, 1, '', '', '', '', '', '', '', '', x'01')")
    expect([audited?.number, ...(audited?.hash ?? [])]).toEqual([9, 1])
    expect(warnings?.join()).toContain('cinnabar audit verify')
    await write(1, [10])
    expect((await store.audit(3, 10)).map(({ number }) => number)).toEqual([9, 10])
  })

  test('that nobody cut says nothing, also when old records are gone', async () => {
    store.write(batch(2, { changes: [{ remove: 'audit', through: 2 }] }))
    await events.durable(2)
    const { audited, warnings } = await cut('select 1')
    expect([audited?.number, warnings]).toEqual([3, undefined])
  })

  test('cannot be read: the caller gets the error, and storing continues', async () => {
    const other = openSqlite(join(directory, 'cinnabar.db'))
    other.exec('alter table audit rename to hidden')
    await expect(store.audit(0, 10)).rejects.toMatchObject({ name: 'StorageError' })
    other.exec('alter table hidden rename to audit')
    other.close()
    await write(2, [4])
    expect(await store.audit(3, 10)).toHaveLength(1)
  })
})
