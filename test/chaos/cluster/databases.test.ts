/** That two databases with any difference are not taken for equal, but for what is a node's own. */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import { compareRows } from './databases.ts'

let directory: string
let one: string
let other: string

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-equal-'))
  const store = new SqliteStore({ directory })
  await store.open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} })
  await store.close()
  one = join(directory, 'cinnabar.db')
  other = join(directory, 'other.db')
  copyFileSync(one, other)
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function change(sql: string): void {
  const database = openSqlite(other)
  database.exec(sql)
  database.close()
}

it('finds a copy equal', () => {
  const { rows, difference } = compareRows(one, other)
  expect([rows > 0, difference]).toEqual([true, undefined])
})

it.each(["update meta set directory = 'elsewhere', closed = 1, restored = 1, progress = 7"])(
  "overlooks what is a node's own: %s",
  (sql) => {
    change(sql)
    expect(compareRows(one, other).difference).toBeUndefined()
  },
)

it.each([
  'update meta set age = age + 1',
  "update meta set secret = x'00'",
  "insert into lost_name (user, name, reason) values (1, 'a', 'b')",
  'create table more (x)',
])('finds a difference: %s', (sql) => {
  change(sql)
  expect(compareRows(one, other).difference).toBeDefined()
  expect(compareRows(other, one).difference).toBeDefined()
})
