import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hashOf, NO_HASH } from '../../../server/kernel/accounts/audit/record.ts'
import { AuditTable } from '../../../storage/sqlite/audit.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { migrate } from '../../../storage/sqlite/migrations.ts'
import { runCli } from '../fake-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-verify-'))
const hashes: string[] = []
afterAll(() => rmSync(directory, { recursive: true }))
beforeAll(() => {
  mkdirSync(join(directory, 'data'))
  writeFileSync(join(directory, 'c.toml'), `[producer]\ndata_dir = ${JSON.stringify(join(directory, 'data'))}\n`)
  const database = openSqlite(join(directory, 'data', 'cinnabar.db'))
  migrate(database)
  const audit = new AuditTable(database)
  let before = NO_HASH
  for (const number of [1, 2, 3]) {
    const texts = { action: 'admin', actor: 'local', tenant: 'default', address: '', object: 'user.add', args: '{}' }
    const record = { number, time: number, ...texts, outcome: 'ok', detail: '' }
    before = hashOf(record, before)
    hashes.push(Buffer.from(before).toString('hex'))
    audit.change({ put: 'audit', row: { ...record, hash: before } })
  }
  database.close()
})

const verify = (...argv: readonly string[]) =>
  runCli(['audit', 'verify', ...argv], undefined, { env: { CINNABAR_CONFIG: join(directory, 'c.toml') } })

test('an intact log is reported with the line to note down', async () => {
  const { code, out, producer } = await verify()
  expect({ code, out }).toEqual({ code: 0, out: ['3 records, 1 to 3: all intact', `3:${hashes[2]}`] })
  expect(producer.sent).toEqual([])
  const json = await verify('--json', '--database', join(directory, 'data', 'cinnabar.db'))
  expect(JSON.parse(json.out.join())).toEqual({ whole: true, records: 3, first: 1, last: 3, hash: hashes[2] })
})

test('a record that was noted down has to be what it was, and has to be there', async () => {
  expect((await verify('--from', `2:${hashes[1]?.toUpperCase()}`)).code).toBe(0)
  const other = await verify('--from', `2:${hashes[0]}`)
  expect(other.code).toBe(1)
  expect(other.err).toEqual([
    expect.stringMatching(/^cinnabar: the audit log is not intact at record 2: .* noted down/),
    'the one record before it is intact',
  ])
  expect((await verify('--from', `4:${hashes[2]}`)).err.join()).toMatch(/ends before record 4/)
})

test('what was changed is found, with its place', async () => {
  const database = openSqlite(join(directory, 'data', 'cinnabar.db'))
  database.prepare("update audit set actor = 'mallory' where number = 2").run()
  database.close()
  const { code, out, err } = await verify()
  expect({ code, out }).toEqual({ code: 1, out: [] })
  expect(err[0]).toMatch(/is not intact at record 2: record 2 does not match its hash/)
  const json = await verify('--json')
  expect(json.code).toBe(1)
  expect(JSON.parse(json.out.join())).toMatchObject({ whole: false, records: 1, at: 2 })
})

test('a missing or invalid database is reported in plain words', async () => {
  const nowhere = await verify('--database', join(directory, 'nowhere.db'))
  expect({ code: nowhere.code, err: nowhere.err }).toEqual({
    code: 2,
    err: [`cinnabar: there is no database ${join(directory, 'nowhere.db')}`],
  })
  const other = await verify('--database', join(directory, 'c.toml'))
  expect(other.code).toBe(1)
  expect(other.err.join()).toMatch(/cannot be read/)
  expect(other.err.join()).not.toContain('should not happen')
})
