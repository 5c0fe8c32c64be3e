/** What a broker may do to its own names and to what is remembered of it: queues made anew, classes without end. */
import { expect, test } from 'vitest'
import { QmfType, type TableSchema } from '../../../../protocol/qmf/types.ts'
import type { QmfBroker } from '../../../../server/wings/qmf/broker.ts'
import { DELETED, DEPTH, index, makeSensor, queue, queueDelete, START, table } from './sensor-fixture.ts'

const id = (number: number) => `0-1-1-0-${number}`
const ROUTES = 'qmf.org.apache.qpid.broker.route.hops'

/** A queue of that vhost, which was made at that second. */
function make(broker: QmfBroker, number: number, name: string, created: number, vhost = '0-0-1-0-3', of = queue): void {
  const header = { key: of.key, id: id(number), sampled: BigInt(START), created: BigInt(created), deleted: 0n }
  broker.object({ header, properties: [vhost, name, true, new Map()], statistics: [number, 1n, 1n] })
}

function open() {
  const made = makeSensor()
  const { broker } = made.connect().learn(queue, queueDelete)
  broker.ready()
  made.series(DEPTH)
  const labels = () => made.series(DEPTH).map(({ labels: { object } }) => object)
  return { ...made, broker, labels }
}

test('a queue that was deleted and made anew between two answers goes on under its name', () => {
  const { broker, hub, tapped, labels } = open()
  make(broker, 1, 'orders', 1)
  tapped(DEPTH, 'orders')
  hub.news()
  make(broker, 2, 'orders', 2)
  expect(hub.news()).toEqual(['died msgDepth@b1/orders', 'born msgDepth@b1/orders'])
  broker.gone(id(1))
  expect([labels(), hub.news()]).toEqual([['orders'], []])
})

test.each([
  ['of another vhost', 2, '0-0-1-0-4'],
  ['that is older', 0, '0-0-1-0-3'],
])('a queue of the same name %s is another one', (_what, created, vhost) => {
  const { broker, labels } = open()
  make(broker, 1, 'orders', 1)
  make(broker, 2, 'orders', created, vhost)
  expect(labels()).toEqual(['orders', `orders@${id(2)}`])
})

/** A subscribed queue at rest, sampled 1 ms after START; the broker disappears after 30 s, and is back 10 s later. */
function lost() {
  const { clock, hub, tapped, connect, sensor, ...made } = makeSensor()
  const first = connect().learn(queue)
  first.broker.ready()
  first.queue(1, 1, 3, 'orders')
  tapped(DEPTH, 'orders')
  clock.advance(30_000)
  first.broker.down('frozen')
  clock.advance(10_000)
  hub.news()
  const again = connect().learn(queue)
  again.broker.ready()
  return { ...made, clock, hub, tapped, again }
}

test('no value after a VOID has an earlier time: one that was sampled before has the time of its arrival', () => {
  const { clock, hub, tapped, again } = lost()
  again.queue(1, 1, 3, 'orders')
  expect(tapped(DEPTH, 'orders').first?.()?.time).toBe(START / 1000 + 40_000_000)
  hub.news()
  clock.advance(2_000)
  again.queue(1, 29_000, 4, 'orders')
  again.queue(1, 41_000, 5, 'orders')
  again.queue(1, 42_500, 6, 'orders')
  expect(hub.news()).toEqual([
    'msgDepth@b1/orders = 4 at 42000000',
    'msgDepth@b1/orders = 5 at 42000001',
    'msgDepth@b1/orders = 6 at 42500000',
  ])
})

test('a series without a subscriber, to whom no VOID was sent, keeps the times of its samples', () => {
  const { again, series } = lost()
  again.queue(2, 1, 3, 'rest')
  expect(
    series(DEPTH)
      .find(({ labels: { object } }) => object === 'rest')
      ?.first?.()?.time,
  ).toBe(START / 1000 + 1000)
})

test('a queue that is deleted and made again at once has no value before its VOID', () => {
  const { broker, clock, tapped } = open()
  make(broker, 1, 'orders', 1)
  tapped(DEPTH, 'orders')
  clock.advance(1_000)
  broker.gone(id(1))
  make(broker, 2, 'orders', 2)
  expect(tapped(DEPTH, 'orders').first?.()?.time).toBe(START / 1000 + 1_000_001)
})

