/** Copies of a database that is in use, and what becomes of a directory into which one is restored. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { backUp, restoreBackup, SYNC_BYTES } from '../../../storage/sqlite/backup.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { APPLICATION_ID, MIGRATIONS, migrate } from '../../../storage/sqlite/migrations.ts'
import type { SqliteStore } from '../../../storage/sqlite/store.ts'
import { type BackupProgress, BLOCK_WIDTH, type Recovered } from '../../../storage/store.ts'
import { batch, EventLog, frames } from '../../contracts/store-batch.ts'
import { threadlessStore } from '../../support/threadless-store.ts'

let root = ''
let directory = ''
let events = new EventLog()
let store: SqliteStore
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'backup-'))
  directory = join(root, 'data')
  await open()
})
afterEach(async () => {
  await store.close()
  rmSync(root, { recursive: true, force: true })
})

async function open(at = directory): Promise<Recovered> {
  events = new EventLog()
  store = threadlessStore({ directory: at, reserveBytes: 0 })
  return store.open(events)
}

/** Writes batch `number` with block `number` of `kib`. */
async function write(number: number, kib = 1): Promise<void> {
  store.write(batch(number, { blocks: [{ id: number, frames: frames(number, kib * 1024) }] }))
  await events.durable(number)
}

const blocksOf = ({ blocks }: Recovered): number[] => [...blocks].filter((_, index) => index % BLOCK_WIDTH === 0)

describe('a backup', () => {
  test('has everything that was durable when it ended, in a new file for the owner alone', async () => {
    await write(1, 100)
    const path = join(root, 'backups', 'copy.db')
    const bytes = await store.backup(path, () => {})
    expect(statSync(path)).toMatchObject({ size: bytes, mode: 0o100600 })
    expect(readdirSync(join(root, 'backups'))).toEqual(['copy.db'])
    await write(2)
    await store.close()
    expect(restoreBackup({ file: path, directory: join(root, 'other') })).toBeUndefined()
    const recovered = await open(join(root, 'other'))
    expect(blocksOf(recovered)).toEqual([1])
    expect(recovered.restored).toBe(true)
    const [found] = await store.read([1])
    expect(Buffer.compare(found?.bytes as Uint8Array, frames(1, 100 * 1024))).toBe(0)
  })

  test('ends while batches are stored all the time, and has those that came before its last step', async () => {
    for (let number = 1; number <= 100; number++) await write(number, 90)
    const seen: BackupProgress[] = []
    let isDone = false
    const copied = store
      .backup(join(root, 'copy.db'), (progress) => seen.push(progress))
      .finally(() => {
        isDone = true
      })
    let number = 100
    while (!isDone) await write(++number, 40)
    await copied
    expect(number).toBeGreaterThan(100)
    const steps = seen.map(({ copiedBytes, totalBytes }) => copiedBytes / totalBytes)
    expect(steps.length).toBeGreaterThan(5)
    expect(steps.every((step) => step >= 0 && step <= 1)).toBe(true)
    const copy = openSqlite(join(root, 'copy.db'), { readonly: true })
    expect(copy.pragma('integrity_check', { simple: true })).toBe('ok')
    const ids = copy.prepare('select id from block order by id').pluck().all() as number[]
    copy.close()
    // Nothing in between is missing.
    expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => index + 1))
    expect(ids.length).toBeGreaterThanOrEqual(100)
  })

  test('does not replace a file, and leaves none if it fails', async () => {
    await write(1)
    const path = join(root, 'taken')
    writeFileSync(path, 'mine')
    let copied = 0
    const counted = (): void => void copied++
    await expect(store.backup(path, counted)).rejects.toMatchObject({
      code: 'NOT_WRITABLE',
      message: `${path} exists already: choose another name`,
    })
    expect([copied, readFileSync(path, 'utf8')]).toEqual([0, 'mine'])
    await expect(store.backup(join(path, 'copy.db'), () => {})).rejects.toMatchObject({ name: 'StorageError' })
    expect(readdirSync(root).sort()).toEqual(['data', 'taken'])
  })

  test('that the end of the server cuts off leaves no file', async () => {
    for (let number = 1; number <= 300; number++) await write(number, 90)
    const path = join(root, 'copy.db')
    let closing: Promise<void> | undefined
    const copied = store.backup(path, () => {
      closing ??= store.close()
    })
    await expect(copied).rejects.toMatchObject({ name: 'StorageError' })
    await closing
    expect(existsSync(path)).toBe(false)
  })
})

