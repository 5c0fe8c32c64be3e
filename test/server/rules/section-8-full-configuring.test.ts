/** Section 8, Full disk and Configuring: what goes on without room, and what a consumer may set. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { args, command, str, type, u32, u64 } from '../../support/bytes.ts'
import { EPOCH, TestProducer } from '../../support/producer.ts'
import { balance, decoded } from '../../support/records.ts'
import { atH1, numberOf, type Seat } from '../../support/seat.ts'

const INVALID_ARGUMENT = 6
const NO_SUCH_CHANNEL = 9
const QUOTA_EXCEEDED = 16
const STORAGE_FULL = 17
const FULL = 6
const CHANNEL_DELETED = 5

let producer: TestProducer
let seat: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  seat = await producer.seat()
})
afterEach(async () => {
  producer.store.full = false
  await producer.stop()
})

describe('Full disk', () => {
  /** The disk is full, and the producer has found out. */
  async function fill(): Promise<void> {
    await producer.settle()
    producer.store.full = true
    producer.emit(1000)
    await producer.settle()
  }

  it('values that arrive at a durable channel are dropped; what was sent keeps its ids and can be committed', async () => {
    await seat.follow('test.a')
    producer.emit(1)
    const first = await seat.value()
    await fill()
    producer.emit(1001)
    producer.emit(1002)
    await producer.settle()
    const values = seat.rest().flatMap((message) => (message.kind === 'value' ? [message] : []))
    const held = values.find((value) => numberOf(value) === 1000)
    expect(values.map(numberOf).filter((value) => value > 1000)).toEqual([])
    expect(await seat.ledger()).toMatchObject({ dropped: { full: 2 } })
    // Read and in force at once; answered when it is stored.
    const seq = seat.send((next) => command.commit(next, first.transaction))
    await producer.settle()
    expect(await seat.ledger()).toMatchObject({ committed: 1 })
    expect(balance(await seat.ledger())).toBe(0)
    producer.store.full = false
    expect((await seat.response(seq)).status).toBe(0)
    expect(held?.transaction ?? first.transaction + 1).toBe(first.transaction + 1)
  })

  it('the loss is reported by GAP 6, which stays in memory until there is room, and then survives', async () => {
    const id = await seat.follow('test.a')
    await fill()
    producer.emit(1001)
    producer.emit(1002)
    await producer.settle()
    producer.store.full = false
    await producer.settle()
    const gap = await seat.gap()
    expect(gap).toMatchObject({ reason: FULL, count: 2, metric: id, from: EPOCH + 1001, to: EPOCH + 1002 })
    producer = await producer.crash()
    const next = await producer.seat()
    await next.setChannel(seat.channel)
    expect((await next.gap()).bytes).toEqual(gap.bytes)
    expect(await next.ledger()).toMatchObject({ dropped: { full: 2 } })
  })

  it('SUBSCRIBE, BUFFER, DEF_CHANNEL and EXECUTE are STORAGE_FULL; service resumes by itself', async () => {
    const id = await seat.collect('test.b', atH1)
    await seat.follow('test.a')
    await fill()
    const list = args(['channel', type.uint32, u32(0)])
    const refused = [
      (seq: number) => command.subscribe(seq, id),
      (seq: number) => command.buffer(seq, id),
      (seq: number) => command.defChannel(seq),
      (seq: number) => command.execute(seq, 'channel.configure', list),
    ]
    for (const make of refused) expect((await seat.ask(make)).status).toBe(STORAGE_FULL)
    producer.store.full = false
    await producer.settle()
    for (const make of refused) expect((await seat.ask(make)).status).toBe(0)
    producer.emit(2, 'test.b')
    expect(numberOf(await seat.value())).toBeGreaterThan(0)
  })

  describe('an admin', () => {
    /** Controls that help against a full disk, with arguments that they accept. */
    const remedies = (channel: number) =>
      [
        ['tenant.set', ['tenant', type.string, str('default')], ['queued_bytes', type.uint64, u64(1_000)]],
        ['token.revoke', ['token', type.uint32, u32(1)]],
        [
          'role.deny',
          ['role', type.string, str('operator')],
          ['command', type.string, str('COLLECT')],
          ['object', type.string, str('host.*')],
        ],
        ['channel.purge', ['channel', type.uint32, u32(channel)]],
        ['channel.delete', ['channel', type.uint32, u32(channel)]],
        ['user.remove', ['user', type.string, str('tester')]],
      ] as const

    it('runs what helps against it, from the reserve; nobody else does, and nothing else runs', async () => {
      await producer.addUser('boss', { role: 'admin' })
      await producer.addUser('ann')
      const admin = await producer.seat('boss')
      const consumer = await producer.seat('ann')
      const channel = await seat.defChannel()
      await seat.follow('test.a', channel)
      await producer.settle()
      producer.store.low = true
      for (const [control, ...list] of remedies(consumer.channel)) {
        const refused = await consumer.ask((seq) => command.execute(seq, control, args(...list)))
        expect([control, refused.status]).toEqual([control, STORAGE_FULL])
      }
      for (const [control, ...list] of remedies(channel)) {
        const { outcome } = await admin.execute(control, ...list)
        expect([control, outcome]).toEqual([control, control === 'token.revoke' ? 'failed' : 'ok'])
      }
      const other = args(['user', type.string, str('ann')], ['role', type.string, str('operator')])
      expect((await admin.ask((seq) => command.execute(seq, 'user.role', other))).status).toBe(STORAGE_FULL)
      await seat.closed()
      producer.store.low = false
      expect(
        (await admin.execute('user.role', ['user', type.string, str('ann')], ['role', type.string, str('operator')]))
          .outcome,
      ).toBe('ok')
    })
  })

  it('everything else goes on working: COLLECT, QUERY, GET, STOP, SET_CHANNEL, DEL_CHANNEL', async () => {
    const other = await seat.defChannel()
    const id = await seat.follow('test.a')
    const doomed = await seat.follow('test.b', other)
    await fill()
    expect(numberOf(await seat.query('test.a', atH1))).toBe(1000)
    const fresh = await seat.collect('test.a', atH1)
    await seat.ok((seq) => command.get(seq, fresh))
    // A repetition changes nothing, so nothing has to be stored.
    const answered = [
      (seq: number) => command.subscribe(seq, id),
      (seq: number) => command.stop(seq, doomed, other),
      (seq: number) => command.delChannel(seq, other),
    ].map((make) => seat.send(make))
    await producer.settle()
    expect(await seat.ledger(other)).toBeUndefined()
    producer.store.full = false
    for (const seq of answered) expect((await seat.response(seq)).status).toBe(0)
  })

  it('a channel with durable = false takes values all the same', async () => {
    await seat.setChannel(await seat.defChannel(['durable', type.boolean, u32(0)]))
    await seat.follow('test.a')
    const durable = await producer.seat()
    await durable.follow('test.a')
    await fill()
    producer.emit(1001)
    expect((await seat.values(2)).map(numberOf)).toEqual([1000, 1001])
    expect(decoded(await seat.query('producer.stats'))).toMatchObject({ storage: 'full' })
  })
})

