import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Database } from 'better-sqlite3'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { BlockTables } from '../../../../storage/sqlite/blocks.ts'
import { openDatabase } from '../../../../storage/sqlite/database.ts'
import { openSqlite } from '../../../../storage/sqlite/driver.ts'
import { codeOf } from '../../../../storage/sqlite/errors.ts'
import type { SqliteStore } from '../../../../storage/sqlite/store.ts'
import { BLOCK_WIDTH, StorageError } from '../../../../storage/store.ts'
import { batch, EventLog, frames, type TestBlock } from '../../../contracts/store-batch.ts'
import { times } from '../../../support/long.ts'
import { threadlessStore } from '../../../support/threadless-store.ts'

const PAGE = 16_384
/** Five pages of frames that hold one byte only, so that they are found in the file. */
const blocks: readonly TestBlock[] = Array.from({ length: 12 }, (_, index) => ({
  id: index + 1,
  channel: (index % 3) + 1,
  frames: new Uint8Array(5 * PAGE).fill(200 + index),
}))
const ids = blocks.map(({ id }) => id)

/** What is as it was written; each test has a copy of its own. */
let whole = ''
let directory = ''
let path = ''
beforeAll(async () => {
  whole = mkdtempSync(join(tmpdir(), 'damage-'))
  directory = whole
  const { store } = await opened()
  for (const block of blocks) {
    const rows = batch(block.id, { blocks: [{ ...block, frames: new Uint8Array() }], settled: [] }).blocks
    rows[6] = block.frames.length
    store.write({ ...batch(block.id), data: block.frames.slice().buffer, blocks: rows })
    await logs.at(-1)?.durable(block.id)
  }
  await store.close()
})
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'damage-'))
  path = join(directory, 'cinnabar.db')
  cpSync(whole, directory, { recursive: true })
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))
afterAll(() => rmSync(whole, { recursive: true, force: true }))

const logs: EventLog[] = []
async function opened(): Promise<{ store: SqliteStore; events: EventLog; listed: number[] }> {
  const events = new EventLog()
  logs.push(events)
  const store = threadlessStore({ directory })
  const recovered = await store.open(events)
  const listed = [...recovered.blocks].filter((_, index) => index % BLOCK_WIDTH === 0)
  return { store, events, listed: listed.sort((a, b) => a - b) }
}

/** Where in the file a page begins that is full of the frames of a block. */
function pageOf(id: number): number {
  const file = readFileSync(path)
  const run = Buffer.alloc(PAGE - 4, 199 + id)
  const at = file.indexOf(run)
  expect(at).toBeGreaterThan(0)
  return at - (at % PAGE)
}

function damage(change: (file: Buffer) => void): void {
  const file = readFileSync(path)
  change(file)
  writeFileSync(path, file)
}

async function unreadable(store: SqliteStore): Promise<number[]> {
  const found = await store.read(ids)
  for (const { id, bytes } of found) {
    if (bytes !== undefined) expect(Buffer.compare(bytes, blocks[id - 1]!.frames)).toBe(0)
  }
  return found.filter(({ bytes }) => bytes === undefined).map(({ id }) => id)
}

test('one flipped bit of the frames costs that block and no other', async () => {
  const at = pageOf(5)
  damage((file) => {
    file[at + 1000]! ^= 1
  })
  const first = await opened()
  expect(first.listed).toEqual(ids)
  expect(await unreadable(first.store)).toEqual([5])
  await first.store.close()
  const again = await opened()
  expect(again.listed).toEqual(ids.filter((id) => id !== 5))
  expect(await unreadable(again.store)).toEqual([5])
  await again.store.close()
})

