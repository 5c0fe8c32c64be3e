/** Rows changed without the store: none is trusted, every loss is reported, and no id is used twice. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openSqlite } from '../../../../storage/sqlite/driver.ts'
import type { SqliteStore } from '../../../../storage/sqlite/store.ts'
import { BLOCK_WIDTH, CHANNEL_WIDTH, type ChannelRow, GAP_WIDTH, type Recovered } from '../../../../storage/store.ts'
import { batch, EventLog, frames, gapRow, type TestBlock } from '../../../contracts/store-batch.ts'
import { forgetDirectory } from '../../../support/forget-directory.ts'
import { threadlessStore } from '../../../support/threadless-store.ts'

const SKIPPED = 2 ** 36
const ORIGIN = 2 ** 51
const NEXT = ORIGIN + 1000
const channel = (id: number): ChannelRow => ({
  id,
  user: 1,
  name: '',
  url: '',
  defined: true,
  configured: false,
  durable: true,
  window: 65_536,
  windowBytes: 8_388_608,
  maxBytes: 67_108_864,
  maxAgeMs: 604_800_000,
  expireMs: 604_800_000,
  overflow: 'drop-oldest',
  origin: ORIGIN,
  lastUsed: 0,
  paused: false,
})
/** Of channel 1: 8 values, one of them committed out of order; 2 wait; of channel 2: 4; channel 3 was never used. */
const blocks: readonly TestBlock[] = [
  { id: 11, channel: 1, first: NEXT - 9, values: 8, frames: frames(11, 80) },
  { id: 12, channel: 1, lane: 40, first: 0, values: 2, frames: frames(12, 20) },
  { id: 21, channel: 2, first: NEXT - 4, values: 4, frames: frames(21, 40) },
]
const numbers = {
  1: [1, NEXT - 9, NEXT, NEXT, 900, 888, 3, 0, 0, 0, 0, 0, 0, 1],
  2: [2, NEXT - 4, NEXT, NEXT, 500, 496, 0, 0, 0, 0, 0, 0, 0, 0],
}

/** What is as it was written; each test has a copy of its own. */
let whole = ''
let directory = ''
beforeAll(async () => {
  whole = mkdtempSync(join(tmpdir(), 'recovery-'))
  directory = whole
  const { store, events } = await open()
  store.write(
    batch(1, {
      changes: [1, 2, 3].map((id) => ({ put: 'channel', row: channel(id) })),
      blocks,
      settled: [[11, Uint8Array.of(0b100)]],
      gaps: [gapRow(13, 1, 0, NEXT - 1)],
      channels: [numbers[1], numbers[2]],
    }),
  )
  await events.durable(1)
  await store.close()
  forgetDirectory(whole)
})
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'recovery-'))
  cpSync(whole, directory, { recursive: true })
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))
afterAll(() => rmSync(whole, { recursive: true, force: true }))

async function open(): Promise<{ store: SqliteStore; events: EventLog; recovered: Recovered }> {
  const events = new EventLog()
  const store = threadlessStore({ directory, reserveBytes: 0 })
  return { store, events, recovered: await store.open(events) }
}

/** Opens what was changed; then a batch that touches everything, and opens again: nothing is found any more. */
async function reopened(...changes: string[]): Promise<Recovered> {
  const other = openSqlite(join(directory, 'cinnabar.db'))
  other.unsafeMode()
  for (const change of changes) other.exec(change)
  other.close()
  const { store, events, recovered } = await open()
  store.write(batch(1))
  await events.durable(1)
  await store.close()
  const again = await open()
  expect(again.recovered.warnings).toBeUndefined()
  expect(again.recovered.numbers).toEqual(recovered.numbers)
  again.store.write(
    batch(1, {
      moved: [[12, 0, NEXT + 1]],
      settled: [[21, Uint8Array.of(1)]],
      removed: [11],
      gapsRemoved: [13],
      channels: [numbers[1], numbers[2]],
    }),
  )
  await again.events.durable(1)
  again.store.write(batch(2, { changes: [1, 2, 3].map((id) => ({ remove: 'channel', id })) }))
  await again.events.durable(2)
  expect(again.events.failures).toEqual([])
  await again.store.close()
  return recovered
}

