/** Bound metrics whose source a start does not have, by a mistake in the configuration: bindings and values stay. */
import { afterEach, describe, expect, it, test, vi } from 'vitest'
import { parseNetwork } from '../../../server/kernel/core/address.ts'
import { isListening } from '../../../server/kernel/metrics/kinds.ts'
import type { Series } from '../../../server/kernel/metrics/metric.ts'
import type { SensorHub } from '../../../server/kernel/metrics/sensor-door.ts'
import { GmetricSensor } from '../../../server/wings/gmetric/sensor.ts'
import { done } from '../../support/administration.ts'
import { args, command, str, type } from '../../support/bytes.ts'
import { EPOCH, TestProducer, type TestProducerOptions } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { PushSensor } from '../../support/test-sensor.ts'
import { xdr } from '../wings/gmetric/fixture.ts'

const PURGED = 4
const WITHDRAWN = 4

type Configured = NonNullable<TestProducerOptions['config']>

const feed = {
  tenant: 'acme',
  allow: [parseNetwork('127.0.0.2')!],
  xml: undefined,
  xmlAllow: [],
  cluster: 'acme',
}

let producer: TestProducer | undefined
afterEach(async () => {
  await producer?.stop()
  producer = undefined
})

/** Starts the server again, with another configuration if one is given. */
async function again(now: TestProducer, config?: Configured): Promise<TestProducer> {
  await now.settle()
  if (config !== undefined) now.config = config
  const next = await now.restart()
  producer = next
  return next
}

const warned = ({ logged }: TestProducer): string[] =>
  logged.filter((line) => line.includes('values that waited in a channel were dropped'))

async function bind(seat: Seat, metric: string): Promise<{ channel: number; id: number }> {
  const channel = await seat.defChannel()
  const id = await seat.collect(metric)
  await seat.ok((seq) => command.subscribe(seq, id, channel))
  return { channel, id }
}

function send(to: TestProducer, tenant: string, value: number): void {
  const sensors = to.server.parts.hub.sensors.filter((one) => one instanceof GmetricSensor)
  const sensor = sensors.find(({ owner }) => owner !== 'producer' && owner.tenant === tenant)
  const from = tenant === 'acme' ? '127.0.0.2' : '127.0.0.1'
  sensor?.packet(xdr(0, 'uint32', 'load_one', String(value), '', 3, 60, 0), from)
}

describe('the values of a tenant of a feed, bound by an exact name', () => {
  it('wait over a start without the table of the feed, and so does the binding', async () => {
    let now = await TestProducer.start({ config: { gmetric: { feeds: [feed] } } })
    producer = now
    const bob = await now.seat('bob', 'acme')
    const { channel, id } = await bind(bob, 'gmetric.load_one')
    for (const value of [1, 2, 3]) send(now, 'acme', value)
    send(now, 'default', 9)
    const bindings = [{ metric: id, name: 'gmetric.load_one', mode: 'subscribe' }]
    const waiting = { queued: 3, dropped: { purged: 0 }, bindings }
    expect(await bob.ledger(channel)).toMatchObject(waiting)
    now = await again(now, {})
    send(now, 'default', 9)
    expect(await (await now.seat('bob', 'acme')).ledger(channel)).toMatchObject(waiting)
    expect(now.logged.filter((line) => line.includes('a metric that is bound is not there'))).toHaveLength(1)
    expect(warned(now)).toEqual([])
    now = await again(now, { gmetric: { feeds: [feed] } })
    send(now, 'acme', 4)
    const back = await now.seat('bob', 'acme')
    await back.setChannel(channel)
    const values = await back.values(4)
    expect(values.map((value) => [value.metric, decoded(value).value])).toEqual(
      [1, 2, 3, 4].map((value) => [id, value]),
    )
    for (const { transaction } of values) expect(await back.commit(transaction)).toMatchObject({ status: 0 })
    expect(await back.ledger(channel)).toMatchObject({ committed: 4, queued: 0, bindings })
  })
})

