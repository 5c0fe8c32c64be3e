/** Whatever drops values that wait in a channel, or may seem to: what of them stays, and what the log says. docs/storage.md lists it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { done, newToken, tokenSeat } from '../../support/administration.ts'
import { args, command, str, type, u32 } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import type { Seat } from '../../support/seat.ts'

const PURGED = 4
const RESTORED = 7

let producer: TestProducer
let root: Seat
beforeEach(async () => {
  producer = await TestProducer.start()
  await producer.addUser('root', { role: 'admin' })
  root = await producer.seat('root')
})
afterEach(() => producer.stop())

/** A channel of `tester` in which three values of `test.a` wait. */
async function waiting(
  ...settings: readonly (readonly [string, number, Uint8Array])[]
): Promise<{ channel: number; id: number }> {
  const seat = await producer.seat()
  const channel = await seat.defChannel(...settings)
  const id = await seat.follow('test.a', channel)
  for (const value of [1, 2, 3]) producer.emit(value)
  await producer.settle()
  return { channel, id }
}

/** What the log says of values that were dropped. */
const dropped = (): unknown[] =>
  producer.logged
    .map((line) => JSON.parse(line))
    .filter(({ msg }) => msg === 'values that waited in a channel were dropped')
    .map(({ level, tenant, user, channel, metric, values, cause }) => {
      return { level, tenant, user, channel, metric, values, cause }
    })

const ofTester = { level: 'warn', tenant: 'default', user: 'tester', metric: undefined, values: 3 }

async function expectKept(channel: number, id: number): Promise<void> {
  const seat = await producer.seat()
  const bindings = [{ metric: id, name: 'test.a' }]
  expect(await seat.ledger(channel)).toMatchObject({ queued: 3, dropped: { purged: 0, stopped: 0 }, bindings })
  expect(dropped()).toEqual([])
}

describe('values and bindings stay', () => {
  it('over a restored database, of which a GAP tells', async () => {
    const { channel, id } = await waiting()
    const { store } = producer
    const crash = store.crash.bind(store)
    store.crash = () => {
      const survivor = crash()
      const open = survivor.open.bind(survivor)
      survivor.open = async (events) => ({ ...(await open(events)), generation: 'restored', restored: true })
      return survivor
    }
    producer = await producer.crash()
    await expectKept(channel, id)
    const seat = await producer.seat()
    await seat.setChannel(channel)
    await seat.values(3)
    expect(await seat.gap()).toMatchObject({ reason: RESTORED, count: 0 })
  })

  it('on another machine: what its own host does not have is absent', async () => {
    const seat = await producer.seat()
    const channel = await seat.defChannel()
    const id = await seat.collect('host.cpu.number', args(['host', type.string, str('n1')]))
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    const ledger = async () => (await producer.seat()).ledger(channel)
    const { queued } = await ledger()
    await producer.settle()
    producer = await producer.takeOver('n2')
    expect(await ledger()).toMatchObject({ queued, dropped: { purged: 0 }, bindings: [{ metric: id }] })
    expect(queued).toBeGreaterThan(0)
    expect(dropped()).toEqual([])
  })

  it('over a start with smaller limits: they are for new channels, and new values', async () => {
    const { channel, id } = await waiting()
    const few = {
      connections: 0,
      channels: 1,
      instances: 1,
      controlsPerMinute: 0,
      auditBytesPerDay: 0,
      dialsPerMinute: 0,
      historyBytes: 0,
      historySeries: 0,
    }
    producer.config = {
      quota: { ...few, valuesPerSecond: 0, queuedBytes: 1 },
      limits: { channelsPerIdentity: 1, instancesPerIdentity: 1, patternsPerIdentity: 0 },
      channels: { maxBytes: 1, maxAgeMs: 1_000, expireMs: 1_000 },
    }
    producer = await producer.restart()
    producer.clock.advance(2_000)
    await expectKept(channel, id)
  })

  it('when the credential ends that they were bound with', async () => {
    const { channel, id } = await waiting()
    const { token, hash } = newToken()
    const number = await done(root, 'token.add', { user: 'tester', hash })
    const session = await tokenSeat(producer, token)
    await session.setChannel(channel)
    await session.values(3)
    await done(root, 'token.revoke', { token: number })
    producer.clock.advance(1_000)
    await session.closed()
    await expectKept(channel, id)
  })
})

describe('values go, and the log says how many', () => {
  it('with a channel that nobody has used for longer than `expire_ms`, over a time when the server was down', async () => {
    const { channel } = await waiting(['expire_ms', type.uint32, u32(10_000)])
    producer = await producer.restart(20_000)
    producer.clock.advance(2_000)
    expect(dropped()).toEqual([{ ...ofTester, channel, cause: 'channel expired' }])
  })

  it('with their user', async () => {
    const { channel } = await waiting()
    await done(root, 'user.remove', { user: 'tester' })
    expect(dropped()).toEqual([{ ...ofTester, channel, cause: 'user removed' }])
  })

  it('with a channel that an admin deletes', async () => {
    const { channel } = await waiting()
    await done(root, 'channel.delete', { channel })
    expect(dropped()).toEqual([{ ...ofTester, channel, cause: 'channel deleted by an admin' }])
  })

  it('by `channel.purge` of an admin, and of their owner, which is no warning', async () => {
    const { channel, id } = await waiting()
    await done(root, 'channel.purge', { channel })
    producer.emit(4)
    const seat = await producer.seat()
    await done(seat, 'channel.purge', { channel })
    await done(seat, 'channel.purge', { channel })
    expect(dropped()).toEqual([
      { ...ofTester, channel, cause: 'purged by an admin' },
      { ...ofTester, level: 'info', values: 1, channel, cause: 'purged by its owner' },
    ])
    expect(await seat.ledger(channel)).toMatchObject({ dropped: { purged: 4 }, bindings: [{ metric: id }] })
    await seat.setChannel(channel)
    expect(await seat.gap()).toMatchObject({ reason: PURGED, count: 4 })
  })

  it('with a channel whose user is not in the store', async () => {
    const { channel } = await waiting()
    const { accounts, journal } = producer.server.parts.producer
    const user = accounts.find('default', 'tester')
    journal.change({ remove: 'user', id: user?.id ?? 0 })
    await journal.whenStored()
    producer = await producer.crash()
    const lines = producer.logged.map((line) => JSON.parse(line))
    const message = 'a channel was removed: its user is not in the database'
    expect(lines.filter(({ msg }) => msg === message)).toMatchObject([
      { level: 'warn', channel, user: user?.id, values: 3 },
    ])
  })
})

describe('what a consumer ends itself is not in the log', () => {
  it.each([
    ['STOP', (seat: Seat, channel: number, id: number) => seat.ok((seq) => command.stop(seq, id, channel))],
    ['DEL_CHANNEL', (seat: Seat, channel: number) => seat.ok((seq) => command.delChannel(seq, channel))],
  ])('by %s', async (_, end) => {
    const { channel, id } = await waiting()
    await end(await producer.seat(), channel, id)
    expect(dropped()).toEqual([])
  })
})