describe('channel.purge and channel.delete', () => {
  const named = (channel: number) => ['channel', type.uint32, u32(channel)] as const

  it('take a channel of one’s own, and of an admin any; the audit log has whose it was', async () => {
    await producer.addUser('boss', { role: 'admin' })
    const [admin, stranger] = [await producer.seat('boss'), await producer.seat('stranger')]
    const channel = await seat.defChannel()
    await seat.hoard('test.a', channel)
    producer.emit(1)
    for (const control of ['channel.purge', 'channel.delete']) {
      const answers = []
      for (const id of [channel, 4711]) {
        const { status, detail } = await stranger.ask((seq) => command.execute(seq, control, args(named(id))))
        answers.push({ status, detail })
      }
      expect(answers[0]?.status).toBe(NO_SUCH_CHANNEL)
      expect(answers[0]).toEqual(answers[1])
    }
    const purged = await admin.execute('channel.purge', named(channel))
    expect(purged.detail).toBe(`1 values dropped from channel ${channel} of tester`)
    expect(await seat.ledger(channel)).toMatchObject({ dropped: { purged: 1 } })
    const deleted = await admin.execute('channel.delete', named(channel))
    expect(deleted).toMatchObject({ outcome: 'ok', detail: `channel ${channel} of tester deleted` })
    expect(await seat.ledger(channel)).toBeUndefined()
    const records = await producer.store.audit(0, 1_000)
    const mine = records.filter(({ object }) => object === 'channel.delete')
    expect(mine.map(({ actor, outcome, detail }) => [actor, outcome, detail]).at(-1)).toEqual([
      'boss',
      'ok',
      expect.stringContaining(`channel ${channel} of tester deleted`),
    ])
  })

  it('channel.delete ends the connection of the channel, is stored when OK is answered, and is no way to lose one’s answer', async () => {
    const channel = await seat.defChannel()
    const other = await producer.seat()
    await other.setChannel(channel)
    await seat.ok((seq) => command.execute(seq, 'channel.delete', args(named(channel))))
    expect((await other.notice()).code).toBe(CHANNEL_DELETED)
    await other.closed()
    for (const id of [0, seat.channel]) {
      const { status } = await seat.ask((seq) => command.execute(seq, 'channel.delete', args(named(id))))
      expect(status).toBe(INVALID_ARGUMENT)
    }
    producer = await producer.crash()
    expect([...producer.server.parts.producer.registry.all()].map(({ id }) => id)).not.toContain(channel)
  })
})

