/** A group beside `listen`, wherever that is: what it gets arrives, and arrives once. */
import { createSocket } from 'node:dgram'
import { afterEach, expect, test } from 'vitest'
import { GmetricSensor } from '../../../../server/wings/gmetric/sensor.ts'
import { eventually } from '../../../support/eventually.ts'
import { boundTo, TestProducer } from '../../../support/producer.ts'
import { text } from './fixture.ts'

const GROUP = '239.2.11.71'
const LOOPBACK = '127.0.0.1'

let producer: TestProducer

afterEach(() => producer.stop())

test.each(['0.0.0.0', LOOPBACK])('with listen on %s', async (host) => {
  const gmetric = { listen: { host, port: 0 }, listenNamed: true, multicast: GROUP, multicastInterface: LOOPBACK }
  producer = await TestProducer.start({ config: { gmetric: { ...gmetric, requestMetadata: 'multicast' } } })
  const port = boundTo(producer.server, 'gmetric.listen')?.port ?? 0
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, LOOPBACK, resolve))
  socket.setMulticastInterface(LOOPBACK)
  const send = (metric: string, to: string) =>
    new Promise((resolve) => socket.send(text('', metric, '1'), port, to, resolve))
  await send('group', GROUP)
  await send('direct', LOOPBACK)
  socket.close()
  const { hub } = producer.server.parts
  const metrics = () => hub.sensors.flatMap((sensor) => [...sensor.metrics()].map(({ name }) => name))
  await eventually(() => expect(metrics()).toEqual(expect.arrayContaining(['gmetric.group', 'gmetric.direct'])))
  const counters = () => hub.sensors.find((sensor) => sensor instanceof GmetricSensor)?.status().counters
  // Two values, and what it asked the group itself for both.
  await eventually(() => expect(counters()).toMatchObject({ values: 2, requests: 2, asked: 2, packets: 4 }))
})
