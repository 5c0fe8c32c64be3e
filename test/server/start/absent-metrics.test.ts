/** Bound metrics whose source a start does not have, by a mistake in the configuration: bindings and values stay. */
import { afterEach, describe, expect, it } from 'vitest'
import { parseNetwork } from '../../../server/kernel/core/address.ts'
import { GmetricSensor } from '../../../server/wings/gmetric/sensor.ts'
import { command } from '../../support/bytes.ts'
import { TestProducer } from '../../support/producer.ts'
import { decoded } from '../../support/records.ts'
import { xdr } from '../wings/gmetric/fixture.ts'

const feed = {
  tenant: 'acme',
  allow: [parseNetwork('127.0.0.2')!],
  xml: undefined,
  xmlAllow: [],
  cluster: 'acme',
}

let producer: TestProducer | undefined
afterEach(() => producer?.stop())

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
    const channel = await bob.defChannel()
    const id = await bob.collect('gmetric.load_one')
    await bob.ok((seq) => command.subscribe(seq, id, channel))
    for (const value of [1, 2, 3]) send(now, 'acme', value)
    send(now, 'default', 9)
    const bindings = [{ metric: id, name: 'gmetric.load_one', mode: 'subscribe' }]
    const waiting = { queued: 3, dropped: { purged: 0 }, bindings }
    expect(await bob.ledger(channel)).toMatchObject(waiting)
    await now.settle()
    now.config = {}
    producer = now = await now.restart()
    send(now, 'default', 9)
    expect(await (await now.seat('bob', 'acme')).ledger(channel)).toMatchObject(waiting)
    expect(now.logged.filter((line) => line.includes('a metric that is bound is not there'))).toHaveLength(1)
    await now.settle()
    now.config = { gmetric: { feeds: [feed] } }
    producer = now = await now.restart()
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