describe('Configuring', () => {
  const settings: readonly (readonly [string, number, Uint8Array])[] = [
    ['durable', type.boolean, u32(1)],
    ['window', type.uint32, u32(7)],
    ['window_bytes', type.uint64, u64(4096)],
    ['max_bytes', type.uint64, u64(8192)],
    ['max_age_ms', type.uint64, u64(60_000)],
    ['expire_ms', type.uint64, u64(120_000)],
    ['overflow', type.string, str('drop-newest')],
  ]
  const rowOf = (channel: number) =>
    [...producer.server.parts.producer.registry.all()].find(({ id }) => id === channel)?.row
  const asSet = {
    durable: true,
    window: 7,
    windowBytes: 4096,
    maxBytes: 8192,
    maxAgeMs: 60_000,
    expireMs: 120_000,
    overflow: 'drop-newest',
  }

  it('takes every setting, by DEF_CHANNEL and by channel.configure, and they survive a crash', async () => {
    const defined = await seat.defChannel(...settings)
    const other = await seat.defChannel()
    const result = await seat.execute('channel.configure', ['channel', type.uint32, u32(other)], ...settings)
    expect(result).toEqual({ outcome: 'ok', detail: '', value: null })
    for (const channel of [defined, other]) expect(rowOf(channel)).toMatchObject(asSet)
    producer = await producer.crash()
    for (const channel of [defined, other]) expect(rowOf(channel)).toMatchObject(asSet)
  })

  it('changes what it names and nothing else', async () => {
    const channel = await seat.defChannel(...settings)
    await seat.execute('channel.configure', ['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(9)])
    expect(rowOf(channel)).toMatchObject({ ...asSet, window: 9 })
  })

  it('the effect of channel.configure is stored when OK is answered', async () => {
    const channel = await seat.defChannel()
    const list = args(['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(3)])
    await seat.ok((seq) => command.execute(seq, 'channel.configure', list))
    producer = await producer.crash()
    expect(rowOf(channel)).toMatchObject({ window: 3 })
  })

  it('window_bytes above max_bytes is INVALID_ARGUMENT, and nothing ran', async () => {
    const channel = await seat.defChannel(...settings)
    for (const [windowBytes, maxBytes, status] of [
      [8193, 8192, INVALID_ARGUMENT],
      [8192, 8192, 0],
    ] as const) {
      const list = [
        ['window_bytes', type.uint32, u32(windowBytes)],
        ['max_bytes', type.uint32, u32(maxBytes)],
      ] as const
      expect((await seat.ask((seq) => command.defChannel(seq, '', args(...list)))).status).toBe(status)
      const all = args(['channel', type.uint32, u32(channel)], ...list)
      expect((await seat.ask((seq) => command.execute(seq, 'channel.configure', all))).status).toBe(status)
      expect(rowOf(channel)?.windowBytes).toBe(status === 0 ? windowBytes : 4096)
    }
  })

  it.each([
    ['an unknown setting', [['colour', type.string, str('red')]], INVALID_ARGUMENT],
    ['an unknown policy', [['overflow', type.string, str('drop-all')]], INVALID_ARGUMENT],
    ['a wrong type', [['window', type.string, str('7')]], INVALID_ARGUMENT],
    ['a negative number', [['window', type.int32, u32(0xffffffff)]], INVALID_ARGUMENT],
    ['a boolean that is none', [['durable', type.uint32, u32(1)]], INVALID_ARGUMENT],
    ['a window above the operator’s', [['window', type.uint32, u32(65_537)]], QUOTA_EXCEEDED],
    [
      'more than 1 MiB where durable = false',
      [
        ['durable', type.boolean, u32(0)],
        ['max_bytes', type.uint32, u32((1 << 20) + 1)],
      ],
      QUOTA_EXCEEDED,
    ],
  ] as const)('%s is refused', async (_, list, status) => {
    const before = rowOf(seat.channel)
    expect((await seat.ask((seq) => command.defChannel(seq, '', args(...list)))).status).toBe(status)
    const all = args(['channel', type.uint32, u32(0)], ...list)
    expect((await seat.ask((seq) => command.execute(seq, 'channel.configure', all))).status).toBe(status)
    expect(rowOf(seat.channel)).toEqual(before)
  })

  it('names a channel of one’s own: another’s and none are NO_SUCH_CHANNEL alike; 0 is the current one', async () => {
    const stranger = await producer.seat('stranger')
    const refusals = []
    for (const channel of [stranger.channel, 4711]) {
      const list = args(['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(1)])
      const { status, detail } = await seat.ask((seq) => command.execute(seq, 'channel.configure', list))
      refusals.push({ status, detail })
    }
    expect(refusals[0]?.status).toBe(NO_SUCH_CHANNEL)
    expect(refusals[0]).toEqual(refusals[1])
    await seat.execute('channel.configure', ['channel', type.uint32, u32(0)], ['window', type.uint32, u32(5)])
    expect(rowOf(seat.channel)).toMatchObject({ window: 5, configured: true })
    const missing = args(['window', type.uint32, u32(1)])
    expect((await seat.ask((seq) => command.execute(seq, 'channel.configure', missing))).status).toBe(INVALID_ARGUMENT)
  })

  it('a wider window lets go at once of what stood still', async () => {
    const channel = await seat.defChannel(['window', type.uint32, u32(1)])
    await seat.setChannel(channel)
    await seat.follow('test.a')
    for (const value of [1, 2, 3]) producer.emit(value)
    expect(numberOf(await seat.value())).toBe(1)
    const other = await producer.seat()
    await other.ok((seq) =>
      command.execute(
        seq,
        'channel.configure',
        args(['channel', type.uint32, u32(channel)], ['window', type.uint32, u32(10)]),
      ),
    )
    expect((await seat.values(2)).map(numberOf)).toEqual([2, 3])
  })
})