describe('what waits of a source that the next configuration leaves out', () => {
  const loopback = { host: '127.0.0.1', port: 0 }
  const feeds = [{ tenant: 'acme', allow: feed.allow }]
  const listeners = [{ key: 'mono.listen', listen: loopback, dialect: 'gist', agent: undefined }] as const
  const table = { tcp: undefined, udp: loopback, allow: [], flushMs: 10_000, keepMs: 600_000, maxMetrics: 100 }
  const cases: [source: string, metric: string, config: Configured, other: Configured][] = [
    ['gmetric', 'gmetric.a', { gmetric: { feeds: [feed] } }, {}],
    ['the hosts of gmetric', 'ganglia.host.up', { gmetric: { feeds: [feed] } }, {}],
    ['smon', 'smon.a', { smon: { feeds } }, {}],
    ['mono', 'mono.a.b', { mono: { listeners, feeds } }, { mono: { listeners } }],
    ['gmetric under another tenant', 'gmetric.a', { gmetric: { tenant: 'acme' } }, { gmetric: { tenant: 'other' } }],
    ['statsd', 'statsd.a', { statsd: [{ ...table, tenant: 'acme' }] }, {}],
  ]
  it.each(cases)('%s: stays, and goes on when it is back', async (_, metric, config, other) => {
    let now = await TestProducer.start({ config })
    producer = now
    const { channel, id } = await bind(await now.seat('bob', 'acme'), metric)
    const emit = (value: number): void => {
      const sensors = now.server.parts.hub.sensors.filter(isListening)
      const sensor = sensors.find(({ family, owner }) => {
        return owner !== 'producer' && owner.tenant === 'acme' && metric.startsWith(family)
      })
      if (sensor === undefined) throw new Error(`nobody has ${metric} of acme`)
      const labels = { name: metric, host: 'h1', index: '' }
      const series: Series = { name: metric, labels, subscriptions: [], matches: () => true }
      now.server.parts.hub.born(sensor, series)
      now.server.parts.hub.emit(series, { type: 2, value }, EPOCH + value)
    }
    for (const value of [1, 2]) emit(value)
    const waiting = { queued: 2, dropped: { purged: 0 }, bindings: [{ metric: id, name: metric }] }
    now = await again(now, other)
    expect(await (await now.seat('bob', 'acme')).ledger(channel)).toMatchObject(waiting)
    now = await again(now, config)
    emit(3)
    const back = await now.seat('bob', 'acme')
    expect(await back.ledger(channel)).toMatchObject({ ...waiting, queued: 3 })
    await back.setChannel(channel)
    const values = await back.values(3)
    expect(values.map((value) => [value.metric, decoded(value).value])).toEqual([1, 2, 3].map((value) => [id, value]))
    for (const { transaction } of values) expect(await back.commit(transaction)).toMatchObject({ status: 0 })
  })
})

/** What the tenant `north` has, as long as it is configured. */
interface North {
  isThere: boolean
  both: PushSensor | undefined
  own: PushSensor | undefined
}

/** A server whose tenants `default` and `north` have the family `both.`, and only `north` the family `north.`. */
async function withNorth(): Promise<North> {
  const north: North = { isThere: true, both: undefined, own: undefined }
  producer = await TestProducer.start({
    sensors: (hub: SensorHub) => {
      new PushSensor(hub, 'both.')
      if (!north.isThere) return
      north.both = new PushSensor(hub, 'both.', { tenant: 'north' })
      north.own = new PushSensor(hub, 'north.', { tenant: 'north' })
    },
  })
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('boss', { role: 'admin' })
  await producer.addUser('ann', { tenant: 'north', role: 'operator' })
  return north
}

test.each([
  ['a clean restart', (now: TestProducer) => now.restart()],
  ['a crash', (now: TestProducer) => now.crash()],
  ['a node with another configuration that takes over', (now: TestProducer) => now.takeOver('n2')],
])('after %s the binding of an absent metric is there, with its values', async (_, next) => {
  const north = await withNorth()
  let now = producer as TestProducer
  const { channel, id } = await bind(await now.seat('ann', 'north'), 'both.a')
  north.both?.push('both.a', { type: 2, value: 1 }, EPOCH)
  await now.settle()
  north.isThere = false
  producer = now = await next(now)
  const seat = await now.seat('ann', 'north')
  const bindings = [{ metric: id, name: 'both.a' }]
  expect(await seat.ledger(channel)).toMatchObject({ queued: 1, dropped: { purged: 0 }, bindings })
  expect(warned(now)).toEqual([])
})

