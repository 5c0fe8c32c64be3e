/**
 * A feeder and the server that leads: what is sent to one comes from the other. The feeder is real, with its database and its
 * sockets, and so is the connection; the server that leads has a store in memory and a false clock.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join as pathOf } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { connectToFeeder, feedStreamOf } from '../../../server/cluster/feed-stream.ts'
import { NodeListener } from '../../../server/cluster/node-listener.ts'
import type { Address } from '../../../server/kernel/core/address.ts'
import { systemClock } from '../../../server/kernel/core/clock.ts'
import { createLogger } from '../../../server/kernel/core/log.ts'
import { RareWarnings } from '../../../server/kernel/core/rare-warnings.ts'
import { type Reading, readAll } from '../../../server/kernel/metrics/readings.ts'
import type { FeedingNodes } from '../../../server/kit/producers.ts'
import { type Config, defaultConfig } from '../../../server/start/config.ts'
import { Feeder } from '../../../server/start/feeder.ts'
import { FEED_FAMILIES } from '../../../server/start/feeds.ts'
import { done } from '../../support/administration.ts'
import { args, command, join, str, type, u32 } from '../../support/bytes.ts'
import { CommonTime } from '../../support/common-time.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { boundTo, TestProducer } from '../../support/producer.ts'
import { decoded, type Json } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'

const STRING_VALUE = 133
const LOOPBACK = { host: '127.0.0.1', port: 0 }
const log = createLogger('silent')
const elsewhere = { listen: LOOPBACK, async takeOwn() {} }

let directory: string
let port: number
let feeder: Feeder
let listener: NodeListener
let address: Address
let producer: TestProducer
let time: CommonTime
let seat: Seat
let epoch = 1
/** Where the node that leads listens, and how it gets that. */
let own = elsewhere
const socket = createSocket('udp4')
afterAll(() => socket.close())

beforeEach(async () => {
  directory = mkdtempSync(pathOf(tmpdir(), 'cinnabar-feeder-'))
  port = await freePort()
  epoch = 1
  time = new CommonTime({ overSockets: true })
  const base = defaultConfig()
  const gmetric = { ...base.gmetric, listen: { host: '127.0.0.1', port }, listenNamed: true }
  const config: Config = { ...base, producer: { name: 'main', dataDir: directory }, gmetric }
  // Both machines have the right time, which is that of the server that leads.
  const feederClock = {
    ...systemClock(),
    wallMs: () => time.clock.wallMs(),
    microseconds: () => time.clock.microseconds(),
  }
  feeder = new Feeder({ config: () => config, node: 'n2', clock: feederClock, log, onFailed: fail })
  await feeder.listen()
  const takerOf = (kind: string) => {
    const stream = feedStreamOf(kind)
    return stream && ((taken: Parameters<Feeder['take']>[0]) => feeder.take(taken, stream))
  }
  const clock = systemClock()
  const warnings = new RareWarnings(log, clock)
  const options = {
    address: LOOPBACK,
    key: 'cluster.listen',
    certificates: undefined,
    nodes: [{ name: 'n2', host: '127.0.0.1', port: 0 }],
  }
  listener = new NodeListener({ ...options, takerOf, clock, warnings })
  address = await listener.open()
})
afterEach(async () => {
  await producer.stop()
  await feeder.close()
  await listener.close()
  time.end()
  rmSync(directory, { recursive: true, force: true })
})

function fail(error: Error): void {
  throw error
}

const nodes: FeedingNodes = {
  names: ['n2'],
  tenants: ['default'],
  families: FEED_FAMILIES,
  connect: (name, tenant, signal) =>
    connectToFeeder({ name, address }, { log: 1, epoch, tenant }, { certificates: undefined }, signal),
  takeOwn: () => own.takeOwn(),
}

/** A node that leads, and is not that of the feeder unless the test says so. */
async function lead(): Promise<void> {
  own = elsewhere
  const gmetric = {
    listenNamed: true,
    get listen() {
      return own.listen
    },
  }
  producer = await TestProducer.start({ clock: time.clock, node: 'n1', nodes, config: { gmetric } as never })
  seat = await producer.seat()
  await until(async () => expect(await link()).toMatchObject({ state: 'listening' }))
}

const until = (holds: () => void | Promise<void>) => time.until(holds)

async function link(): Promise<Json | undefined> {
  const sensors = decoded(await seat.query('producer.sensors')) as Json[]
  return sensors.find(({ name }) => name === 'link/n2')
}

