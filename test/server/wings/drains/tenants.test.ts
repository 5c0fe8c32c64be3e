/** One table for all tenants: whose values are whose, who comes and goes, and what one tenant costs the others. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { DrainTable } from '../../../../server/wings/drains/config.ts'
import { done } from '../../../support/administration.ts'
import { command } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { EPOCH, TestProducer } from '../../../support/producer.ts'
import { decoded } from '../../../support/records.ts'
import type { Seat } from '../../../support/seat.ts'
import { PushSensor } from '../../../support/test-sensor.ts'
import { FakeDestination, reload, samplesIn, tableTo } from './fake-destination.ts'

let destination: FakeDestination
let producer: TestProducer | undefined
let feeds: Map<string, PushSensor>
beforeEach(async () => {
  destination = new FakeDestination()
  await destination.open()
  feeds = new Map()
})
afterEach(async () => {
  await producer?.stop()
  await destination.close()
})

const tableOf = (more: Partial<DrainTable> = {}): DrainTable => {
  return tableTo(destination.port, { tenant: '*', tenantLabel: 'tenant', ...more })
}

/** A server with the tenants `default` and `a`, and feeds of those and of `b`. */
async function start(more: Partial<DrainTable> = {}): Promise<Seat> {
  producer = await TestProducer.start({
    config: { drain: [tableOf(more)] },
    sensors: (hub) => {
      for (const tenant of ['a', 'b']) feeds.set(tenant, new PushSensor(hub, 'test.', { tenant }))
    },
  })
  await producer.addUser('root', { role: 'admin' })
  await producer.addUser('somebody', { tenant: 'a' })
  feeds.set('default', producer.push)
  return producer.seat('root')
}

function push(tenant: string, name: string, value: number, ms = 0): void {
  feeds.get(tenant)?.push(`test.${name}`, { type: BasicType.DOUBLE, value }, EPOCH + ms * 1_000, 'h')
}

/** Time goes on until it holds; the destination answers in real time. */
async function until(holds: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    producer?.clock.advance(500)
    await producer?.settle()
    await holds()
  })
}

/** Time goes on as long as a sweep needs to see which tenants there are. */
async function sweep(): Promise<void> {
  for (let times = 0; times < 3; times++) {
    producer?.clock.advance(1_000)
    await producer?.settle()
  }
}

/** By tenant, `drain:d` and its channel. */
async function channels(seat: Seat): Promise<Record<string, Record<string, number>>> {
  const all = decoded(await seat.query('producer.channels')) as { name: string; identity: string }[]
  const ours = all.filter(({ name }) => name === 'drain:d')
  return Object.fromEntries(ours.map((channel) => [channel.identity, channel])) as never
}

interface Status {
  readonly name: string
  readonly state: string
  readonly counters: Readonly<Record<string, number>>
}

async function statuses(seat: Seat): Promise<Status[]> {
  const sensors = decoded(await seat.query('producer.sensors')) as Status[]
  return sensors.filter(({ name }) => name.startsWith('drain/'))
}

const sorted = (): string[] => [...new Set(destination.samples)].sort()

it('the values of each tenant are delivered with its name, from a channel of its own', async () => {
  const seat = await start()
  await sweep()
  push('default', 'x', 1)
  push('a', 'x', 2)
  await until(() => expect(sorted()).toEqual(['test_x{host=h,tenant=a} 2 0', 'test_x{host=h,tenant=default} 1 0']))
  await until(async () => {
    expect(await channels(seat)).toMatchObject({ 'drain:d': { committed: 1 }, 'a/drain:d': { committed: 1 } })
  })
  expect((await statuses(seat)).map(({ name }) => name)).toEqual(['drain/d/a', 'drain/d/default'])
  const mine = await statuses(await producer!.seat('somebody', 'a'))
  expect(mine.map(({ name }) => name)).toEqual(['drain/d/a'])
})

it('a tenant that comes is delivered from then on, and one that goes takes its drain along', async () => {
  const seat = await start()
  await done(seat, 'tenant.add', { tenant: 'b' })
  await sweep()
  push('b', 'x', 3)
  await until(() => expect(destination.samples).toContain('test_x{host=h,tenant=b} 3 0'))
  await done(seat, 'user.remove', { tenant: 'b', user: 'drain:d' })
  await sweep()
  await done(seat, 'tenant.remove', { tenant: 'b' })
  await sweep()
  expect((await statuses(seat)).map(({ name }) => name)).toEqual(['drain/d/a', 'drain/d/default'])
  expect(Object.keys(await channels(seat)).sort()).toEqual(['a/drain:d', 'drain:d'])
})