describe('the syncs of a backup', () => {
  const MIB = 1024 * 1024
  let database: Database
  beforeEach(() => {
    database = openSqlite(join(root, 'large.db'))
    database.pragma('page_size = 16384')
    database.pragma('journal_mode = wal')
    migrate(database)
  })
  afterEach(() => void database.close())

  const fill = (mib: number): void => {
    const put = database.prepare('insert into block (id, data) values (?, zeroblob(?))')
    for (let id = 1; id <= mib; id++) put.run(id, MIB)
  }

  const turns = async (): Promise<void> => {
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
  }

  test('come while it is made: the copy waits for the disk, not the batches for all of it at the end', async () => {
    fill(100)
    let copied = 0
    const begun: number[] = []
    let synced = (): void => {}
    const sync = (): Promise<void> => {
      begun.push(copied)
      return new Promise((resolve) => {
        synced = resolve
      })
    }
    const progress = ({ copiedBytes }: BackupProgress): void => {
      copied = copiedBytes
    }
    let isDone = false
    const made = backUp(database, join(root, 'copy.db'), { progress, isCancelled: () => false, sync })
    void made.finally(() => {
      isDone = true
    })
    let rounds = 0
    for (; !isDone; rounds++) {
      await turns()
      // However long a sync takes, no more than this is left for the next one.
      expect(copied - (begun.at(-1) ?? 0)).toBeLessThanOrEqual(SYNC_BYTES + MIB)
      synced()
    }
    expect(begun.length).toBeGreaterThanOrEqual(5)
    expect((await made) - (begun.at(-1) ?? 0)).toBeLessThanOrEqual(2 * SYNC_BYTES)
    expect(rounds).toBeGreaterThan(5)
    const copy = openSqlite(join(root, 'copy.db'), { readonly: true })
    expect(copy.prepare('select count(*) from block').pluck().get()).toBe(100)
    copy.close()
  })

  test('end it if one fails, and leave no file', async () => {
    fill((2 * SYNC_BYTES) / MIB)
    const sync = () => Promise.reject(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }))
    const made = backUp(database, join(root, 'copy.db'), { progress: () => {}, isCancelled: () => false, sync })
    await expect(made).rejects.toMatchObject({ code: 'IO' })
    expect(readdirSync(root).filter((name) => name.startsWith('copy'))).toEqual([])
  })
})

test('what a killed server has left of a backup is deleted at the next start', async () => {
  await store.close()
  const backups = join(directory, 'backups')
  mkdirSync(backups)
  for (const name of ['one.part', 'one.part-wal', 'whole']) writeFileSync(join(backups, name), 'x')
  await open()
  expect(readdirSync(backups)).toEqual(['whole'])
})

