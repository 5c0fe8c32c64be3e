import { createHash } from 'node:crypto'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type DatabaseOptions, openDatabase } from '../../../storage/sqlite/database.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { MIGRATIONS } from '../../../storage/sqlite/migrations.ts'
import type { SqliteStore } from '../../../storage/sqlite/store.ts'
import type { StorageError } from '../../../storage/store.ts'
import { batch, EventLog, frames } from '../../contracts/store-batch.ts'
import { eventually } from '../../support/eventually.ts'
import { threadlessStore } from '../../support/threadless-store.ts'

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'database-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function refusal(at = directory): Promise<StorageError> {
  const store = threadlessStore({ directory: at })
  return store.open(new EventLog()).then(
    async () => {
      await store.close()
      throw new Error('it was opened')
    },
    (error: StorageError) => error,
  )
}

async function createDatabase(): Promise<string> {
  const store = threadlessStore({ directory })
  const events = new EventLog()
  await store.open(events)
  store.write(batch(1, { blocks: [{ id: 1, frames: frames(1) }] }))
  await events.durable(1)
  await store.close()
  return join(directory, 'cinnabar.db')
}

function digests(): string[] {
  const digest = (name: string): string =>
    createHash('sha256')
      .update(readFileSync(join(directory, name)))
      .digest('hex')
  const names = readdirSync(directory).filter((name) => name !== 'lock.db')
  return names.sort().map((name) => `${name} ${digest(name)}`)
}

test('what is written is flushed to the disk with each transaction, unless that is switched off', () => {
  const flushing = (options: Partial<DatabaseOptions>): unknown[] => {
    const { database, close } = openDatabase({ directory, ...options })
    const pragmas = ['journal_mode', 'synchronous', 'fullfsync', 'checkpoint_fullfsync']
    const found = pragmas.map((pragma) => database.pragma(pragma, { simple: true }))
    close()
    return found
  }
  expect(flushing({})).toEqual(['wal', 2, 1, 1])
  expect(flushing({ synchronous: 'normal' })).toEqual(['wal', 1, 1, 1])
})

describe('opening a data directory', () => {
  test('it is made, for its owner only, and so is the database', async () => {
    const store = threadlessStore({ directory: join(directory, 'a', 'b') })
    await store.open(new EventLog())
    expect(statSync(join(directory, 'a', 'b')).mode & 0o777).toBe(0o700)
    expect(statSync(join(directory, 'a', 'b', 'cinnabar.db')).mode & 0o777).toBe(0o600)
    expect(statSync(join(directory, 'a', 'b', 'lock.db')).mode & 0o777).toBe(0o600)
    await store.close()
  })

  test('the database has pages of 16 KiB, a log, and says whose it is', async () => {
    const header = readFileSync(await createDatabase())
    expect(header.readUInt16BE(16)).toBe(16_384)
    expect([header[18], header[19]]).toEqual([2, 2])
    expect(header.toString('latin1', 68, 72)).toBe('Cinn')
    expect(header.readUInt32BE(60)).toBe(MIGRATIONS.length)
  })

  test('a second server is refused with the name of the directory, and the first goes on', async () => {
    const first = threadlessStore({ directory })
    const events = new EventLog()
    await first.open(events)
    const error = await refusal()
    expect(error.code).toBe('LOCKED')
    expect(error.message).toContain(directory)
    first.write(batch(1, { blocks: [{ id: 1, frames: frames(1) }] }))
    await events.durable(1)
    await first.close()
    const second = threadlessStore({ directory })
    expect((await second.open(new EventLog())).nextBlockId).toBe(2)
    await second.close()
  })

  test('a place where no directory can be is refused with its path', async () => {
    const file = join(directory, 'file')
    writeFileSync(file, '')
    const error = await refusal(join(file, 'data'))
    expect(error.code).toBe('NOT_WRITABLE')
    expect(error.message).toContain(join(file, 'data'))
  })

  test('a database of a newer version is refused and not touched', async () => {
    const path = await createDatabase()
    const newer = openSqlite(path)
    newer.pragma('user_version = 99')
    newer.close()
    const before = digests()
    const error = await refusal()
    expect(error.code).toBe('TOO_NEW')
    expect(error.message).toContain(path)
    expect(error.message).toContain('99')
    expect(digests()).toEqual(before)
  })

  test('a newer version that only the log knows of is refused as well', async () => {
    const path = await createDatabase()
    const newer = openSqlite(path)
    newer.pragma('user_version = 99')
    const copy = join(directory, 'copy')
    mkdirSync(copy)
    for (const name of ['cinnabar.db', 'cinnabar.db-wal']) copyFileSync(join(directory, name), join(copy, name))
    newer.close()
    expect(readFileSync(join(copy, 'cinnabar.db')).readUInt32BE(60)).toBe(MIGRATIONS.length)
    expect((await refusal(copy)).code).toBe('TOO_NEW')
  })

  test('a file that is no database is refused and not touched', async () => {
    writeFileSync(join(directory, 'cinnabar.db'), 'something that somebody may still need'.repeat(100))
    const before = digests()
    expect((await refusal()).code).toBe('DAMAGED')
    expect(digests()).toEqual(before)
  })

  test('the database of another program is refused and not touched', async () => {
    const other = openSqlite(join(directory, 'cinnabar.db'))
    other.exec('create table theirs (x)')
    other.pragma('application_id = 4711')
    other.close()
    const before = digests()
    expect((await refusal()).code).toBe('DAMAGED')
    expect(digests()).toEqual(before)
  })

  test('an empty file, as a first start that was cut off leaves it, is begun anew', async () => {
    writeFileSync(join(directory, 'cinnabar.db'), '')
    const store = threadlessStore({ directory })
    expect((await store.open(new EventLog())).secret.length).toBe(32)
    await store.close()
  })

  test('whether the end was clean is known from outside', async () => {
    const closed = (): unknown => {
      const look = openSqlite(join(directory, 'cinnabar.db'), { readonly: true })
      const found = look.prepare('select closed from meta').pluck().get()
      look.close()
      return found
    }
    await createDatabase()
    expect(closed()).toBe(0)
    const store = threadlessStore({ directory })
    const events = new EventLog()
    await store.open(events)
    store.write(batch(1, { changes: [{ put: 'closed', row: {} }] }))
    await events.durable(1)
    await store.close()
    expect(closed()).toBe(1)
  })
})