function rowsOf(rows: Float64Array, width: number): number[][] {
  return Array.from({ length: rows.length / width }, (_, row) => [...rows.subarray(row * width, (row + 1) * width)])
}

function numbersOf(recovered: Recovered, id: number): number[] | undefined {
  return rowsOf(recovered.numbers, CHANNEL_WIDTH).find(([one]) => one === id)
}

function blockIds(recovered: Recovered): number[] {
  return rowsOf(recovered.blocks, BLOCK_WIDTH).map(([id]) => id as number)
}

test('what nobody has changed is as it was, with no warning and no row for a channel that was never used', async () => {
  const recovered = await reopened()
  expect(recovered.warnings).toBeUndefined()
  expect(rowsOf(recovered.numbers, CHANNEL_WIDTH)).toEqual([numbers[1], numbers[2]])
  expect(blockIds(recovered)).toEqual([11, 12, 21])
})

describe('numbers that do not match', () => {
  const ways: [string, string, number][] = [
    ['next is lower', 'update numbers set next = next - 512 where channel = 1', NEXT],
    ['next and reserved are lower', 'update numbers set next = next - 512, reserved = next where channel = 1', NEXT],
    ['next is beyond all bounds', 'update numbers set next = next | 1 << 52 where channel = 1', NEXT],
    ['the ledger is another', 'update numbers set accepted = accepted + 1024 where channel = 1', NEXT],
    ['the row is gone', 'delete from numbers where channel = 1', NEXT],
    ['the row is that of another channel', 'update numbers set channel = 5 where channel = 1', NEXT],
  ]
  test.each(ways)('skip ids, balance and are reported: %s', async (_, change, next) => {
    const recovered = await reopened(change)
    const [, , , , accepted, ...settled] = numbersOf(recovered, 1) as number[]
    expect(numbersOf(recovered, 1)?.slice(2, 4)).toEqual([next, next + SKIPPED])
    // Seven of the first block, two that wait.
    expect([accepted, ...settled]).toEqual([9, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    expect(numbersOf(recovered, 2)).toEqual(numbers[2])
    expect(recovered.warnings?.join()).toContain('of channels do not match their checksums (1: 1)')
  })

  test('of a channel without values go on from what the row itself says', async () => {
    const low = ORIGIN + 7
    await reopened()
    const other = openSqlite(join(directory, 'cinnabar.db'))
    expect(other.prepare('select count(*) from numbers').pluck().get()).toBe(0)
    other.close()
    rmSync(directory, { recursive: true })
    const { store, events } = await open()
    const empty = [3, NEXT, NEXT, NEXT + 99, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0]
    store.write(batch(1, { changes: [{ put: 'channel', row: channel(3) }], channels: [empty] }))
    await events.durable(1)
    await store.close()
    const recovered = await reopened(`update numbers set next = ${low} where channel = 3`)
    expect(numbersOf(recovered, 3)?.slice(2, 4)).toEqual([NEXT + 99, NEXT + 99 + SKIPPED])
  })

  test('of a channel that was never used are missing: ids are skipped', async () => {
    const recovered = await reopened('delete from numbers where channel = 3')
    expect(numbersOf(recovered, 3)?.slice(2, 4)).toEqual([ORIGIN, ORIGIN + SKIPPED])
  })
})

describe('a block whose place does not match', () => {
  const columns = ['channel', 'lane', 'first', 'count', 'stamp', '"from"', '"to"', 'metric']
  test.each(columns)('is set aside, and the ledger still shows it: %s', async (column) => {
    const recovered = await reopened(`update block set ${column} = ${column} + 1 where id = 11`)
    expect(blockIds(recovered)).toEqual([12, 21])
    expect(numbersOf(recovered, 1)).toEqual(numbers[1])
    expect(recovered.warnings?.join()).toContain('blocks do not match their checksums (1: 11)')
    const look = openSqlite(join(directory, 'cinnabar.db'), { readonly: true })
    expect(look.prepare('select * from damaged').all()).toEqual([{ id: 11, reason: 'checksum' }])
    look.close()
  })

  test('that is moved keeps being noticed', async () => {
    const { store, events } = await open()
    const other = openSqlite(join(directory, 'cinnabar.db'))
    other.exec('update block set metric = 8 where id = 12')
    other.close()
    store.write(batch(1, { moved: [[12, 0, NEXT]] }))
    await events.durable(1)
    expect(await store.read([12])).toEqual([{ id: 12, bytes: undefined }])
    await store.close()
  })
})

/** Changes rows while SQLite does not know of an index. */
function unseen(index: string, change: string): string[] {
  return [
    `create temp table hidden as select * from sqlite_schema where name = '${index}'`,
    'pragma writable_schema = on',
    `delete from sqlite_schema where name = '${index}'`,
    'pragma writable_schema = reset',
    change,
    'pragma writable_schema = on',
    'insert into sqlite_schema select * from hidden',
    'pragma writable_schema = reset',
  ]
}

describe('an index that is not what its table says', () => {
  test('is rebuilt if the table is sound', async () => {
    const recovered = await reopened(
      'update block set first = first + 1 where id = 21',
      ...unseen('block_order', 'update block set first = first - 1 where id = 21'),
    )
    expect(blockIds(recovered)).toEqual([11, 12, 21])
    expect(recovered.warnings).toEqual(['the index of the table block was damaged and has been rebuilt'])
  })

  test('does not hide a row that is wrong', async () => {
    const recovered = await reopened(...unseen('block_order', 'update block set first = first - 1 where id = 21'))
    expect(blockIds(recovered)).toEqual([11, 12])
  })

  test('that has lost a row is rebuilt', async () => {
    const recovered = await reopened(
      'create temp table one as select * from block where id = 21',
      'delete from block where id = 21',
      ...unseen('block_order', 'insert into block select * from one'),
    )
    expect(blockIds(recovered)).toEqual([11, 12, 21])
  })

  test('names the channel of a missing GAP', async () => {
    const recovered = await reopened(...unseen('gap_order', 'delete from gap'))
    expect(numbersOf(recovered, 1)).toEqual(numbers[1].with(3, NEXT + 1))
    expect(numbersOf(recovered, 2)).toEqual(numbers[2])
  })

  test('names the channel of the GAP', async () => {
    const recovered = await reopened(...unseen('gap_order', 'update gap set channel = 9'))
    expect(recovered.gaps.length).toBe(0)
    expect(numbersOf(recovered, 1)?.[3]).toBe(NEXT + 1)
    expect(numbersOf(recovered, 2)).toEqual(numbers[2])
  })
})

test.each(['lane', 'transaction_id', 'count', 'reason', 'metric', '"from"', '"to"'])(
  'a GAP that does not match is not reported, but its channel reports possible loss: %s',
  async (column) => {
    const recovered = await reopened(`update gap set ${column} = ${column} + 1`)
    expect(rowsOf(recovered.gaps, GAP_WIDTH)).toEqual([])
    expect(numbersOf(recovered, 1)).toEqual(numbers[1].with(3, NEXT + 1))
    expect(numbersOf(recovered, 2)).toEqual(numbers[2])
    expect(recovered.warnings?.join()).toContain('GAPs do not match their checksums (1: 13)')
  },
)

test.each(["bits = x'01'", "bits = x'ff'", 'block = 22', 'checksum = null'])(
  'a bitmap that does not match is dropped: its values come again, and the ledger knows: %s',
  async (change) => {
    const recovered = await reopened(`update settled set ${change}`)
    expect(recovered.settled.size).toBe(0)
    expect(numbersOf(recovered, 1)).toEqual(numbers[1].with(3, NEXT + 1).with(5, 887))
    expect(numbersOf(recovered, 2)).toEqual(numbers[2])
  },
)
