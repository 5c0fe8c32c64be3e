/** A log as a killed process leaves it: with the index beside it. SQLite writes both; only then they are damaged. */
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { examineLog } from '../../../../storage/sqlite/damage/log.ts'
import { openDatabase } from '../../../../storage/sqlite/database.ts'
import { NEXT, NumbersTable, RESERVED } from '../../../../storage/sqlite/numbers.ts'
import { StorageError } from '../../../../storage/store.ts'
import { EventLog } from '../../../contracts/store-batch.ts'
import { threadlessStore } from '../../../support/threadless-store.ts'

const PAGE = 16_384
const FRAME = PAGE + 24

let directory = ''
let path = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'log-'))
  path = join(directory, 'cinnabar.db')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

/** The files of a process that wrote `next` = 2 to 6 of channel 7 in five transactions and was killed. */
function killed(before: (database: Database) => void = () => {}): void {
  const source = mkdtempSync(join(directory, 'source-'))
  const { database, close } = openDatabase({ directory: source })
  const numbers = new NumbersTable(database)
  const put = (next: number): void => numbers.put(Float64Array.of(7, 1, next, next, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
  put(1)
  database.pragma('wal_checkpoint(truncate)')
  for (let next = 2; next <= 6; next++) put(next)
  before(database)
  for (const suffix of ['', '-wal', '-shm']) {
    copyFileSync(join(source, `cinnabar.db${suffix}`), `${path}${suffix}`)
  }
  close()
}

function damage(file: string, change: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file)
  change(bytes)
  writeFileSync(file, bytes)
}

function numbers(): { next: number; reserved: number } {
  const { database, close } = openDatabase({ directory })
  try {
    const row = new NumbersTable(database).read().sound.get(7)!
    return { next: row[NEXT]!, reserved: row[RESERVED]! }
  } finally {
    close()
  }
}

test('a log that is whole is taken as it is', () => {
  killed()
  expect(examineLog(path)).toEqual({ short: false, kept: undefined })
  expect(numbers()).toEqual({ next: 6, reserved: 6 })
})

test('a missing log is no damage', () => {
  expect(examineLog(path)).toEqual({ short: false, kept: undefined })
})

describe('a log that has lost transactions', () => {
  const ways: [string, () => void][] = [
    [
      'a bit of its third transaction is flipped',
      () => damage(`${path}-wal`, (log) => log.writeUInt8(1, 32 + 2 * FRAME + 500)),
    ],
    ['its end is cut off between two transactions', () => truncateSync(`${path}-wal`, 32 + 2 * FRAME)],
  ]
  test.each(ways)('is kept, and ids that may have been given are skipped: %s', (_, harm) => {
    killed()
    harm()
    const before = readFileSync(`${path}-wal`)
    const { next, reserved } = numbers()
    expect(next).toBe(3)
    expect(reserved).toBe(3 + 2 ** 36)
    expect(readFileSync(`${path}-wal.damaged-1`).equals(before)).toBe(true)
  })

  test('is reported to people, with the path of the copy', async () => {
    killed()
    damage(`${path}-wal`, (log) => log.writeUInt8(1, 32 + 2 * FRAME + 500))
    const store = threadlessStore({ directory, reserveBytes: 0 })
    const { warnings } = await store.open(new EventLog())
    expect(warnings?.length).toBe(1)
    expect(warnings?.[0]).toContain(`${path}-wal.damaged-1`)
    expect(warnings?.[0]).toContain('compare `cinnabar user list`')
    expect(warnings?.[0]).toContain('channels report that values may be missing')
    await store.close()
  })

  test('is found by its own frames when there is no index', () => {
    killed()
    rmSync(`${path}-shm`)
    damage(`${path}-wal`, (log) => log.writeUInt8(1, 32 + 2 * FRAME + 500))
    expect(examineLog(path).short).toBe(true)
  })

  test('is found when its header is broken', () => {
    killed()
    damage(`${path}-wal`, (log) => log.writeUInt8(log.readUInt8(17) ^ 1, 17))
    expect(examineLog(path).short).toBe(true)
  })

  test('is found when it is empty or gone', () => {
    killed()
    truncateSync(`${path}-wal`, 0)
    expect(examineLog(path).short).toBe(true)
    rmSync(`${path}-wal`)
    expect(examineLog(path).short).toBe(true)
  })
})

test('a damaged log that the database holds already is put aside, and nothing is lost', () => {
  killed((database) => database.pragma('wal_checkpoint(passive)'))
  damage(`${path}-wal`, (log) => log.writeUInt8(1, 32 + 2 * FRAME + 500))
  expect(numbers()).toEqual({ next: 6, reserved: 6 })
  expect(existsSync(`${path}-wal.damaged-1`)).toBe(true)
})

test('a log damaged during a checkpoint is refused, and nothing is touched', () => {
  killed()
  // What a checkpoint that was cut off leaves: more attempted than done.
  damage(`${path}-shm`, (index) => index.writeUInt32LE(5, 128))
  damage(`${path}-wal`, (log) => log.writeUInt8(1, 32 + 2 * FRAME + 500))
  const digest = (): string[] =>
    ['', '-wal'].map((suffix) =>
      createHash('sha256')
        .update(readFileSync(`${path}${suffix}`))
        .digest('hex'),
    )
  const before = digest()
  const refused = (): unknown => openDatabase({ directory })
  expect(refused).toThrow(StorageError)
  expect(refused).toThrow(`${path}-wal`)
  expect(digest()).toEqual(before)
})

test('an index that is damaged or of an older log is not relied on', () => {
  killed()
  damage(`${path}-shm`, (index) => {
    for (const at of [16, 64]) index.writeUInt32LE(99, at)
  })
  expect(examineLog(path).short).toBe(false)
  expect(numbers().next).toBe(6)
})

test('what a killed process had not committed is no damage', () => {
  killed()
  damage(`${path}-wal`, () => {})
  const log = readFileSync(`${path}-wal`)
  writeFileSync(`${path}-wal`, Buffer.concat([log, log.subarray(32, 32 + FRAME / 2)]))
  expect(examineLog(path).short).toBe(false)
})
