import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { recover } from '../../../storage/sqlite/damage/recovery.ts'
import { type OpenDatabase, openDatabase } from '../../../storage/sqlite/database.ts'
import { DiskReserve } from '../../../storage/sqlite/disk-space.ts'
import { openTables, type Tables } from '../../../storage/sqlite/tables.ts'
import { Writer } from '../../../storage/sqlite/writer.ts'
import type { Recovered } from '../../../storage/store.ts'
import { batch, gapRow, numbersOf, type TestBatch, type TestBlock } from '../../contracts/store-batch.ts'

const CHANNELS = 4
const BLOCKS = 400
const PAGE_BYTES = 16_384
/** A disk with so much space has room for a piece of 16 rows. */
const LITTLE = 64 * PAGE_BYTES
const PLENTY = 2 ** 40

/** A database with its writer in this thread: what is left to remove is removed only when a test lets it. */
class Opened {
  readonly recovered: Recovered
  readonly durable: number[] = []
  free = PLENTY
  readonly writer: Writer
  readonly #opened: OpenDatabase
  readonly #tables: Tables
  #number = 0

  constructor(directory: string) {
    const opened = openDatabase({ directory, synchronous: 'normal' })
    this.#opened = opened
    this.#tables = openTables(opened.database)
    this.recovered = recover(opened, this.#tables)
    this.writer = new Writer({
      database: opened.database,
      freeBytes: () => this.free,
      tables: this.#tables,
      generation: opened.generation,
      reserve: new DiskReserve(directory, 0),
      events: {
        durable: ({ number }) => this.durable.push(number),
        full() {},
        room() {},
        failed(error) {
          throw error
        },
      },
      retryMs: 1,
      idleMs: 1e8,
      checkpointPages: 1e6,
    })
  }

  write(parts: TestBatch): void {
    this.writer.write(batch(++this.#number, parts))
  }

  count(table: string): number {
    return Number(this.#opened.database.prepare(`select count(*) from ${table}`).pluck().get())
  }

  /** Pages in the log. */
  get written(): number {
    const [, pages] =
      this.#opened.database.prepare<unknown[], number[]>('pragma wal_checkpoint(noop)').raw().get() ?? []
    return pages as number
  }

  /** Removes a row of `block`, and leaves it in the index. */
  damageIndex(block: number): void {
    const { database } = this.#opened
    const run = (sql: string): unknown => database.exec(sql)
    database.unsafeMode(true)
    run('drop table if exists hidden')
    run("create temp table hidden as select * from sqlite_schema where name = 'block_order'")
    run('pragma writable_schema = on')
    run("delete from sqlite_schema where name = 'block_order'")
    run('pragma writable_schema = reset')
    run(`delete from block where id = ${block}`)
    run('pragma writable_schema = on')
    run('insert into sqlite_schema select * from hidden')
    run('pragma writable_schema = reset')
    database.unsafeMode(false)
  }

  get isPending(): boolean {
    return this.#tables.removals.isPending
  }

  /** Lets the writer remove one piece. */
  piece(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve))
  }

  close(): void {
    this.writer.close()
    this.#opened.close()
  }
}

/** Blocks of channels in turn, as feeds leave them: no two blocks of a channel are neighbours. */
function blocks(): TestBlock[] {
  return Array.from({ length: BLOCKS * CHANNELS }, (_, index) => ({
    id: index + 1,
    channel: 1 + (index % CHANNELS),
    first: 100 + index,
    frames: new Uint8Array(3_000).fill(index),
  }))
}

const removals = Array.from({ length: CHANNELS - 1 }, (_, index) => ({ remove: 'channel', id: index + 1 }) as const)

let directory = ''
let store: Opened
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'removals-'))
  store = new Opened(directory)
  for (let at = 0; at < BLOCKS * CHANNELS; at += 100) store.write({ blocks: blocks().slice(at, at + 100) })
  const all = [1, 2, 3, 4]
  store.write({
    channels: all.map((channel) => numbersOf(channel, 100)),
    gaps: all.map((channel) => gapRow(100_000 + channel, channel)),
    changes: all.map((channel) => ({ put: 'binding', row: { channel, metric: 7, mode: 'buffer', since: 1 } })),
  })
})
afterEach(() => {
  store.close()
  rmSync(directory, { recursive: true, force: true })
})