describe('a right that is withdrawn while the metric is absent', () => {
  it.each([
    ['the whole metric', { object: 'both.*', where: '' }, true],
    ['others of its name', { object: 'both.*', where: 'host=h2' }, false],
    ['another metric', { object: 'both.b', where: '' }, false],
  ])('of %s: ends it only if it is its own, and the log says how many values went', async (_, rule, ends) => {
    const north = await withNorth()
    let now = producer as TestProducer
    const { channel, id } = await bind(await now.seat('ann', 'north'), 'both.a')
    for (const value of [1, 2, 3]) north.both?.push('both.a', { type: 2, value }, EPOCH + value)
    north.isThere = false
    now = await again(now)
    const seat = await now.seat('ann', 'north')
    await seat.setChannel(channel)
    await seat.values(3)
    await done(await now.seat('root'), 'role.deny', { role: 'operator', command: 'COLLECT', ...rule })
    const ledger = await seat.ledger(channel)
    if (!ends) {
      expect(ledger).toMatchObject({ in_flight: 3, dropped: { purged: 0 }, bindings: [{ metric: id }] })
      expect(warned(now)).toEqual([])
      return
    }
    expect(await seat.notice()).toMatchObject({ code: WITHDRAWN, channel })
    expect(await seat.gap()).toMatchObject({ reason: PURGED, count: 3, metric: id })
    expect(ledger).toMatchObject({ dropped: { purged: 3 }, bindings: [] })
    expect(warned(now).map((line) => JSON.parse(line))).toMatchObject([
      { level: 'warn', tenant: 'north', user: 'ann', channel, metric: 'both.a', values: 3, cause: 'right withdrawn' },
    ])
  })

  it('of one host, where it was bound for that host alone, ends it', async () => {
    const north = await withNorth()
    let now = producer as TestProducer
    const ann = await now.seat('ann', 'north')
    const channel = await ann.defChannel()
    await ann.follow('both.a', channel)
    north.both?.push('both.a', { type: 2, value: 1 }, EPOCH)
    north.isThere = false
    now = await again(now)
    const rule = { role: 'operator', command: 'COLLECT', object: 'both.*', where: 'host=h1' }
    await done(await now.seat('root'), 'role.deny', rule)
    const ledger = await (await now.seat('ann', 'north')).ledger(channel)
    expect(ledger).toMatchObject({ queued: 0, dropped: { purged: 1 }, bindings: [] })
  })

  it.each([
    ['which is absent', false],
    ['which is there', true],
  ])('by the loss of the role admin ends what only another tenant could have, %s', async (_, isThere) => {
    const north = await withNorth()
    let now = producer as TestProducer
    const boss = await now.seat('boss')
    const [foreign, own] = [await bind(boss, 'north.a'), await bind(boss, 'both.a')]
    north.own?.push('north.a', { type: 2, value: 1 }, EPOCH)
    north.isThere = isThere
    now = await again(now)
    await done(await now.seat('root'), 'user.role', { user: 'boss', role: 'consumer' })
    const ledgers = await now.seat('boss')
    expect(await ledgers.ledger(foreign.channel)).toMatchObject({ queued: 0, dropped: { purged: 1 }, bindings: [] })
    expect((await ledgers.ledger(own.channel)).bindings).toMatchObject([{ metric: own.id }])
    expect(warned(now)).toHaveLength(1)
  })

  it('by the loss of the role admin drops what waits under a pattern, though the series of the other tenant is gone', async () => {
    const north = await withNorth()
    let now = producer as TestProducer
    const { channel, id } = await bind(await now.seat('boss'), 'north.*')
    north.own?.push('north.a', { type: 2, value: 1 }, EPOCH)
    north.isThere = false
    now = await again(now)
    await done(await now.seat('root'), 'user.role', { user: 'boss', role: 'consumer' })
    const ledger = await (await now.seat('boss')).ledger(channel)
    expect(ledger).toMatchObject({ queued: 0, dropped: { purged: 1 }, bindings: [{ metric: id }] })
    expect(warned(now)).toHaveLength(1)
  })

  it('is none where an admin gets the role admin again', async () => {
    const north = await withNorth()
    let now = producer as TestProducer
    const { channel, id } = await bind(await now.seat('boss'), 'north.a')
    north.own?.push('north.a', { type: 2, value: 1 }, EPOCH)
    north.isThere = false
    now = await again(now)
    await done(await now.seat('root'), 'user.role', { user: 'boss', role: 'admin' })
    expect(await (await now.seat('boss')).ledger(channel)).toMatchObject({ queued: 1, bindings: [{ metric: id }] })
  })

  const roleOfBoss = ({ server }: TestProducer) => server.parts.producer.accounts.find('default', 'boss')?.role
  const sendRole = (root: Seat, role: string) =>
    root.send((seq) =>
      command.execute(seq, 'user.role', args(['user', type.string, str('boss')], ['role', type.string, str(role)])),
    )

  it('by the loss of the role admin is not stored before what it ends: a crash in between leaves the role', async () => {
    await withNorth()
    let now = producer as TestProducer
    const { channel, id } = await bind(await now.seat('boss'), 'north.a')
    vi.spyOn(now.server.parts.producer.rightsRevocation, 'reapply').mockReturnValue(new Promise(() => {}))
    sendRole(await now.seat('root'), 'consumer')
    await now.settle()
    expect(roleOfBoss(now)).toBe('consumer')
    producer = now = await now.crash()
    expect(roleOfBoss(now)).toBe('admin')
    expect((await (await now.seat('boss')).ledger(channel)).bindings).toMatchObject([{ metric: id }])
  })

  it.each<[string, (now: TestProducer, root: Seat) => void]>([
    ['another role', (_, root) => sendRole(root, 'operator')],
    [
      'another password',
      ({ server: { parts } }) => {
        const { accounts } = parts.producer
        const boss = accounts.find('default', 'boss')
        if (boss !== undefined) accounts.setVerifiers(boss, { bcrypt: undefined, scram: undefined })
      },
    ],
  ])('by the loss of the role admin is not stored with %s that comes meanwhile, either', async (_, change) => {
    await withNorth()
    let now = producer as TestProducer
    vi.spyOn(now.server.parts.producer.rightsRevocation, 'reapply').mockReturnValueOnce(new Promise(() => {}))
    const root = await now.seat('root')
    sendRole(root, 'consumer')
    await now.settle()
    change(now, root)
    await now.settle()
    expect(roleOfBoss(now)).not.toBe('admin')
    producer = now = await now.crash()
    expect(roleOfBoss(now)).toBe('admin')
  })
})
