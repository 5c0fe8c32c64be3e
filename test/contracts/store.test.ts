/** What every store has to do, over all of them. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  BLOCK_WIDTH,
  CHANNEL_WIDTH,
  type ChannelRow,
  GAP_WIDTH,
  type LostNameRow,
  type Recovered,
  type UserRow,
} from '../../storage/store.ts'
import { batch, directoryRow, frames, gapRow, numbersOf, type TestBlock } from './store-batch.ts'
import { implementations, type Subject } from './store-implementations.ts'

const channel: ChannelRow = {
  id: 1,
  user: 3,
  name: 'billing',
  url: 'tcp://127.0.0.1:9',
  defined: true,
  configured: false,
  durable: true,
  window: 65_536,
  windowBytes: 8_388_608,
  maxBytes: 67_108_864,
  maxAgeMs: 604_800_000,
  expireMs: 1_000.5,
  overflow: 'drop-newest',
  origin: 2 ** 52 - 1,
  lastUsed: 12.25,
  paused: true,
}
const user: UserRow = {
  id: 3,
  tenant: 'default',
  name: 'ada',
  role: 'admin',
  bcrypt: '$2b$10$abc',
  scram: { salt: frames(1, 16), iterations: 4096, storedKey: frames(2, 32), serverKey: frames(3, 32) },
  loopbackOnly: true,
  created: 1_700_000_000_123.5,
}
const instance = { id: 40, user: 3, metric: 'host.load.one', args: frames(4, 12) }
const binding = { channel: 1, metric: 40, mode: 'buffer', since: 12 } as const
const stop = { channel: 1, metric: 40, through: 2 ** 52 + 17 }
const result = { id: 50, channel: 1, user: 3, control: 'exec.restart', transaction: 0 }

describe.each(implementations)('a store ($name)', ({ make, stop: stopAll }) => {
  afterAll(stopAll)
  let subject: Subject
  beforeEach(async () => {
    subject = await make()
    await subject.open()
  })
  afterEach(() => subject.end())

  /** Opens anew and gives the directory as rows. */
  async function directory(): Promise<number[][]> {
    return rows((await subject.reopen()).blocks, BLOCK_WIDTH)
  }

  async function contentOf(...ids: number[]): Promise<(Uint8Array | undefined)[]> {
    return (await subject.store.read(ids)).map(({ bytes }) => bytes && new Uint8Array(bytes))
  }

  test('a new store is empty and has a secret of its own', async () => {
    const { secret, generation, settled, ...rest } = subject.recovered as Recovered
    const lists = {
      tenants: [],
      users: [],
      channels: [],
      lostNames: [],
      instances: [],
      bindings: [],
      upstreams: [],
      upstreamBindings: [],
      stops: [],
      results: [],
    }
    const newer = {
      rules: [],
      tokens: [],
      approvals: [],
      boards: [],
      alerts: [],
      alertGroups: [],
      ruleFiles: [],
      notifiers: [],
      notifyGroups: [],
      notifyAlerts: [],
      notifications: [],
      silences: [],
      dials: [],
      executions: [],
      fences: [],
      places: [],
      audited: undefined,
      qmfAgent: undefined,
    }
    const arrays = { numbers: new Float64Array(), blocks: new Float64Array(), gaps: new Float64Array() }
    const next = { nextBlockId: 1, nextUserId: 1, nextRule: 1, nextTokenId: 1, nextBoardId: 1 }
    expect(rest).toEqual({ ...lists, ...newer, ...arrays, ...next, restored: false, age: 0, wall: 0 })
    expect(settled.size).toBe(0)
    expect(secret.length).toBe(32)
    expect(secret.some((byte) => byte !== 0)).toBe(true)
    expect(generation).toMatch(/^[0-9a-f]{16}$/)
    const again = await subject.reopen()
    expect(new Uint8Array(again.secret)).toEqual(new Uint8Array(secret))
    expect(again.generation).toBe(generation)
  })

  test('a block is given back by id and listed in the directory', async () => {
    const block: TestBlock = { id: 9, channel: 5, lane: 2, first: 2 ** 52 + 1, values: 3, frames: frames(9) }
    await subject.write({ blocks: [block] })
    expect(await contentOf(9)).toEqual([frames(9)])
    expect(await directory()).toEqual([directoryRow(block)])
    expect(await contentOf(9)).toEqual([frames(9)])
  })

  test('onDurable names the batch; its memory may then be used again, its rows are lost at write', async () => {
    const given = batch(1, { blocks: [{ id: 1, frames: frames(1) }] })
    subject.store.write(given)
    expect(given.blocks.length).toBe(0)
    await subject.events.durable(1)
    expect(subject.events.numbers).toEqual([1])
    new Uint8Array(given.data).fill(0xee)
    expect(await contentOf(1)).toEqual([frames(1)])
  })

  test('a batch whose arrays share one buffer is taken', async () => {
    const shared = new Float64Array([7, 8])
    const given = { ...batch(1), removed: shared.subarray(0, 1), gapsRemoved: shared.subarray(1, 2) }
    subject.store.write(given)
    await subject.events.durable(1)
    expect(subject.events.failures).toEqual([])
  })

  test('a block of no bytes and a block of 300 KiB are given back', async () => {
    const large = frames(2, 300 * 1024)
    await subject.write({ blocks: [{ id: 1, frames: frames(1, 0) }] })
    subject.store.write({
      ...batch(2),
      data: large.slice().buffer,
      dataLength: large.length,
      blocks: Float64Array.from([2, 1, 0, 1, 9, 0, large.length, 1, 1, 1, 1]),
    })
    await subject.events.durable(2)
    const [none, all] = await contentOf(1, 2)
    expect(none?.length).toBe(0)
    expect(Buffer.compare(all!, large)).toBe(0)
  })

  test('how far the channel of another server was taken is stored with the values', async () => {
    const row = { name: 'default/east', generation: 'a', channel: 7, reached: 2 ** 52 }
    const other = { ...row, name: 'default/west' }
    await subject.write({ changes: [{ put: 'upstream', row: other }] })
    await subject.write({ blocks: [{ id: 1, frames: frames(1) }], changes: [{ put: 'upstream', row }] })
    const later = { ...row, generation: 'b', reached: 2 ** 52 + 1 }
    await subject.write({ changes: [{ put: 'upstream', row: later }] })
    await subject.write({ changes: [{ remove: 'upstream', name: other.name }] })
    expect((await subject.reopen()).upstreams).toEqual([later])
  })

  test('what is bound at another server is stored by its id there', async () => {
    const row = {
      upstream: 'default/east',
      generation: 'a',
      channel: 7,
      metric: 40,
      selection: '["test.a",["host","é"]]',
    }
    const [more, other] = [
      { ...row, metric: 2 ** 32 - 1 },
      { ...row, upstream: 'default/west' },
    ]
    await subject.write({ changes: [row, more, other].map((row) => ({ put: 'upstream binding', row }) as const) })
    const later = { ...row, generation: 'b', channel: 8, selection: '["test.b"]' }
    await subject.write({
      changes: [
        { remove: 'upstream binding', upstream: more.upstream, metric: more.metric },
        { put: 'upstream binding', row: later },
      ],
    })
    expect((await subject.reopen()).upstreamBindings).toEqual([later, other])
  })

  test('what brokers of QMF know the server by is stored, and replaced as a whole', async () => {
    const row = { systemId: '6f1d8c52-0000-4000-8000-000000000001', boot: 4095, banks: '{"b1":{"brokerBank":1}}' }
    await subject.write({ changes: [{ put: 'qmf agent', row }] })
    expect((await subject.reopen()).qmfAgent).toEqual(row)
    const later = { ...row, boot: 1, banks: '{}' }
    await subject.write({ changes: [{ put: 'qmf agent', row: later }] })
    expect((await subject.reopen()).qmfAgent).toEqual(later)
  })

  test('a block that is stored again under its id replaces the old one', async () => {
    await subject.write({ blocks: [{ id: 1, values: 1, frames: frames(1, 10) }] })
    const grown: TestBlock = { id: 1, values: 2, stamp: 8, frames: frames(1, 20) }
    await subject.write({ blocks: [grown] })
    expect(await contentOf(1)).toEqual([frames(1, 20)])
    expect(await directory()).toEqual([directoryRow(grown)])
  })

  test('a block that moves changes lane and first transaction id and keeps its frames', async () => {
    const block: TestBlock = { id: 1, lane: 40, first: 0, frames: frames(1) }
    await subject.write({ blocks: [block] })
    await subject.write({ moved: [[1, 0, 77]] })
    expect(await contentOf(1)).toEqual([frames(1)])
    expect(await directory()).toEqual([directoryRow({ ...block, lane: 0, first: 77 })])
  })

  test('a block may be stored and moved in one batch', async () => {
    const block: TestBlock = { id: 1, lane: 40, first: 0, frames: frames(1) }
    await subject.write({ blocks: [block], moved: [[1, 0, 77]] })
    expect(await directory()).toEqual([directoryRow({ ...block, lane: 0, first: 77 })])
  })

  test('a block that is stored and removed in one batch is not there', async () => {
    await subject.write({ blocks: [{ id: 1, frames: frames(1) }], settled: [[1, frames(2, 1)]], removed: [1] })
    expect(await contentOf(1)).toEqual([undefined])
    const recovered = await subject.reopen()
    expect([recovered.blocks.length, recovered.settled.size, recovered.nextBlockId]).toEqual([0, 0, 2])
  })

  test('a removed block is gone with what was settled of it', async () => {
    const kept: TestBlock = { id: 2, frames: frames(2) }
    await subject.write({ blocks: [{ id: 1, frames: frames(1) }, kept], settled: [[1, frames(3, 2)]] })
    await subject.write({ removed: [1] })
    expect(await contentOf(1, 2)).toEqual([undefined, frames(2)])
    const recovered = await subject.reopen()
    expect(rows(recovered.blocks, BLOCK_WIDTH)).toEqual([directoryRow(kept)])
    expect(recovered.settled.size).toBe(0)
  })

  test('to move, settle or remove what is not there changes nothing', async () => {
    await subject.write({ moved: [[7, 0, 1]], settled: [[7, frames(1, 1)]], removed: [8], gapsRemoved: [9] })
    const recovered = await subject.reopen()
    expect([recovered.blocks.length, recovered.settled.size, recovered.gaps.length]).toEqual([0, 0, 0])
  })

  test('the last bitmap of a block is the one that counts, also after the block was replaced', async () => {
    await subject.write({ blocks: [{ id: 1, frames: frames(1) }], settled: [[1, frames(5, 3)]] })
    await subject.write({ settled: [[1, frames(6, 4)]] })
    await subject.write({ blocks: [{ id: 1, frames: frames(2) }] })
    const { settled } = await subject.reopen()
    expect([...settled].map(([id, bits]) => [id, [...bits]])).toEqual([[1, [...frames(6, 4)]]])
  })

  test('the directory ascends by channel, lane, first and id', async () => {
    const at = (id: number, channel: number, lane: number, first: number): TestBlock => ({
      ...{ id, channel, lane, first, frames: frames(id) },
    })
    const sorted = [at(4, 1, 0, 5), at(2, 1, 0, 90), at(3, 1, 7, 0), at(6, 1, 7, 0), at(1, 2, 0, 1), at(5, 10, 0, 1)]
    await subject.write({ blocks: [5, 3, 1, 0, 4, 2].map((index) => sorted[index]!) })
    expect(await directory()).toEqual(sorted.map(directoryRow))
  })

  test('a read answers in the order of its ids, also beyond a megabyte, and repeats what is asked twice', async () => {
    const blocks = Array.from({ length: 24 }, (_, index) => ({ id: index + 1, frames: frames(index, 100_000) }))
    for (const block of blocks) await subject.write({ blocks: [block] })
    const ids = [...blocks.map(({ id }) => id).reverse(), 999, 1]
    const found = await subject.store.read(ids)
    expect(found.map(({ id }) => id)).toEqual(ids)
    for (const { id, bytes } of found) {
      if (id === 999) expect(bytes).toBeUndefined()
      else expect(Buffer.compare(bytes!, blocks[id - 1]!.frames)).toBe(0)
    }
    expect(await subject.store.read([])).toEqual([])
  })

  test('reads under way at once do not mix', async () => {
    await subject.write({ blocks: [1, 2, 3].map((id) => ({ id, frames: frames(id) })) })
    const answers = await Promise.all([contentOf(1, 2), contentOf(3), contentOf(2)])
    expect(answers).toEqual([[frames(1), frames(2)], [frames(3)], [frames(2)]])
  })

  test('the numbers of a channel are replaced whole', async () => {
    await subject.write({ channels: [numbersOf(9), numbersOf(2, 2 ** 52)] })
    await subject.write({ channels: [numbersOf(9, 500)] })
    expect(rows((await subject.reopen()).numbers, CHANNEL_WIDTH)).toEqual([numbersOf(2, 2 ** 52), numbersOf(9, 500)])
  })

  test('GAPs are stored, replaced, removed and come in order', async () => {
    await subject.write({ gaps: [gapRow(5, 2, 0, 9), gapRow(6, 1, 3, 0), gapRow(7, 1, 0, 50), gapRow(8, 1, 0, 40)] })
    await subject.write({ gaps: [gapRow(8, 1, 0, 60)], gapsRemoved: [6] })
    const { gaps, nextBlockId } = await subject.reopen()
    expect(rows(gaps, GAP_WIDTH)).toEqual([gapRow(7, 1, 0, 50), gapRow(8, 1, 0, 60), gapRow(5, 2, 0, 9)])
    expect(nextBlockId).toBe(9)
  })

  test('the next id stays above every block and GAP there was, also when they are gone', async () => {
    await subject.write({ blocks: [{ id: 30, frames: frames(1) }], gaps: [gapRow(31)] })
    await subject.write({ removed: [30], gapsRemoved: [31] })
    await subject.write({ blocks: [{ id: 3, frames: frames(1) }] })
    expect((await subject.reopen()).nextBlockId).toBe(32)
  })

  test('rows of every kind come back as they were', async () => {
    const bare: UserRow = { ...user, id: 4, name: 'bob', bcrypt: undefined, scram: undefined, loopbackOnly: false }
    await subject.write({
      changes: [
        { put: 'tenant', row: { name: 'default', quota: '{}' } },
        { put: 'tenant', row: { name: 'acme', quota: '{}' } },
        { put: 'tenant', row: { name: 'acme', quota: '{"channels":10}' } },
        { put: 'user', row: bare },
        { put: 'user', row: user },
        { put: 'channel', row: channel },
        { put: 'instance', row: instance },
        { put: 'binding', row: binding },
        { put: 'stop', row: stop },
        { put: 'result', row: result },
      ],
    })
    const recovered = plain(await subject.reopen())
    const tenants = [
      { name: 'acme', quota: '{"channels":10}' },
      { name: 'default', quota: '{}' },
    ]
    expect(recovered).toMatchObject({ tenants, users: plain([user, bare]), nextUserId: 5 })
    expect(recovered).toMatchObject({ channels: [channel], instances: plain([instance]), bindings: [binding] })
    expect(recovered).toMatchObject({ stops: [stop], results: [result] })
  })

  test('a row that is put again is replaced', async () => {
    await subject.write({ changes: [{ put: 'channel', row: channel }] })
    await subject.write({ changes: [{ put: 'binding', row: binding }] })
    const changed: ChannelRow = { ...channel, url: '', defined: false, durable: false, overflow: 'keep-latest' }
    const subscribed = { ...binding, mode: 'subscribe' } as const
    await subject.write({
      changes: [
        { put: 'channel', row: changed },
        { put: 'binding', row: subscribed },
        { put: 'result', row: result },
        { put: 'result', row: { ...result, transaction: 2 ** 52 } },
      ],
    })
    const { channels, bindings, results } = await subject.reopen()
    expect([channels, bindings, results]).toEqual([[changed], [subscribed], [{ ...result, transaction: 2 ** 52 }]])
  })

  test('rows are removed one by one', async () => {
    await subject.write({
      changes: [
        { put: 'user', row: user },
        { put: 'instance', row: instance },
        { put: 'binding', row: binding },
        { put: 'binding', row: { ...binding, metric: 41 } },
        { put: 'stop', row: stop },
        { put: 'result', row: result },
      ],
    })
    await subject.write({
      changes: [
        { remove: 'user', id: 3 },
        { remove: 'instance', id: 40 },
        { remove: 'binding', channel: 1, metric: 40 },
        { remove: 'stop', channel: 1, metric: 40 },
        { remove: 'result', id: 50 },
      ],
    })
    const { users, instances, bindings, stops, results } = await subject.reopen()
    expect([users, instances, stops, results]).toEqual([[], [], [], []])
    expect(bindings).toEqual([{ ...binding, metric: 41 }])
  })

  test('lost names come in the order of their loss, and go one by one or with their user', async () => {
    const lost = (of: number, name: string, reason: LostNameRow['reason'] = 'expired') => ({ user: of, name, reason })
    const puts = [lost(3, 'a'), lost(4, 'a'), lost(3, 'b'), lost(3, 'A'), lost(3, 'a', 'purged')]
    await subject.write({ changes: puts.map((row) => ({ put: 'lost name', row })) })
    expect((await subject.reopen()).lostNames).toEqual(puts.slice(1))
    await subject.write({ changes: [{ remove: 'lost name', user: 3, name: 'b' }] })
    expect((await subject.reopen()).lostNames).toEqual([puts[1], puts[3], puts[4]])
    await subject.write({ changes: [{ remove: 'user', id: 3 }] })
    expect((await subject.reopen()).lostNames).toEqual([puts[1]])
  })

  test('the id of a removed user is not given again', async () => {
    await subject.write({ changes: [{ put: 'user', row: { ...user, id: 8 } }] })
    await subject.write({ changes: [{ remove: 'user', id: 8 }] })
    expect((await subject.reopen()).nextUserId).toBe(9)
  })

  test('with a channel goes all that hangs on it, and nothing of another', async () => {
    const changes = [1, 2].flatMap(
      (id) =>
        [
          { put: 'channel', row: { ...channel, id } },
          { put: 'binding', row: { ...binding, channel: id } },
          { put: 'stop', row: { ...stop, channel: id } },
          { put: 'result', row: { ...result, id: 50 + id, channel: id } },
        ] as const,
    )
    const blocks = [1, 2].map((id) => ({ id, channel: id, frames: frames(id) }))
    const settled = [1, 2].map((id) => [id, frames(id, 1)] as const)
    const gaps = [1, 2].map((id) => gapRow(10 + id, id))
    await subject.write({ changes, blocks, settled, gaps, channels: [numbersOf(1), numbersOf(2)] })
    await subject.write({ changes: [{ remove: 'channel', id: 1 }] })
    expect(await contentOf(1, 2)).toEqual([undefined, frames(2)])
    const recovered = await subject.reopen()
    const { channels, bindings, stops, results } = recovered
    expect([channels, bindings, stops, results].map((list) => list.length)).toEqual([1, 1, 1, 1])
    expect([channels[0]?.id, bindings[0]?.channel, stops[0]?.channel, results[0]?.id]).toEqual([2, 2, 2, 52])
    expect(rows(recovered.blocks, BLOCK_WIDTH)).toEqual([directoryRow(blocks[1]!)])
    expect([...recovered.settled.keys()]).toEqual([2])
    expect(rows(recovered.gaps, GAP_WIDTH)).toEqual([gapRow(12, 2)])
    expect(rows(recovered.numbers, CHANNEL_WIDTH)).toEqual([numbersOf(2)])
  })

  test('changes are applied in order, before the rest of the batch', async () => {
    await subject.write({ blocks: [{ id: 1, frames: frames(1) }], changes: [{ put: 'channel', row: channel }] })
    await subject.write({
      changes: [
        { remove: 'channel', id: 1 },
        { put: 'channel', row: { ...channel, user: 4 } },
      ],
      blocks: [{ id: 2, frames: frames(2) }],
    })
    const { channels, blocks } = await subject.reopen()
    expect(channels).toEqual([{ ...channel, user: 4 }])
    expect(rows(blocks, BLOCK_WIDTH)).toEqual([directoryRow({ id: 2, frames: frames(2) })])
  })

  test('the clocks are those of the last batch, also with an end that was clean', async () => {
    await subject.write({ age: 1_000.5, wall: 1_700_000_000_123 })
    await subject.write({ age: 2_000.25, wall: 1_700_000_009_999, changes: [{ put: 'closed', row: {} }] })
    expect(await subject.reopen()).toMatchObject({ age: 2_000.25, wall: 1_700_000_009_999 })
  })

  test('close waits for the batch in flight', async () => {
    subject.store.write(batch(1, { blocks: [{ id: 1, frames: frames(1) }] }))
    const { events } = subject
    expect(await directory()).toHaveLength(1)
    expect(events.numbers).toEqual([1])
  })
})

function rows(numbers: Float64Array, width: number): number[][] {
  return Array.from({ length: numbers.length / width }, (_, row) => [
    ...numbers.subarray(row * width, (row + 1) * width),
  ])
}

/** Bytes of whatever class as arrays of numbers. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, item) => (ArrayBuffer.isView(item) ? [...(item as Uint8Array)] : item)))
}