function send(value: string, to = port, metric = 'count'): Promise<void> {
  const packet = join(u32(STRING_VALUE), str('10.0.0.7:h1'), str(metric), u32(1), str('%s'), str(value))
  return new Promise((resolve, reject) => {
    socket.send(packet, to, '127.0.0.1', (error) => (error ? reject(error) : resolve()))
  })
}

const h1 = args(['host', type.string, str('h1')])

/** Follows `gmetric.count` of h1 on a durable channel, and waits until the feeder keeps it. Gives the channel. */
async function follow(of: Seat = seat): Promise<number> {
  const channel = await of.defChannel()
  await of.setChannel(channel)
  const id = await of.collect('gmetric.count', h1)
  await of.ok((seq) => command.subscribe(seq, id, channel))
  await until(async () => expect(await link()).toMatchObject({ counters: { bindings: 1 } }))
  await until(() => expect(kept()).toEqual([expect.stringMatching(/^gmetric.count /)]))
  return channel
}

/** What the feeder binds durably: names, with the ids of channels. */
function kept(): string[] {
  const bound: string[] = []
  for (const { id, row, bindings } of feeder.channels) {
    if (row.durable)
      for (const { instance } of bindings.values())
        bound.push(`${instance.selection.name} on ${id} ${row.name.slice(0, 8)}`)
  }
  return bound
}

/** Values that wait in the feeder. */
function waiting(): number {
  return feeder.waiting
}

async function values(count: number, of: Seat = seat): Promise<unknown[]> {
  const all: unknown[] = []
  await until(() => {
    for (const message of of.rest()) if (message.kind === 'value') all.push(decoded(message as never))
    expect(all.length).toBeGreaterThanOrEqual(count)
  })
  return all
}

describe('what is sent to a node that follows', () => {
  it('reaches a durable channel at the node that leads, and is committed at the feeder when it is stored here', async () => {
    await lead()
    await follow()
    producer.store.manual = true
    await send('1')
    await until(() => expect(waiting()).toBe(1))
    await until(async () => expect(await link()).toMatchObject({ counters: { values: 1, committed: 0 } }))
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
    producer.store.manual = false
    producer.store.complete()
    expect(await values(1)).toEqual(['1'])
    await until(() => expect(waiting()).toBe(0))
  })

  it('is not kept where nobody wants it', async () => {
    await lead()
    await send('1')
    await eventually(async () => {
      await send('1')
      const gmetric = feeder.statuses.find(({ name }) => name === 'gmetric')
      expect(gmetric?.counters['packets']).toBeGreaterThan(1)
    })
    expect([waiting(), kept()]).toEqual([0, []])
  })

  it('is of this producer: there is none below, and it has no label of one', async () => {
    await lead()
    await follow()
    await send('7')
    await values(1)
    const caps = producer.connect()
    expect(await caps.until('caps')).not.toHaveProperty('caps.below')
    const list = async (name: string, ...list: (readonly [string, number, Uint8Array])[]) =>
      (decoded(await seat.query(name, args(...list))) as Json[]).map(({ time: _, ...rest }) => rest)
    expect(await list('gmetric.count')).toEqual([{ host: 'h1', value: '7' }])
    const all = ['producer', type.string, str('*')] as const
    expect(await list('gmetric.count', all)).toEqual([{ producer: 'main', host: 'h1', value: '7' }])
    const other = ['producer', type.string, str('n2')] as const
    const answer = await seat.ask((seq) => command.query(seq, 'gmetric.count', args(other)))
    expect(answer.status).not.toBe(0)
    const match = ['match', type.string, str('gmetric.count')] as const
    const metric = { name: 'gmetric.count', parameters: [expect.objectContaining({ name: 'host' })] }
    await until(async () => expect(await list('producer.metrics', match)).toEqual([expect.objectContaining(metric)]))
  })

  it('is shown once with its newest value, if several nodes have the series', async () => {
    await lead()
    const here = boundTo(producer.server, 'gmetric.listen')?.port ?? 0
    producer.clock.advance(1)
    await send('old', here)
    await until(async () => expect(decoded(await seat.query('gmetric.count', h1))).toBe('old'))
    producer.clock.advance(1)
    await send('new')
    await until(async () => expect(decoded(await seat.query('gmetric.count', h1))).toBe('new'))
    const records = decoded(await seat.query('gmetric.*')) as Json[]
    expect(records.map(({ name, value }) => [name, value])).toEqual([['gmetric.count', 'new']])
    const { instances, hub, clock, work } = producer.server.parts.producer
    const reader = { userId: 1, tenant: 'default', name: 'x', role: 'consumer' }
    const selection = await work.run({ tenant: 'default' }, instances.select(reader, 'gmetric.*', [], true))
    await until(async () => {
      const readings: Reading[] = []
      const options = { hub, clock, work, deadlineMs: 5_000, isOver: () => false }
      await readAll(selection, options, (one) => readings.push(one))
      const shown = readings.map(({ metric, labels, measured }) => [metric.name, labels.host, measured?.value.value])
      expect(shown).toEqual([['gmetric.count', 'h1', 'new']])
    })
  })

  it('is dropped while the sensor is fenced, after one VOID', async () => {
    await lead()
    await follow()
    await producer.addUser('root', { role: 'admin' })
    const root = await producer.seat('root')
    await send('1')
    expect(await values(1)).toEqual(['1'])
    await done(root, 'sensor.fence', { sensor: 'gmetric' })
    await send('2')
    await send('3')
    expect(await values(1)).toEqual([null])
    await until(async () => expect(await link()).toMatchObject({ counters: { values: 3 } }))
    await done(root, 'sensor.resume', { sensor: 'gmetric' })
    await send('4')
    expect(await values(1)).toEqual(['4'])
  })

  it('is nothing but what feeds bring, whatever is asked for', async () => {
    await lead()
    await send('1')
    await until(async () => {
      const all = decoded(await seat.query('*n*')) as Json[]
      const names = all.map(({ name, host }) => `${name} ${host}`)
      expect(names).toContain('gmetric.count h1')
      expect(names.filter((name) => name.startsWith('host.load.one'))).toHaveLength(1)
    })
  })
})

