/** The failpoints know the storage by its SQL: what they look for has to be there, or a point is never reached and nobody notices. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { openDatabase } from '../../../storage/sqlite/database.ts'
import { openTables } from '../../../storage/sqlite/tables.ts'

const source = readFileSync(new URL('./failpoints.cjs', import.meta.url), 'utf8')
const sought = [...source.matchAll(/sql\.(?:includes|startsWith)\('([^']+)'\)/g)].map(([, text = '']) => text)
const columns = [...source.matchAll(/\brow(?:Of\(sql, args\))?\.(\w+)/g)].map(([, name = '']) => name)

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-failpoints-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

test('what the failpoints look for is in the SQL of the storage', () => {
  const { database, close } = openDatabase({ directory, synchronous: 'normal' })
  const prepared: string[] = []
  const prepare = database.prepare.bind(database)
  database.prepare = (sql: string) => {
    prepared.push(sql)
    return prepare(sql)
  }
  openTables(database)
  close('untouched')
  expect(sought.length).toBeGreaterThan(10)
  expect(sought.filter((text) => !prepared.some((sql) => sql.includes(text)))).toEqual([])
  const named = prepared.filter((sql) => /into (?:channel|binding|result) \(/.test(sql)).join()
  expect(columns.length).toBeGreaterThan(4)
  expect(columns.filter((name) => !named.includes(`"${name}"`))).toEqual([])
})