test('a reference is the name of its object, or the id as long as there is no such object', () => {
  const { connect, series } = makeSensor()
  const binding = table('binding', [index('queueRef', QmfType.REFERENCE), index('key')])
  const said = connect().learn(queue, binding)
  said.broker.ready()
  said.sample(binding, id(9), 1, [id(1), 'k'])
  const reference = () => series('qmf.org.apache.qpid.broker.binding.queueRef')[0]?.first?.()?.value.value
  expect(reference()).toBe(id(1))
  said.queue(1, 1, 3, 'orders')
  expect(reference()).toBe('orders')
  said.broker.gone(id(1))
  expect(reference()).toBe(id(1))
})

test('an object of another agent does not end one of the same name', () => {
  const { connect, series } = makeSensor()
  const route = table('route', [index('name')], { statistics: [{ name: 'hops', type: QmfType.UINT32 }] })
  const said = connect().learn(route)
  const sample = (of: string, created: bigint) =>
    said.broker.object({
      header: { key: route.key, id: of, sampled: 1n, created, deleted: 0n },
      properties: ['a'],
      statistics: [1],
    })
  sample('0-1-1-10-1', 1n)
  sample('0-1-1-11-1', 2n)
  expect(series(ROUTES).map(({ labels: { object } }) => object)).toEqual(['a', 'a@0-1-1-11-1'])
})

test('no two objects of a class are called the same, not in two versions of it, not as another with its id', () => {
  const { broker, labels, connect } = open()
  const other: TableSchema = { ...queue, key: { ...queue.key, hash: 'ff'.repeat(16) } }
  connect().learn(queue, other)
  make(broker, 1, 'orders', 1)
  make(broker, 2, 'orders', 2, '0-0-1-0-3', other)
  make(broker, 3, `orders@${id(4)}`, 3)
  make(broker, 4, 'orders', 0)
  expect(labels().toSorted()).toEqual(
    ['orders', `orders@${id(2)}`, `orders@${id(4)}`, `orders@${id(4)}@${id(4)}`].toSorted(),
  )
})

test('classes of a broker that never tells all of them are forgotten with the connection; those it had are not', () => {
  const { sensor, connect, broker } = open()
  broker.down('it broke')
  for (let round = 0; round < 3; round++) {
    const said = connect()
    for (let n = 0; n < 5; n++) {
      said.learn(table(`odd${round}x${n}`, [index('name')]), {
        ...queueDelete,
        key: { ...queueDelete.key, className: `odd${round}y${n}` },
      })
    }
    broker.down('it broke')
  }
  expect([...sensor.schemas()].map(({ key }) => key.className)).toEqual(['queue', 'queueDelete'])
  expect(sensor.metric(DELETED)).toBeDefined()
})

test('a heartbeat before everything is known says nothing', () => {
  const { hub, connect, tapped } = makeSensor()
  tapped('qmf.broker.up')
  const said = connect().learn(queue)
  said.broker.heartbeat(BigInt(START))
  expect([said.broker.isUp, hub.news()]).toEqual([false, []])
  said.broker.ready()
  expect([said.broker.isUp, hub.news()]).toEqual([true, ['up@b1 = true at 0']])
})

test('a series is kept only while somebody wants it', () => {
  const { broker, series } = open()
  make(broker, 1, 'orders', 1)
  const [one] = series(DEPTH)
  expect(series(DEPTH)[0]).not.toBe(one)
  one?.wanted?.(true)
  expect(series(DEPTH)[0]).toBe(one)
  one?.wanted?.(false)
  expect(series(DEPTH)[0]).not.toBe(one)
})

test('an event with more names than fit a frame is dropped, and counted', () => {
  const { sensor, hub, tapped, connect } = open()
  const items = Array.from({ length: 1_500 }, (_, at) => ({ name: `${'n'.repeat(200)}${at}`, type: QmfType.UINT8 }))
  const wide = { ...queueDelete, arguments: items }
  const said = connect().learn(wide)
  tapped(DELETED)
  hub.news()
  said.broker.event(wide.key, { time: BigInt(START), severity: 6, arguments: items.map(() => 1) })
  expect([hub.news(), sensor.counters.tooLong]).toEqual([[], 1])
})
