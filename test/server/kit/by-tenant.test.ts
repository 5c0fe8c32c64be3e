/** Sources of several tenants at one address: real datagrams and streams, from addresses of their own. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import type { Address } from '../../../server/kernel/core/address.ts'
import { parseNetwork } from '../../../server/kernel/core/address.ts'
import { args, command, join, str, type } from '../../support/bytes.ts'
import { boundTo, TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import type { Seat } from '../../support/seat.ts'
import { xdr } from '../wings/gmetric/fixture.ts'
import { DEFINE_A } from '../wings/smon/fixture.ts'

const loopback = { host: '127.0.0.1', port: 0 }
const feeds = [{ tenant: 'acme', allow: [parseNetwork('127.0.0.2')!] }]
const gmetricFeeds = feeds.map((feed) => ({ ...feed, xml: undefined, xmlAllow: [], cluster: feed.tenant }))
const quota = {
  connections: 0,
  channels: 0,
  queuedBytes: 0,
  instances: 0,
  controlsPerMinute: 0,
  auditBytesPerDay: 0,
  dialsPerMinute: 0,
  historyBytes: 0,
  historySeries: 0,
}
let producer: TestProducer | undefined

afterEach(async () => {
  await producer?.stop()
  producer = undefined
})

async function started(valuesPerSecond = 0): Promise<TestProducer> {
  producer = await TestProducer.start({
    config: {
      gmetric: { listen: loopback, listenNamed: true, feeds: gmetricFeeds },
      smon: { tcp: loopback, udp: loopback, feeds },
      quota: { ...quota, valuesPerSecond },
    },
  })
  return producer
}

async function datagrams(from: string, to: Address | undefined, ...packets: Uint8Array[]): Promise<void> {
  const socket = createSocket('udp4')
  socket.bind(0, from)
  await once(socket, 'listening')
  for (const packet of packets) {
    await new Promise((sent) => socket.send(packet, to?.port, to?.host, sent))
  }
  socket.close()
}

/** Sends a stream and closes; what comes back is only the end, when everything was taken. */
async function streamed(from: string, to: Address | undefined, bytes: Uint8Array): Promise<void> {
  const socket = connect({ host: to?.host, port: to?.port ?? 0, localAddress: from })
  socket.end(bytes)
  socket.resume()
  await once(socket, 'close')
}

const packet = (value: number): Uint8Array => xdr(0, 'uint32', 'foo', String(value), '', 3, 60, 0)

/** The counters of a sensor, as soon as they say that so many things arrived. */
async function counters(name: string, counter: string, count: number): Promise<Record<string, number>> {
  const { sensors } = (producer as TestProducer).server.parts.hub
  for (;;) {
    const status = sensors.map((sensor) => sensor.status?.()).find((status) => status?.name === name)
    if ((status?.counters[counter] ?? 0) >= count) return status?.counters ?? {}
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('sources of several tenants at one address', () => {
  it('each tenant has what its own sources send, under one name, and an admin all', async () => {
    const { server } = await started()
    await datagrams('127.0.0.1', boundTo(server, 'gmetric.listen'), packet(1))
    await datagrams('127.0.0.2', boundTo(server, 'gmetric.listen'), packet(2))
    await counters('gmetric', 'values', 1)
    await counters('gmetric/acme', 'values', 1)
    const seen = async (name: string, tenant: string, role = 'consumer') => {
      await producer?.addUser(name, { tenant, role })
      const seat = (await producer?.seat(name, tenant)) as Seat
      return decoded(await seat.query('gmetric.foo', args(['host', type.string, str('*')]))).map(
        ({ host, value }: { host: string; value: number }) => `${host} ${value}`,
      )
    }
    expect(await seen('ann', 'default')).toEqual(['127.0.0.1 1'])
    expect(await seen('bob', 'acme')).toEqual(['127.0.0.2 2'])
    await expect(seen('eve', 'other')).rejects.toThrow('no metric gmetric.foo')
    expect((await seen('boss', 'default', 'admin')).sort()).toEqual(['127.0.0.1 1', '127.0.0.2 2'])
  })

  it('a stream belongs to the tenant of its address', async () => {
    const { server } = await started()
    await streamed('127.0.0.2', boundTo(server, 'smon.tcp'), DEFINE_A)
    expect((await counters('smon/acme', 'values', 1))['values']).toBe(1)
    expect((await counters('smon', 'values', 0))['values']).toBe(0)
  })
})

describe('values a second of a tenant', () => {
  it('gmetric: what is above stays out and is counted; the next second lets in again', async () => {
    const { server, clock } = await started(3)
    await datagrams('127.0.0.2', boundTo(server, 'gmetric.listen'), ...[1, 2, 3, 4, 5].map(packet))
    expect(await counters('gmetric/acme', 'packets', 5)).toMatchObject({ values: 3, overQuota: 2 })
    await datagrams('127.0.0.1', boundTo(server, 'gmetric.listen'), packet(9))
    expect(await counters('gmetric', 'packets', 1)).toMatchObject({ values: 1, overQuota: 0 })
    clock.advance(1_000)
    await datagrams('127.0.0.2', boundTo(server, 'gmetric.listen'), packet(6))
    expect(await counters('gmetric/acme', 'packets', 6)).toMatchObject({ values: 4, overQuota: 2 })
  })

  it('the users of the tenant are reported once a minute, and nobody else', async () => {
    const { server, clock } = await started(1)
    await producer?.addUser('bob', { tenant: 'acme' })
    const bob = (await producer?.seat('bob', 'acme')) as Seat
    const ann = (await producer?.seat('ann')) as Seat
    for (const seat of [bob, ann]) {
      const id = await seat.collect('producer.notices')
      await seat.ok((seq) => command.subscribe(seq, id, 0))
    }
    await datagrams('127.0.0.2', boundTo(server, 'gmetric.listen'), packet(1), packet(2), packet(3))
    await counters('gmetric/acme', 'packets', 3)
    clock.advance(1_000)
    expect(decoded(await bob.value())).toMatchObject({
      subject: 'quota',
      detail: 'the feeds of tenant acme bring in more than 1 values a second: 2 values were discarded',
    })
    clock.advance(5_000)
    await producer?.settle()
    expect([...bob.rest(), ...ann.rest()]).toEqual([])
  })

  it('a stream waits, and loses nothing; streams of other tenants go on', async () => {
    const { server, clock } = await started(300)
    // `00 01` two thousand times: one more each.
    const more = new Uint8Array(2 * 2_000).map((_, at) => at % 2)
    const slow = streamed('127.0.0.2', boundTo(server, 'smon.tcp'), join(DEFINE_A, more))
    await counters('smon/acme', 'values', 300)
    await streamed('127.0.0.1', boundTo(server, 'smon.tcp'), DEFINE_A)
    const early = (await counters('smon/acme', 'values', 300))['values'] ?? 0
    // Looked at between pieces of 512 bytes.
    expect(early).toBeLessThanOrEqual(300 + 256)
    const steady = setInterval(() => clock.advance(500), 1)
    await slow
    clearInterval(steady)
    expect((await counters('smon/acme', 'values', 2_001))['values']).toBe(2_001)
  })

  it('smon datagrams above it are dropped whole and counted', async () => {
    const { server } = await started(1)
    await datagrams('127.0.0.2', boundTo(server, 'smon.udp'), DEFINE_A, DEFINE_A, DEFINE_A)
    expect(await counters('smon/acme', 'datagrams', 3)).toMatchObject({ values: 1, overQuota: 2 })
  })
})
