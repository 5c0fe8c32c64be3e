/** In a process of its own, as the CLI is one: in that of a server, closing the file would drop the locks. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import { batch, EventLog, frames } from '../../contracts/store-batch.ts'

const texts = { action: 'é', actor: '', tenant: '', address: '', object: '', args: '{}', outcome: '', detail: '' }
let directory = ''
let store: SqliteStore
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'audit-'))
  store = new SqliteStore({ directory, reserveBytes: 0 })
})
afterEach(async () => {
  await store.close()
  rmSync(directory, { recursive: true, force: true })
})

async function write(from: SqliteStore, numbers: readonly number[]): Promise<void> {
  const events = new EventLog()
  expect((await from.open(events)).warnings).toBeUndefined()
  const row = (number: number) => ({ ...texts, number, time: number, hash: frames(number, 32) })
  from.write(batch(1, { changes: numbers.map((number) => ({ put: 'audit', row: row(number) })) }))
  await events.durable(1)
}

/** What another process reads: the end it finds, and the number and action of each record. */
function read(): unknown {
  const module = JSON.stringify(new URL('../../../dist/storage/sqlite/audit-file.js', import.meta.url))
  const path = JSON.stringify(join(directory, 'cinnabar.db'))
  const code = `
    const { withAuditFile } = await import(${module})
    const read = ({ ends, records }) =>
      [ends.number, ...[...records].map(({ number, action }) => [number, action.toString('hex')])]
    console.log(JSON.stringify(withAuditFile(${path}, read)))`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  })
  return JSON.parse(output)
}

test('is read while a server runs on it, and after, and hinders neither', async () => {
  await write(store, [1, 2])
  expect(read()).toEqual([2, [1, 'c3a9'], [2, 'c3a9']])
  await store.close()
  expect(read()).toEqual([2, [1, 'c3a9'], [2, 'c3a9']])
  store = new SqliteStore({ directory, reserveBytes: 0 })
  await write(store, [3])
  expect(read()).toEqual([3, [1, 'c3a9'], [2, 'c3a9'], [3, 'c3a9']])
})
