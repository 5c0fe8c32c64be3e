import type { Database } from 'better-sqlite3'
import { expect, test } from 'vitest'
import { driverFor, openSqlite } from '../../../storage/sqlite/driver.ts'

class Works {
  close(): void {}
}
/** Gives a module as `require` does, and keeps the names that were asked for. */
function loading(driver: unknown) {
  const names: string[] = []
  const load = (name: string) => {
    names.push(name)
    return driver as new () => Database
  }
  return { names, load }
}

test.each([
  [20, 'better-sqlite3'],
  [22, 'better-sqlite3-13'],
  [24, 'better-sqlite3-13'],
  [26, 'better-sqlite3-13'],
])('Node %i uses %s', (node, name) => {
  const { names, load } = loading(Works)
  expect(driverFor(node, load)).toBe(Works)
  expect(names).toEqual([name])
})

test('one that is not installed is a StorageError that says what to do', () => {
  const missing = (name: string) => {
    throw new Error(`Cannot find module '${name}'\nRequire stack: ...`)
  }
  expect(() => driverFor(20, missing)).toThrow(
    expect.objectContaining({
      name: 'StorageError',
      message: expect.stringMatching(/^SQLite \(better-sqlite3\) .* Cannot find module 'better-sqlite3'\. .*compiler/),
    }),
  )
  expect(() => driverFor(24, missing)).toThrow(/^SQLite \(better-sqlite3-13\) .* optional dependencies/)
})

test('one whose native part is missing is found out before a database is opened', () => {
  class HasNoBinding {
    constructor() {
      throw new Error('Could not locate the bindings file. Tried:\n one\n two')
    }
  }
  expect(() => driverFor(20, loading(HasNoBinding).load)).toThrow(/locate the bindings file\. On Node 20/)
})

test('the schema of a database is not trusted', () => {
  const database = openSqlite(':memory:')
  expect(database.pragma('trusted_schema', { simple: true })).toBe(0)
  database.close()
})