test('a damaged row is kept for examination, also when its block is removed', async () => {
  const at = pageOf(5)
  damage((file) => {
    file[at + 1000]! ^= 1
  })
  const { store, events } = await opened()
  await store.read([5])
  store.write(batch(1, { removed: [5], moved: [[5, 9, 9]], settled: [[5, frames(1, 1)]] }))
  await events.durable(1)
  await store.close()
  const look = openSqlite(path, { readonly: true })
  expect(look.prepare('select id, reason from damaged').all()).toEqual([{ id: 5, reason: 'checksum' }])
  expect(look.prepare('select lane, length(data) as length from block where id = 5').all()).toEqual([
    { lane: 0, length: 5 * PAGE },
  ])
  expect(look.prepare('select count(*) from settled').pluck().get()).toBe(0)
  look.close()
})

test('a broken chain of pages costs that block and no other', async () => {
  const at = pageOf(7)
  damage((file) => file.writeUInt32BE(0xfffffff0, at))
  const { store, events } = await opened()
  expect(await unreadable(store)).toEqual([7])
  expect(events.failures).toEqual([])
  await store.close()
})

test('a batch that removes a block with a broken chain is stored all the same', async () => {
  const at = pageOf(7)
  damage((file) => file.writeUInt32BE(0xfffffff0, at))
  const { store, events } = await opened()
  store.write(batch(1, { removed: [6, 7], blocks: [{ id: 20, frames: frames(20) }] }))
  await events.durable(1)
  store.write(batch(2, { changes: [{ remove: 'channel', id: 1 }] }))
  await events.durable(2)
  expect(events.failures).toEqual([])
  await store.close()
  const { store: again, listed } = await opened()
  expect(listed).toEqual([2, 3, 5, 8, 9, 11, 12])
  await again.close()
})

test('a channel with a damaged block is removed all the same', async () => {
  const at = pageOf(7)
  damage((file) => file.writeUInt32BE(0xfffffff0, at))
  const { store, events } = await opened()
  store.write(batch(1, { changes: [{ remove: 'channel', id: 1 }] }))
  await events.durable(1)
  await store.close()
  const { store: again, listed } = await opened()
  expect(listed).toEqual(ids.filter((id) => id % 3 !== 1))
  await again.close()
})

test('a row that is served under a wrong id is noticed', async () => {
  const other = openSqlite(path)
  other.prepare('update block set id = 100 where id = 3').run()
  other.prepare('update block set id = 3 where id = 4').run()
  other.prepare('update block set count = 77 where id = 8').run()
  other.close()
  const { store } = await opened()
  const found = await store.read([3, 4, 8, 100])
  expect(found.map(({ bytes }) => bytes)).toEqual([undefined, undefined, undefined, undefined])
  await store.close()
})

test('a flipped bit anywhere never gives wrong frames, and never an error without a name', () => {
  const whole = readFileSync(path)
  let seed = 20_251
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((seed / 2 ** 32) * below)
  }
  const rounds = times({ short: 100, long: 300 })
  let served = 0
  for (let round = 0; round < rounds; round++) {
    const file = Buffer.from(whole)
    // Every other one into the first bytes of a page, where the structure of the tree is.
    const page = random(whole.length / PAGE)
    const at = page * PAGE + random(round % 2 === 0 ? PAGE : 64)
    file[at]! ^= 1 << random(8)
    const copy = mkdtempSync(join(directory, 'flip-'))
    writeFileSync(join(copy, 'cinnabar.db'), file)
    try {
      const { database, close } = openDatabase({ directory: copy, synchronous: 'normal' })
      try {
        served += servedBy(database)
      } finally {
        close()
      }
    } catch (error) {
      const named = error instanceof StorageError || codeOf(error).startsWith('SQLITE_')
      if (!named) throw error
    }
    rmSync(copy, { recursive: true })
  }
  expect(served).toBeGreaterThan(rounds * blocks.length * 0.9)
})

function servedBy(database: Database): number {
  const table = new BlockTables(database)
  table.directory()
  let served = 0
  for (const { id, frames } of blocks) {
    const found = table.read(id)
    if (found === undefined) continue
    expect(Buffer.compare(found, frames)).toBe(0)
    served++
  }
  return served
}
