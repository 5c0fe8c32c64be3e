import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { SqliteStore } from '../../../storage/sqlite/store.ts'
import type { Batch } from '../../../storage/store.ts'
import { batch, EventLog, frames } from '../../contracts/store-batch.ts'
import { eventually } from '../../support/eventually.ts'

const BLOCK_BYTES = 200_000

function oneBlock(number: number, removed: readonly number[] = []): Batch {
  const rows = Float64Array.from([number, 1, 0, 1, 1, 0, BLOCK_BYTES, 1, 1, 1, 1])
  return { ...batch(number, { removed }), data: new Uint8Array(BLOCK_BYTES).fill(number).buffer, blocks: rows }
}

async function expectServed(store: SqliteStore, id: number): Promise<void> {
  const [found] = await store.read([id])
  expect(Buffer.compare(found!.bytes!, Buffer.alloc(BLOCK_BYTES, id))).toBe(0)
}

/** Writes batches of one block until one meets the full disk and is not helped by the reserve; returns its number. */
async function fill(store: SqliteStore, events: EventLog, from: number): Promise<number> {
  for (let number = from; ; number++) {
    store.write(oneBlock(number))
    // The first time it is full the reserve helps; the second time nothing does.
    await events.until(() => events.numbers.includes(number) || events.fullCount > 1)
    if (events.fullCount > 1) return number
  }
}

/** What six blocks, and the pages that are changed with them, take beside the tables. */
const ROOM_PAGES = 75

/** The pages of a database in which nothing is. */
async function emptyPages(): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), 'empty-'))
  const store = new SqliteStore({ directory })
  await store.open(new EventLog())
  await store.close()
  const database = openSqlite(join(directory, 'cinnabar.db'), { readonly: true })
  const pages = Number(database.pragma('page_count', { simple: true }))
  database.close()
  rmSync(directory, { recursive: true })
  return pages
}

describe('a database that may not grow', () => {
  let maxPages = 0
  let directory = ''
  let events = new EventLog()
  let store = new SqliteStore({ directory: '' })
  beforeAll(async () => {
    maxPages = (await emptyPages()) + ROOM_PAGES
  })
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'full-'))
    events = new EventLog()
    store = new SqliteStore({ directory, maxPages, retryMs: 1 })
    await store.open(events)
  })
  afterEach(async () => {
    await store.close()
    rmSync(directory, { recursive: true, force: true })
  })

  /** Fills it; the batch that is returned is being tried again and again. */
  async function stuck(): Promise<number> {
    for (let number = 1; ; number++) {
      store.write(oneBlock(number))
      await events.until(() => events.numbers.includes(number) || events.fullCount > 0)
      if (events.fullCount > 0) return number
    }
  }

  test('is reported once, however often it is retried, and reads are answered', async () => {
    const number = await stuck()
    for (let round = 0; round < 20; round++) await expectServed(store, 1)
    expect([events.fullCount, events.roomCount, events.failures]).toEqual([1, 0, []])
    expect(events.numbers).not.toContain(number)
  })

  test('the batch is stored as soon as there is space, then the reserve is restored', async () => {
    const number = await stuck()
    // Answered after the attempt that let go of the reserve.
    await expectServed(store, 1)
    expect(existsSync(join(directory, 'reserve'))).toBe(false)
    const other = openSqlite(join(directory, 'cinnabar.db'))
    other.prepare('delete from block where id in (1, 2)').run()
    other.close()
    await events.durable(number)
    await events.until(() => events.roomCount > 0)
    expect(existsSync(join(directory, 'reserve'))).toBe(true)
    expect([events.fullCount, events.roomCount, events.failures]).toEqual([1, 1, []])
    await expectServed(store, number)
  })

  test('a batch that removes as much as it brings finds room', async () => {
    for (let number = 1; number <= 40; number++) {
      store.write(oneBlock(number, number > 6 ? [number - 6] : []))
      await events.until(() => events.numbers.includes(number) || events.fullCount > 0)
      expect(events.fullCount, `full at block ${number}`).toBe(0)
    }
    await expectServed(store, 40)
  })

  test('it can be closed; what was not stored was never said to be', async () => {
    const number = await stuck()
    await store.close()
    expect(events.numbers).not.toContain(number)
    const again = new SqliteStore({ directory })
    expect((await again.open(new EventLog())).nextBlockId).toBe(number)
    await again.close()
  })
})

/** Whether a small disk can be mounted: Linux and root. */
function mounted(directory: string): boolean {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', directory], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

describe('a disk of 16 MiB', () => {
  test('fills, serves, takes removals, and goes on by itself when there is room', async (context) => {
    const directory = mkdtempSync(join(tmpdir(), 'small-disk-'))
    if (!mounted(directory)) {
      rmSync(directory, { recursive: true })
      context.skip('a small disk can be mounted by root on Linux only')
    }
    const store = new SqliteStore({ directory, retryMs: 1 })
    try {
      writeFileSync(join(directory, 'filler'), Buffer.alloc(8 * 1024 * 1024, 1))
      await fillAndFree(directory, store)
    } finally {
      await store.close()
      execFileSync('umount', [directory])
      rmSync(directory, { recursive: true })
    }
  })
})

async function fillAndFree(directory: string, store: SqliteStore): Promise<void> {
  const events = new EventLog()
  await store.open(events)
  expect(existsSync(join(directory, 'reserve'))).toBe(true)
  const number = await fill(store, events, 1)
  expect(number).toBeGreaterThan(10)
  // It was reported before the reserve was used.
  await eventually(() => expect(existsSync(join(directory, 'reserve'))).toBe(false))
  await expectServed(store, 1)
  expect(events.roomCount).toBe(0)

  rmSync(join(directory, 'filler'))
  await events.durable(number)
  await events.until(() => events.roomCount > 0)
  expect(existsSync(join(directory, 'reserve'))).toBe(true)

  // Full again and again: the reserve holds what frees something, and what was freed goes back to the disk.
  let first = 1
  let next = number + 1
  for (let cycle = 0; cycle < 8; cycle++) {
    const { fullCount, roomCount } = events
    for (; events.fullCount === fullCount; next++) {
      store.write(oneBlock(next))
      await events.durable(next)
      await expectServed(store, next)
    }
    const removed = Array.from({ length: next - 1 - first }, (_, index) => first + index)
    store.write(batch(next, { removed }))
    await events.durable(next)
    await events.until(() => events.roomCount > roomCount)
    expect(existsSync(join(directory, 'reserve'))).toBe(true)
    await expectServed(store, next - 1)
    first = next - 1
    next++
  }
  expect(events.failures).toEqual([])
}

describe('an error that is not want of room', () => {
  test('is reported once and ends the writing; closing still works', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'failing-'))
    const events = new EventLog()
    const store = new SqliteStore({ directory })
    await store.open(events)
    const other = openSqlite(join(directory, 'cinnabar.db'))
    other.exec('drop table gap')
    other.close()
    store.write(batch(1, { gapsRemoved: [1], blocks: [{ id: 1, frames: frames(1) }] }))
    await events.until(() => events.failures.length > 0)
    expect(events.failures[0]?.code).toBe('IO')
    expect(events.failures[0]?.message).toContain(directory)
    store.write(batch(2, { blocks: [{ id: 2, frames: frames(2) }] }))
    expect(await store.read([1, 2])).toEqual([
      { id: 1, bytes: undefined },
      { id: 2, bytes: undefined },
    ])
    await store.close()
    expect([events.numbers, events.failures.length]).toEqual([[], 1])
    rmSync(directory, { recursive: true })
  })
})
