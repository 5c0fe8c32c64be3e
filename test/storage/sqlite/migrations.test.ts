import Database from 'better-sqlite3'
import { expect, test } from 'vitest'
import { APPLICATION_ID, MIGRATIONS, migrate } from '../../../storage/sqlite/migrations.ts'

const one = (database: Database.Database): void => {
  database.exec('create table one (x)')
}
const two = (database: Database.Database): void => {
  database.exec('create table two (x)')
}

function tables(database: Database.Database): unknown[] {
  return database.prepare('select name from sqlite_schema order by name').pluck().all()
}

test('each step is taken once, also when later versions add more', () => {
  const database = new Database(':memory:')
  migrate(database, [one])
  expect([tables(database), database.pragma('user_version', { simple: true })]).toEqual([['one'], 1])
  migrate(database, [one, two])
  migrate(database, [one, two])
  expect([tables(database), database.pragma('user_version', { simple: true })]).toEqual([['one', 'two'], 2])
  expect(database.pragma('application_id', { simple: true })).toBe(APPLICATION_ID)
})

test('a step that fails leaves the version before it, whole', () => {
  const database = new Database(':memory:')
  const failing = (target: Database.Database): void => {
    two(target)
    target.exec('create table one (x)')
  }
  expect(() => migrate(database, [one, failing])).toThrow('already exists')
  expect([tables(database), database.pragma('user_version', { simple: true })]).toEqual([['one'], 1])
})

test('the secret is made once and differs from database to database', () => {
  const secrets = [1, 2].map(() => {
    const database = new Database(':memory:')
    migrate(database)
    migrate(database)
    expect(database.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length)
    return database.prepare<unknown[], Buffer>('select secret from meta').pluck().get()?.toString('hex')
  })
  expect(secrets[0]).toHaveLength(64)
  expect(secrets[0]).not.toBe(secrets[1])
})