describe('a database that held much gives its space back', () => {
  const length = 4 * 1024 * 1024
  const size = (): number => statSync(join(directory, 'cinnabar.db')).size

  /** The store of a database that has just removed a large block; the numbers of its next batches begin at 3. */
  async function afterRemoval(idleMs: number): Promise<{ store: SqliteStore; events: EventLog }> {
    const store = threadlessStore({ directory, idleMs })
    const events = new EventLog()
    await store.open(events)
    const blocks = Float64Array.from([1, 1, 0, 1, 1, 0, length, 1, 1, 1, 1])
    store.write({ ...batch(1), data: new ArrayBuffer(length), dataLength: length, blocks })
    await events.durable(1)
    await eventually(() => expect(size()).toBeGreaterThan(length))
    store.write(batch(2, { removed: [1] }))
    await events.durable(2)
    return { store, events }
  }

  test('when no batch comes', async () => {
    const { store } = await afterRemoval(1)
    await eventually(() => expect(size()).toBeLessThan(length / 2))
    await store.close()
  })

  test('when batches follow each other without a pause', async () => {
    const { store, events } = await afterRemoval(200)
    for (let number = 3; size() >= length / 2; number++) {
      store.write(batch(number, { blocks: [{ id: number, frames: frames(1) }], removed: [number - 1] }))
      await events.durable(number)
    }
    await store.close()
  })
})

describe('the log', () => {
  test('is cut to nothing when no batch comes', async () => {
    const store = threadlessStore({ directory, idleMs: 1 })
    const events = new EventLog()
    await store.open(events)
    store.write(batch(1, { blocks: [{ id: 1, frames: frames(1) }] }))
    await events.durable(1)
    await eventually(() => expect(statSync(join(directory, 'cinnabar.db-wal')).size).toBe(0))
    await store.close()
  })

  test('stays below 64 MiB under load', async () => {
    const store = threadlessStore({ directory, synchronous: 'normal' })
    const events = new EventLog()
    await store.open(events)
    const length = 4 * 1024 * 1024
    for (let number = 1; number <= 20; number++) {
      const blocks = Float64Array.from([number, 1, 0, 1, 1, 0, length, 1, 1, 1, 1])
      const given = batch(number, { removed: [number - 2] })
      store.write({ ...given, data: new ArrayBuffer(length), dataLength: length, blocks })
      await events.durable(number)
      expect(statSync(join(directory, 'cinnabar.db-wal')).size).toBeLessThan(64 * 1024 * 1024)
    }
    await store.close()
  })
})