describe('a removal that is larger than the room', () => {
  test('ends although a damaged index names blocks that are not there', async () => {
    for (let block = 1; block <= 20 * CHANNELS; block += CHANNELS) store.damageIndex(block)
    store.free = LITTLE
    store.write({ changes: [{ remove: 'channel', id: 1 }] })
    for (let pieces = 0; store.isPending && pieces < BLOCKS; pieces++) await store.piece()
    expect(store.isPending).toBe(false)
    expect(store.count('block not indexed')).toBe(BLOCKS * (CHANNELS - 1))
  })

  test('is marked in a few pages, and then removed in pieces of a few pages, between which batches are stored', async () => {
    store.free = LITTLE
    const before = store.written
    store.write({ changes: removals })
    expect(store.durable.at(-1)).toBe(18)
    expect(store.written - before).toBeLessThan(100)
    expect(store.count('block')).toBeGreaterThan(BLOCKS * (CHANNELS - 1))
    for (let pieces = 0; store.isPending; pieces++) {
      const at = store.written
      await store.piece()
      expect(store.written - at).toBeLessThan(100)
      if (pieces % 8 === 0) {
        const left = store.count('block')
        store.write({ gapsRemoved: [pieces] })
        expect(store.count('block')).toBe(left)
      }
    }
    expect(store.durable.at(-1)).toBeGreaterThan(20)
    expect(['block', 'gap', 'binding', 'removal'].map((table) => store.count(table))).toEqual([BLOCKS, 1, 1, 0])
  })

  test('is not recovered, whatever is left of it, and continues after a `kill -9`', async () => {
    store.free = LITTLE
    store.write({ changes: removals })
    await store.piece()
    expect(store.isPending).toBe(true)
    const copy = mkdtempSync(join(tmpdir(), 'removals-'))
    cpSync(directory, copy, { recursive: true })
    const next = new Opened(copy)
    const { recovered } = next
    expect(recovered.warnings).toBeUndefined()
    expect(recovered.blocks.filter((_, at) => at % 11 === 1).every((channel) => channel === 4)).toBe(true)
    expect(recovered.blocks.length / 11).toBe(BLOCKS)
    expect([recovered.gaps.length / 9, recovered.bindings.length]).toEqual([1, 1])
    expect(next.count('block')).toBeGreaterThan(BLOCKS)
    next.writer.start()
    while (next.isPending) await next.piece()
    expect([next.count('block'), next.count('removal')]).toEqual([BLOCKS, 0])
    next.close()
    rmSync(copy, { recursive: true })
  })

  test('may be of single blocks: those that were committed, purged, dropped or expired', async () => {
    store.free = LITTLE
    const removed = Array.from({ length: 1_000 }, (_, index) => index + 1)
    const before = store.written
    store.write({ removed })
    expect(store.written - before).toBeLessThan(100)
    expect(store.count('removal')).toBeGreaterThan(900)
    store.writer.close()
    const copy = mkdtempSync(join(tmpdir(), 'removals-'))
    cpSync(directory, copy, { recursive: true })
    const next = new Opened(copy)
    expect(next.recovered.blocks.length / 11).toBe(BLOCKS * CHANNELS - 1_000)
    expect(next.recovered.warnings).toBeUndefined()
    next.close()
    rmSync(copy, { recursive: true })
    store.writer.start()
    while (store.isPending) await store.piece()
    expect([store.count('block'), store.count('removal')]).toEqual([BLOCKS * CHANNELS - 1_000, 0])
  })

  test('leaves nothing to a channel that gets the same id', () => {
    store.free = LITTLE
    store.write({ changes: [{ remove: 'channel', id: 1 }] })
    expect(store.isPending).toBe(true)
    const row = {
      id: 1,
      user: 1,
      name: '',
      url: '',
      defined: true,
      configured: false,
      durable: true,
      window: 1,
      windowBytes: 1,
      maxBytes: 1,
      maxAgeMs: 1,
      expireMs: 1,
      overflow: 'drop-oldest',
      origin: 5,
      lastUsed: 0,
      paused: false,
    } as const
    store.write({ changes: [{ put: 'channel', row }], blocks: [{ id: 200_000, frames: new Uint8Array(50) }] })
    expect(store.count('block where channel = 1')).toBe(1)
    expect(store.count('removal')).toBe(0)
  })

  test('may be of the executions of a user, of old ones, and of instances', async () => {
    const execution = (user: number, key: string, at: number) =>
      ({
        put: 'execution',
        row: { user, control: 'a', key, digest: new Uint8Array(32), at, result: new Uint8Array(900) },
      }) as const
    const keys = Array.from({ length: 200 }, (_, index) => `key ${index}`)
    store.write({
      changes: [
        ...keys.flatMap((key, at) => [execution(1, key, 5_000), execution(2, key, at), execution(3, key, 5_000)]),
        ...keys.map(
          (_, id) => ({ put: 'instance', row: { id: id + 1, user: 1, metric: 'm', args: new Uint8Array() } }) as const,
        ),
      ],
    })
    store.free = LITTLE
    const before = store.written
    store.write({
      changes: [
        { remove: 'user', id: 1 },
        { remove: 'execution', before: 4_000.5 },
        ...keys.map((_, id) => ({ remove: 'instance', id: id + 1 }) as const),
      ],
    })
    expect(store.written - before).toBeLessThan(100)
    expect(store.isPending).toBe(true)
    while (store.isPending) await store.piece()
    expect(['execution', 'instance', 'removal'].map((table) => store.count(table))).toEqual([200, 0, 0])
  })
})

test('with room, a removal is part of its batch', () => {
  store.write({ changes: removals, removed: [4, 8] })
  expect(store.isPending).toBe(false)
  expect([store.count('block'), store.count('removal')]).toEqual([BLOCKS - 2, 0])
})
