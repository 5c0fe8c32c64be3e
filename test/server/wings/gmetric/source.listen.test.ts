/** What [gmetric] opens, in a whole server: who may read the XML, and whose hosts stand in it. */
import { createSocket } from 'node:dgram'
import { afterEach, describe, expect, it } from 'vitest'
import type { Network } from '../../../../server/kernel/core/address.ts'
import { parseNetwork } from '../../../../server/kernel/core/address.ts'
import { args, command, str, type } from '../../../support/bytes.ts'
import { eventually } from '../../../support/eventually.ts'
import { reported } from '../../../support/ganglia.ts'
import { hostsOf } from '../../../support/ganglia-xml.ts'
import { boundTo, TestProducer } from '../../../support/producer.ts'
import { decoded, type Json } from '../../../support/records.ts'
import { text } from './fixture.ts'

const ANY = { host: '127.0.0.1', port: 0 }
const NO_XML = { xml: undefined, xmlAllow: [], cluster: 'acme' }
const network = (name: string): Network => parseNetwork(name) as Network

let producer: TestProducer

afterEach(() => producer.stop())

async function send(from: string, packet: Uint8Array): Promise<void> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, from, resolve))
  await new Promise((resolve) =>
    socket.send(packet, boundTo(producer.server, 'gmetric.listen')?.port ?? 0, '127.0.0.1', resolve),
  )
  socket.close()
}

const xml = () => reported(boundTo(producer.server, 'gmetric.xml')?.port ?? 0)

describe('the XML of a feed', () => {
  it('has the hosts of its tenant under its own cluster, for its own readers', async () => {
    const readers = [network('127.0.0.0/8')]
    const feeds = [
      { tenant: 'acme', allow: [network('127.0.0.2/32')], xml: ANY, xmlAllow: readers, cluster: 'a_b' },
      { tenant: 'globex', allow: [network('127.0.0.3/32')], xml: ANY, xmlAllow: [], cluster: 'globex' },
    ]
    producer = await TestProducer.start({ config: { gmetric: { listen: ANY, listenNamed: true, xml: ANY, feeds } } })
    await producer.addUser('root', { role: 'admin' })
    const root = await producer.seat('root')
    for (const [from, name] of [
      ['127.0.0.1', 'ours'],
      ['127.0.0.2', 'theirs'],
      ['127.0.0.3', 'others'],
    ] as const) {
      await send(from, text('', name, '1'))
      await eventually(async () => expect(decoded(await root.query(`gmetric.${name}*`))).toHaveLength(1))
    }
    const portOf = (key: string) => boundTo(producer.server, key)?.port ?? 0
    const theirs = await reported(portOf('gmetric.feed[0].xml'))
    expect(theirs).toContain('<CLUSTER NAME="a_b"')
    const shown = hostsOf(theirs).map(({ attributes, children }) => [
      attributes['IP'],
      ...children.map((metric) => metric.attributes['NAME']),
    ])
    expect(shown).toEqual([['127.0.0.2', 'theirs']])
    expect(hostsOf(await xml()).map(({ attributes }) => attributes['IP'])).toEqual(['127.0.0.1'])
    await expect(reported(portOf('gmetric.feed[1].xml'))).rejects.toThrow('ECONNRESET')
    const sensors: Json[] = decoded(await root.query('producer.sensors'))
    const countersOf = (name: string) => sensors.find((sensor) => sensor.name === name)?.counters
    expect(countersOf('gmetric/acme')).toMatchObject({ xmlServed: 1, xmlRefused: 0 })
    expect(countersOf('gmetric/globex')).toMatchObject({ xmlServed: 0, xmlRefused: 1 })
    expect(sensors.find(({ name }) => name === 'gmetric/acme').detail).toMatch(/^udp .+, xml 127\.0\.0\.1:\d+$/)
  })
})

describe('datagrams that the kernel dropped', () => {
  it('are counted where the socket belongs, and not again for each tenant', async () => {
    const feeds = [{ tenant: 'acme', allow: [network('127.0.0.2/32')], ...NO_XML }]
    producer = await TestProducer.start({ config: { gmetric: { listen: ANY, listenNamed: true, feeds } } })
    await producer.addUser('root', { role: 'admin' })
    const sensors: Json[] = decoded(await (await producer.seat('root')).query('producer.sensors'))
    const counting = sensors.filter(({ counters }) => 'kernelDrops' in counters).map(({ name }) => name)
    expect(counting.filter((name) => name.startsWith('gmetric'))).toEqual(['gmetric'])
  })
})