describe('a backup that is restored', () => {
  const copy = (): string => join(root, 'copy.db')

  test('takes the place of a database, which stays beside it', async () => {
    await write(1)
    await store.backup(copy(), () => {})
    await write(2)
    await store.close()
    const before = readFileSync(copy())
    expect(restoreBackup({ file: copy(), directory })).toBe(join(directory, 'cinnabar.db.replaced-1'))
    expect(Buffer.compare(readFileSync(copy()), before)).toBe(0)
    expect(blocksOf(await open())).toEqual([1])
    await store.close()
    restoreBackup({ file: join(directory, 'cinnabar.db.replaced-1'), directory })
    expect(blocksOf(await open())).toEqual([1, 2])
  })

  test('takes it from a server that was killed too: the log goes with the old database', async () => {
    await write(1)
    await store.backup(copy(), () => {})
    await write(2)
    // As a killed process leaves it.
    const killed = join(root, 'killed')
    mkdirSync(killed)
    for (const name of ['cinnabar.db', 'cinnabar.db-wal', 'cinnabar.db-shm']) {
      writeFileSync(join(killed, name), readFileSync(join(directory, name)))
    }
    const replaced = restoreBackup({ file: copy(), directory: killed }) as string
    expect(readdirSync(killed).filter((name) => name.startsWith('cinnabar.db-'))).toEqual([])
    await store.close()
    expect(blocksOf(await open(killed))).toEqual([1])
    await store.close()
    restoreBackup({ file: replaced, directory: killed })
    expect(blocksOf(await open(killed))).toEqual([1, 2])
  })

  test('may be of an older format', async () => {
    await store.close()
    const old = openSqlite(copy())
    migrate(old, MIGRATIONS.slice(0, 6))
    old.close()
    restoreBackup({ file: copy(), directory: join(root, 'other') })
    expect((await open(join(root, 'other'))).restored).toBe(true)
  })

  test.each([1, 2, 3, 4, 5, 6])('may be a dump of format %i', async (format) => {
    await store.close()
    const old = openSqlite(copy())
    old.exec(readFileSync(new URL(`format-${format}.sql`, import.meta.url), 'utf8'))
    old.pragma(`application_id = ${APPLICATION_ID}`)
    old.pragma(`user_version = ${format}`)
    old.exec('analyze')
    old.close()
    restoreBackup({ file: copy(), directory: join(root, 'other') })
    await open(join(root, 'other'))
  })

  test.each([
    ['create trigger t after insert on audit begin delete from audit; end', /has the trigger t/],
    ["create trigger t after insert on user begin update user set role = 'admin'; end", /has the trigger t/],
    ['create temp table gone (x); create view v as select * from user', /has the view v/],
    ['alter table audit rename to a; create view audit as select * from a', /has the view audit/],
    ['drop table audit', /has no table audit/],
    ['drop table audit; create table audit (x)', /its table audit is not that of format/],
    ['create table lost_and_found (x)', /has the table lost_and_found/],
    ['create index i on user (name)', /has the index i/],
    ['alter table user add column x text', /its table user is not that of format/],
    ['drop index token_user', /has no index token_user/],
  ])('is refused with another schema: %s', async (sql, message) => {
    await store.backup(copy(), () => {})
    const changed = openSqlite(copy())
    changed.exec(sql)
    changed.close()
    const other = join(root, 'other')
    expect(() => restoreBackup({ file: copy(), directory: other })).toThrow(message)
    expect(readdirSync(other)).toEqual(['lock.db'])
  })

  test('is refused while a server uses the directory', async () => {
    await store.backup(copy(), () => {})
    expect(() => restoreBackup({ file: copy(), directory })).toThrow(expect.objectContaining({ code: 'LOCKED' }))
  })

  test('is not the database that a server uses elsewhere, which changes while it is copied', async () => {
    await write(1)
    const other = join(root, 'other')
    const [served, link] = [join(directory, 'cinnabar.db'), join(root, 'link.db')]
    symlinkSync(served, link)
    for (const file of [served, link]) {
      expect(() => restoreBackup({ file, directory: other })).toThrow(
        expect.objectContaining({ code: 'LOCKED', message: expect.stringContaining('cinnabar backup') }),
      )
    }
    expect(existsSync(join(other, 'cinnabar.db'))).toBe(false)
    // It goes on as if nobody had asked.
    await write(2)
    await store.close()
    restoreBackup({ file: link, directory: other })
    expect(blocksOf(await open(other))).toEqual([1, 2])
  })

  test('is refused unless it is a sound database of this program, and nothing changes then', async () => {
    await write(1)
    await store.backup(copy(), () => {})
    await store.close()
    const files = (): string[] => readdirSync(directory).sort()
    const before = files()
    const broken = readFileSync(copy()).fill(0xff, 3 * 16_384, 4 * 16_384)
    const other = openSqlite(join(root, 'other.db'))
    other.exec('create table one (x)')
    other.pragma('application_id = 7')
    other.close()
    writeFileSync(join(root, 'broken.db'), broken)
    writeFileSync(join(root, 'text.db'), 'hello, world')
    writeFileSync(join(root, 'empty.db'), '')
    const foreign = openSqlite(join(root, 'foreign.db'))
    foreign.exec('create table one (x)')
    foreign.close()
    for (const [name, code] of [
      ['missing.db', 'NOT_WRITABLE'],
      ['text.db', 'DAMAGED'],
      ['other.db', 'DAMAGED'],
      ['empty.db', 'DAMAGED'],
      ['foreign.db', 'DAMAGED'],
      ['broken.db', 'DAMAGED'],
    ]) {
      const file = join(root, name as string)
      expect(() => restoreBackup({ file, directory })).toThrow(expect.objectContaining({ code }))
    }
    expect(files()).toEqual(before)
    expect(blocksOf(await open())).toEqual([1])
  })
})