describe('another node that leads', () => {
  it('goes on where the one before ended: what came meanwhile comes once and in order', async () => {
    await lead()
    const channel = await follow()
    await send('1')
    expect(await values(1)).toEqual(['1'])
    producer.store.manual = true
    await send('2')
    await until(async () => expect(await link()).toMatchObject({ counters: { values: 2 } }))
    epoch = 2
    producer = await producer.takeOver('n3')
    await send('3')
    seat = await producer.seat()
    await seat.setChannel(channel)
    const all = await values(3)
    expect(all).toEqual(['1', '2', '3'])
  })

  it('is not disturbed by one that does not know yet that it leads no more', async () => {
    await lead()
    epoch = 2
    await follow()
    const newer = await nodes.connect('n2', 'default', AbortSignal.timeout(10_000))
    await once(newer, 'readable')
    epoch = 1
    const older = await nodes.connect('n2', 'default', AbortSignal.timeout(10_000))
    await once(older.resume(), 'end')
    expect(newer.destroyed).toBe(false)
    newer.destroy()
    epoch = 2
  })

  it('finds everything bound that the one before wanted, which was deposed', async () => {
    await lead()
    await follow()
    await producer.server.depose()
    await producer.settle()
    await send('1')
    await eventually(() => expect(waiting()).toBe(1))
    expect(kept()).toEqual([expect.stringMatching(/^gmetric.count /)])
    producer = await producer.crash()
  })
})

describe('a node that leads', () => {
  it('takes first what it was sent before, and then listens itself', async () => {
    await lead()
    const channel = await follow()
    await send('1')
    expect(await values(1)).toEqual(['1'])
    await producer.server.depose()
    for (const value of ['2', '3', '4']) await send(value)
    await eventually(() => expect(waiting()).toBe(3))
    // In the place of the feeder, which has the port until then.
    epoch = 2
    own = { listen: { host: '127.0.0.1', port }, takeOwn: () => feeder.takeOwn() }
    producer = await time.over(producer.takeOver('n2'))
    seat = await producer.seat()
    await send('5')
    await seat.setChannel(channel)
    expect(await values(5)).toEqual(['1', '2', '3', '4', '5'])
    expect(waiting()).toBe(0)
    // No VOID: the series goes on.
    await producer.settle()
    expect(seat.rest().filter(({ kind }) => kind === 'value')).toEqual([])
    // As soon as it leads no more, the feeder has the port again, and what is wanted.
    await until(() => expect(kept()).toEqual([expect.stringMatching(/^gmetric.count /)]))
    await producer.server.depose()
    await feeder.listen()
    await send('6')
    await eventually(() => expect(waiting()).toBe(1))
    own = elsewhere
    producer = await producer.crash()
  })
})