it('what a destination does not take of one tenant holds up no other, and is lost by that one alone', async () => {
  destination.answer = (_names, body) => ({
    status: samplesIn(body).some((sample) => sample.includes('tenant=a')) ? 503 : 204,
  })
  const seat = await start({ batchSize: 1 })
  await sweep()
  const { registry } = producer!.server.parts.producer
  const channel = [...registry.all()].find(({ row, owner }) => row.name === 'drain:d' && owner.tenant === 'a')!
  registry.configure(channel, { ...channel.row, maxBytes: 4_096, windowBytes: 4_096 })
  for (let value = 0; value < 500; value++) push('a', 'flood', value, value)
  push('default', 'x', 1)
  await until(async () => expect((await channels(seat))['drain:d']).toMatchObject({ accepted: 1, committed: 1 }))
  const now = await channels(seat)
  expect(now['a/drain:d']).toMatchObject({ committed: 0 })
  expect(now['drain:d']).toMatchObject({ dropped: { overflow: 0 } })
  expect(channel.queue.counts.dropped.overflow).toBeGreaterThan(0)
  expect(Object.fromEntries((await statuses(seat)).map(({ name, state }) => [name, state]))).toEqual({
    'drain/d/a': 'failed',
    'drain/d/default': 'sending',
  })
})

it("the server's own metrics are delivered once, as those of the tenant `default`", async () => {
  const seat = await start({ metrics: ['host.load.one', 'test.*'] })
  await sweep()
  push('a', 'x', 1)
  await until(() => expect(destination.samples).toContain('test_x{host=h,tenant=a} 1 0'))
  await until(() => expect(sorted().some((sample) => sample.startsWith('host_load_one'))).toBe(true))
  await until(async () => {
    const of = (await statuses(seat)).find(({ name }) => name === 'drain/d/a')
    expect(of?.counters['leftOut']).toBeGreaterThan(0)
  })
  const whose = sorted().filter((sample) => sample.startsWith('host_load_one'))
  expect(whose.filter((sample) => !sample.includes('tenant=default'))).toEqual([])
})

it("a tenant's metric is its own, although a plug-in of all tenants has its family", async () => {
  const seat = await start()
  new PushSensor(producer!.server.parts.producer.hub, 'test.', 'producer')
  await sweep()
  push('a', 'x', 2)
  await until(() => expect(sorted()).toEqual(['test_x{host=h,tenant=a} 2 0']))
  expect((await statuses(seat)).find(({ name }) => name === 'drain/d/a')?.counters['leftOut']).toBe(0)
})

it('the channel of a drain counts for the quota of its tenant, which does not keep the operator from making it', async () => {
  const seat = await start()
  await done(seat, 'tenant.add', { tenant: 'b', channels: 1n })
  await producer!.addUser('somebody', { tenant: 'b' })
  const other = await producer!.seat('somebody', 'b')
  await other.ok((seq) => command.defChannel(seq))
  await sweep()
  push('b', 'x', 1)
  await until(() => expect(sorted()).toEqual(['test_x{host=h,tenant=b} 1 0']))
  const tenants: { tenant: string; used: { channels: number } }[] = await done(seat, 'tenant.list')
  expect(tenants.find(({ tenant }) => tenant === 'b')?.used.channels).toBe(2)
})

it('a reload without the table ends the drains of all tenants', async () => {
  const seat = await start()
  await sweep()
  reload(producer, [])
  await producer?.settle()
  push('a', 'x', 1)
  push('default', 'x', 2)
  await sweep()
  expect(destination.samples).toEqual([])
  expect(await channels(seat)).toMatchObject({ 'a/drain:d': { accepted: 0 }, 'drain:d': { accepted: 0 } })
  expect(await statuses(seat)).toEqual([])
  const warned = producer?.logged.join() ?? ''
  expect(warned).toContain("cinnabar user remove 'a/drain:d'")
  expect(warned).toContain("cinnabar user remove 'default/drain:d'")
})
