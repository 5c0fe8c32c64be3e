/** A database that is set aside: all of its files, and nothing of what else lies in the directory. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { setAside } from '../../../storage/replicated/set-aside.ts'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import { StorageError } from '../../../storage/store.ts'

const WALL_MS = Date.UTC(2026, 0, 31, 23, 59, 59, 500)

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'cinnabar-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function write(...names: string[]): void {
  for (const name of names) writeFileSync(join(directory, name), `content of ${name}`)
}

test('gets a directory of its own, with the time in its name', () => {
  write('cinnabar.db', 'cinnabar.db-wal', 'cinnabar.db-shm', 'generation', 'lock.db', 'admin.secret')
  const aside = setAside(directory, WALL_MS) as string
  expect(aside).toBe(join(directory, 'set-aside-20260131T235959Z'))
  expect(readdirSync(aside).sort()).toEqual(['cinnabar.db', 'cinnabar.db-shm', 'cinnabar.db-wal', 'generation'])
  expect(readFileSync(join(aside, 'cinnabar.db-wal'), 'utf8')).toBe('content of cinnabar.db-wal')
  expect(statSync(aside).mode & 0o777).toBe(0o700)
  expect(readdirSync(directory).sort()).toEqual(['admin.secret', 'lock.db', 'set-aside-20260131T235959Z'])
})

test('does not take the place of another one', () => {
  write('cinnabar.db')
  const first = setAside(directory, WALL_MS) as string
  write('cinnabar.db')
  const second = setAside(directory, WALL_MS)
  expect(second).toBe(`${first}-2`)
  expect(existsSync(join(first, 'cinnabar.db'))).toBe(true)
})

test('is nothing if there is no database', () => {
  write('lock.db')
  expect(setAside(directory, WALL_MS)).toBeUndefined()
  expect(readdirSync(directory)).toEqual(['lock.db'])
})

test('stays where it is if it cannot be moved', () => {
  write('generation')
  // What cannot be linked.
  mkdirSync(join(directory, 'cinnabar.db'))
  expect(() => setAside(directory, WALL_MS)).toThrow(StorageError)
  expect(readdirSync(directory)).toEqual(expect.arrayContaining(['cinnabar.db', 'generation']))
})

test('can be served from there, and an empty one takes its place', async () => {
  const events = { onDurable() {}, onFull() {}, onRoom() {}, onFailed() {} }
  const store = new SqliteStore({ directory })
  const { secret } = await store.open(events)
  await store.close()
  const aside = setAside(directory, WALL_MS) as string
  const old = new SqliteStore({ directory: aside })
  const fresh = new SqliteStore({ directory })
  expect((await old.open(events)).secret).toEqual(secret)
  expect((await fresh.open(events)).secret).not.toEqual(secret)
  await old.close()
  await fresh.close()
})