describe('the XML', () => {
  it("holds the hosts of the section's own tenant and no others, and each has a metric that says it is up", async () => {
    const feeds = [{ tenant: 'acme', allow: [network('127.0.0.2/32')], ...NO_XML }]
    producer = await TestProducer.start({ config: { gmetric: { listen: ANY, listenNamed: true, xml: ANY, feeds } } })
    await send('127.0.0.2', text('', 'theirs', '1'))
    await send('127.0.0.1', text('', 'ours', '1'))
    const { hub } = producer.server.parts
    const metrics = () => hub.sensors.flatMap((sensor) => [...sensor.metrics()].map(({ name }) => name))
    await eventually(() => expect(metrics()).toEqual(expect.arrayContaining(['gmetric.ours', 'gmetric.theirs'])))
    const hosts = hostsOf(await xml())
    expect(hosts.map(({ attributes }) => attributes['IP'])).toEqual(['127.0.0.1'])
    expect(hosts[0]?.children.map(({ attributes }) => attributes['NAME'])).toEqual(['ours'])
    producer.clock.advance(1000)
    const alive = hub.sensors.flatMap((sensor) =>
      sensor.polled === false && sensor.family === 'ganglia.'
        ? [...sensor.series('ganglia.host.up')].map((series) => [sensor.owner, series.labels.host])
        : [],
    )
    expect(alive).toEqual([
      [{ tenant: 'default' }, '127.0.0.1'],
      [{ tenant: 'acme' }, '127.0.0.2'],
    ])
  })

  it('is refused to addresses that xml_allow does not name', async () => {
    const xmlAllow = [network('10.0.0.0/8')]
    producer = await TestProducer.start({ config: { gmetric: { listen: ANY, listenNamed: true, xml: ANY, xmlAllow } } })
    await expect(xml()).rejects.toThrow('ECONNRESET')
  })

  it('is served where no packets are taken too, and is empty then', async () => {
    producer = await TestProducer.start({ config: { gmetric: { listen: undefined, xml: ANY, cluster: 'c & d' } } })
    const text = await xml()
    expect(hostsOf(text)).toEqual([])
    expect(text).toContain('<CLUSTER NAME="c _ d"')
  })

  it('is refused while the sensor is fenced, and whether its hosts are up is not reported', async () => {
    producer = await TestProducer.start({ config: { gmetric: { listen: ANY, listenNamed: true, xml: ANY } } })
    await producer.addUser('boss', { role: 'admin' })
    const boss = await producer.seat('boss')
    await send('127.0.0.1', text('', 'ours', '1'))
    const counters = async () => {
      const [shown] = decoded(await boss.query('producer.sensors')).filter(({ name }: Json) => name === 'gmetric')
      return shown
    }
    await eventually(async () => expect(await counters()).toMatchObject({ counters: { values: 1 } }))
    producer.clock.advance(1000)
    const up = await boss.collect('ganglia.host.up', args(['host', type.string, str('127.0.0.1')]))
    await boss.ok((seq) => command.subscribe(seq, up))
    const act = (control: string) => boss.execute(`sensor.${control}`, ['sensor', type.string, str('gmetric')])
    await act('fence')
    await expect(xml()).rejects.toThrow('ECONNRESET')
    const asked = await boss.query('ganglia.host.up', args(['host', type.string, str('127.0.0.1')]))
    expect(asked.type).toBe(type.void)
    producer.clock.advance(1000)
    expect(await boss.value()).toMatchObject({ metric: up, type: type.void })
    expect(await counters()).toMatchObject({ state: 'fenced', counters: { xmlRefused: 1, xmlServed: 0 } })
    await act('resume')
    producer.clock.advance(1000)
    expect(await boss.value()).toMatchObject({ metric: up, type: type.boolean })
    expect(hostsOf(await xml())).toHaveLength(1)
  })
})
