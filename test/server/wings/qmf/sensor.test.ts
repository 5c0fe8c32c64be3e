import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { DELETED, DEPTH, DURABLE, makeSensor, PACKAGE, queue, queueDelete, table } from './sensor-fixture.ts'

const id = (number: number) => `0-1-1-0-${number}`

/** A broker with one queue, whose depth somebody wants. */
function open() {
  const made = makeSensor()
  const said = made.connect().learn(queue, queueDelete)
  said.queue(1, 0, 5)
  said.broker.ready()
  const depth = made.tapped(DEPTH, 'q1')
  made.hub.news()
  return { ...made, said, depth }
}

describe('the catalogue', () => {
  test('has what the schemas say, the broker itself, and what the source calls it', () => {
    const { sensor, connect } = makeSensor()
    connect().learn(queue, queueDelete)
    expect([...sensor.metrics()].map(({ name }) => name.replace(`qmf.${PACKAGE}.`, ''))).toEqual([
      'qmf.broker.up',
      'queue.arguments',
      'queue.byteDepth',
      'queue.durable',
      'queue.msgDepth',
      'queue.name',
      'queue.uptime',
      'queue.vhostRef',
      'queueDelete',
    ])
    expect(sensor.metric(DEPTH)).toMatchObject({
      kind: 'continuous',
      type: BasicType.UINT32,
      unit: 'message',
      description: 'Current size of queue in messages',
    })
    expect(sensor.metric(DEPTH)?.parameters.map(({ name, selects }) => [name, selects])).toEqual([
      ['broker', 'any'],
      ['object', 'any'],
    ])
    expect(
      sensor
        .metric(DEPTH)
        ?.details?.()
        .map(({ value }) => value),
    ).toEqual([PACKAGE, 'queue', 'statistic'])
    expect(sensor.metric(`qmf.${PACKAGE}.queue.uptime`)).toMatchObject({ type: BasicType.UINT64, unit: 'ns' })
    expect(sensor.metric(DELETED)).toMatchObject({ kind: 'event', type: BasicType.REC })
    expect(sensor.metric(DELETED)?.parameters.map(({ name }) => name)).toEqual(['broker'])
  })

  test('is open until the schemas of every broker were known once, and stays closed', () => {
    const { sensor, connect } = makeSensor('b1', 'b2')
    expect(sensor.metric('qmf.a.b.c')).toMatchObject({ kind: 'continuous', type: undefined })
    expect(sensor.metric('qmf.')).toBeUndefined()
    const [one, two] = [connect('b1').learn(queue), connect('b2').learn(queue)]
    one.broker.ready()
    expect(sensor.metric('qmf.a.b.c')).toBeDefined()
    two.broker.ready()
    expect(sensor.metric('qmf.a.b.c')).toBeUndefined()
    expect(sensor.metric(DEPTH)).toBeDefined()
    two.broker.down('gone')
    expect(sensor.metric('qmf.a.b.c')).toBeUndefined()
    expect(sensor.metric(DEPTH)).toBeDefined()
  })

  test('leaves open what versions of a class do not agree about, and forgets a version with its last broker', () => {
    const { sensor, connect } = makeSensor('b1', 'b2')
    const other = {
      ...queue,
      key: { ...queue.key, hash: 'ff' },
      statistics: [{ name: 'msgDepth', type: 4 as const, unit: 'message' }],
    }
    const [one, two] = [connect('b1').learn(queue), connect('b2').learn(other)]
    one.broker.ready()
    two.broker.ready()
    expect(sensor.metric(DEPTH)).toMatchObject({ type: undefined, unit: 'message' })
    one.broker.down('gone')
    connect('b1').broker.ready()
    expect(sensor.metric(DEPTH)).toMatchObject({ type: BasicType.UINT64, description: '' })
    expect(sensor.metric(DURABLE)).toBeDefined()
    expect(sensor.metric(`qmf.${PACKAGE}.queue.byteDepth`)).toBeUndefined()
  })

  test('a broker that lies about a hash spoils nothing for the others', () => {
    const { sensor, connect, series } = makeSensor('b1', 'b2')
    const one = connect('b1').learn(queue)
    connect('b2').learn({ ...queue, statistics: [] })
    one.queue(1, 0, 5)
    expect(series(DEPTH).map((found) => sensor.last(found)?.value.value)).toEqual([5])
  })

  test('passes over names that cannot be, that stand twice, or that are already of another kind', () => {
    const { sensor, connect } = makeSensor()
    const odd = table('odd', [], {
      statistics: ['', 'a*', 'x'.repeat(250), 'same', 'same'].map((name) => ({ name, type: 3 as const })),
    })
    const clash = { ...queueDelete, key: { packageName: `${PACKAGE}.odd`, className: 'same', hash: 'aa' } }
    connect().learn(odd, clash)
    expect([...sensor.metrics()].map(({ name }) => name)).toEqual(['qmf.broker.up', `qmf.${PACKAGE}.odd.same`])
    expect(sensor.status().counters).toMatchObject({ badName: 5 })
  })
})

describe('values', () => {
  test('are those of every new sample, at its time; properties only when they change', () => {
    const { said, hub, tapped } = open()
    tapped(DURABLE, 'q1')
    said.queue(1, 1, 5)
    expect(hub.news()).toEqual(['msgDepth@b1/q1 = 5 at 1000'])
    said.queue(1, 1, 5)
    expect(hub.news()).toEqual([])
    said.sample(queue, id(1), 2, ['0-0-1-0-3', 'q1', false, new Map()])
    expect(hub.news()).toEqual(['durable@b1/q1 = false at 2000'])
    said.sample(queue, id(1), 2, undefined, [7, 1n, 1n])
    expect(hub.news()).toEqual(['msgDepth@b1/q1 = 7 at 2000'])
  })

  test('can be asked for though nobody wants them', () => {
    const { sensor, series, said } = open()
    said.queue(2, 3, 8)
    const found = series(DEPTH).find(({ labels }) => labels.object === 'q2')
    expect(found && sensor.last(found)).toEqual({
      value: { type: BasicType.UINT32, value: 8 },
      time: 1_700_000_000_003_000,
    })
  })

  test('without a time that could be get that of their arrival', () => {
    const { said, hub, sensor } = open()
    const header = { key: queue.key, sampled: 2n ** 64n - 1n, created: 1n, deleted: 0n, id: id(1) }
    said.broker.object({ header, statistics: [9, 1n, 1n] })
    expect(hub.news()).toEqual(['msgDepth@b1/q1 = 9 at 0'])
    expect(sensor.status().counters).toMatchObject({ badTime: 1, values: 1 })
  })
})

describe('objects', () => {
  test('that come have series only of what somebody ever asked for', () => {
    const { said, hub, series } = open()
    said.queue(2, 1, 0)
    expect(hub.news()).toEqual(['born msgDepth@b1/q2'])
    series()
    said.queue(3, 1, 0)
    expect(hub.news()).toHaveLength(7)
  })

  test('are found by name and by object id', () => {
    const { depth } = open()
    expect(depth.labels).toEqual({ name: DEPTH, broker: 'b1', object: 'q1' })
    for (const name of ['q1', id(1), 'org.apache.qpid.broker:queue:q1'])
      expect(depth.matches('object', (text) => text === name)).toBe(true)
    expect(depth.matches('object', (text) => text === 'b1')).toBe(false)
    expect(depth.matches('broker', (text) => text === 'b1')).toBe(true)
    expect(depth.matches('host', () => true)).toBe(false)
  })

  test('of the same name have their object ids with it, and give the name free', () => {
    const { said, series } = open()
    const names = () => series(DEPTH).map(({ labels }) => labels.object)
    said.queue(2, 0, 0, 'q1')
    expect(names()).toEqual(['q1', `q1@${id(2)}`])
    said.broker.gone(id(1))
    said.queue(3, 0, 0, 'q1')
    expect(names()).toEqual([`q1@${id(2)}`, 'q1'])
  })

  test('that go take their series along, once', () => {
    const { said, hub } = open()
    said.broker.gone(id(1))
    said.broker.gone(id(1))
    expect(hub.news()).toEqual(['died msgDepth@b1/q1'])
    expect(said.wanted()).toEqual(['+queue', '-queue'])
  })

  test('that are only reported by statistics wait for their properties', () => {
    const { said, series } = open()
    said.sample(queue, id(9), 1, undefined, [1, 1n, 1n])
    expect(series(DEPTH)).toHaveLength(1)
  })
})

describe('what is wanted', () => {
  test('may be of objects that are not there yet: their class is wanted then, on every connection', () => {
    const { sensor, hub, connect } = makeSensor()
    expect([...sensor.expected(DEPTH)]).toEqual([])
    const said = connect().learn(queue)
    const [series] = hub.expected
    expect(series?.labels).toEqual({ name: DEPTH, broker: 'b1' })
    expect(series?.matches('object', () => false)).toBe(true)
    expect(['b1', 'b2'].map((name) => series?.matches('broker', (text) => text === name))).toEqual([true, false])
    series?.wanted?.(true)
    expect(said.wanted()).toEqual(['+queue'])
    expect([...sensor.expected(DEPTH)]).toEqual([series])
    said.broker.ready()
    said.queue(1, 0, 5)
    said.broker.down('lost')
    const again = connect().learn(queue)
    expect(again.wanted()).toEqual(['+queue'])
    expect(hub.expected).toEqual([series])
    series?.wanted?.(false)
    expect(again.wanted()).toEqual(['-queue'])
    connect().learn(queue)
    again.broker.ready()
    expect(again.wanted()).toEqual([])
  })

  test('of a class that the broker has no more is forgotten', () => {
    const { sensor, hub, connect } = makeSensor()
    void [...sensor.expected(DEPTH)]
    connect().learn(queue)
    hub.expected[0]?.wanted?.(true)
    hub.news()
    connect().broker.ready()
    expect(hub.news()).toEqual(['died msgDepth@b1'])
    expect([...sensor.expected(DEPTH)]).toEqual([])
  })

  test('is asked of the console by class, while anybody wants anything of it', () => {
    const { said, depth, tapped } = open()
    expect(said.wanted()).toEqual(['+queue'])
    const durable = tapped(DURABLE, 'q1')
    depth.wanted?.(false)
    expect(said.wanted()).toEqual([])
    durable.wanted?.(false)
    expect(said.wanted()).toEqual(['-queue'])
  })

  test('of a class in two versions stays wanted with the last of them', () => {
    const { said, depth, series } = open()
    const other = { ...queue, key: { ...queue.key, hash: 'ff' } }
    said.learn(other)
    said.sample(other, id(7), 1, ['0-0-1-0-3', 'q7', true, new Map()], [1, 1n, 1n])
    const seven = series(DEPTH).find(({ labels }) => labels.object === 'q7')
    said.wanted()
    seven?.wanted(true)
    depth.wanted?.(false)
    expect(said.wanted()).toEqual(['+queue'])
    seven?.wanted(false)
    expect(said.wanted()).toEqual(['-queue'])
  })
})

describe('events', () => {
  test('are RECs of their arguments with the severity, at their own time', () => {
    const { said, hub, tapped } = open()
    tapped(DELETED)
    expect(said.wanted()).toEqual(['+queue', '+queueDelete'])
    said.broker.event(queueDelete.key, { time: 1_700_000_000_000_004_000n, severity: 6, arguments: ['me', 'q1'] })
    expect(hub.news()).toEqual(['queueDelete@b1 = me q1 info at 4'])
  })

  test('that do not fit a frame are dropped, and counted', () => {
    const { said, hub, tapped, sensor } = open()
    tapped(DELETED)
    said.broker.event(queueDelete.key, { time: 1n, severity: 6, arguments: ['x'.repeat(200_000), 'y'.repeat(100_000)] })
    expect(hub.news()).toEqual([])
    expect(sensor.status().counters).toMatchObject({ tooLong: 1 })
  })

  test('have series of their own, without a last value', () => {
    const { sensor, tapped } = open()
    const series = tapped(DELETED)
    expect([series.isEvent, sensor.last(series)]).toEqual([true, undefined])
  })
})

describe('a broker', () => {
  test('that goes ends its series; back again it has new ones, which are wanted anew', () => {
    const { said, hub, connect, tapped, sensor } = open()
    tapped(DELETED)
    said.broker.down('it broke')
    expect(hub.news()).toEqual(['died msgDepth@b1/q1', 'died queueDelete@b1'])
    expect(sensor.status()).toMatchObject({ state: 'failed', detail: 'b1: it broke' })
    const again = connect().learn(queue, queueDelete)
    again.queue(1, 9, 6)
    again.broker.ready()
    expect(hub.news()).toEqual(['born queueDelete@b1', 'born msgDepth@b1/q1'])
    tapped(DEPTH, 'q1')
    expect(again.wanted()).toEqual(['+queue'])
  })

  test.each([
    ['a little behind', -30_000, 'msgDepth@b1/q1 = 7 at 120000002'],
    ['set back', -120_000, 'msgDepth@b1/q1 = 7 at 10000'],
  ])('that comes back gives the times of its samples, or later ones than its end: the clock %s', (_, step, news) => {
    const { said, hub, connect, tapped, clock } = open()
    tapped(DEPTH, 'q1')
    clock.advance(120_000)
    said.broker.down('it broke')
    clock.jumpWall(step)
    const again = connect().learn(queue, queueDelete)
    again.queue(1, 9, 6)
    again.broker.ready()
    tapped(DEPTH, 'q1')
    hub.news()
    again.queue(1, 10, 7)
    expect(hub.news()).toEqual([news])
  })

  test('is up from the moment everything is known until it goes; a heartbeat says so again at its time', () => {
    const { hub, connect, tapped, sensor, clock } = makeSensor()
    const up = tapped('qmf.broker.up')
    expect(sensor.last(up)?.value.value).toBe(false)
    const said = connect().learn(queue)
    clock.advance(1)
    said.broker.ready()
    said.broker.heartbeat(1_700_000_000_500_000_000n)
    clock.advance(1_000)
    said.queue(1, 0, 0)
    expect(sensor.last(up)).toMatchObject({ value: { value: true }, time: 1_700_000_001_001_000 })
    said.broker.down('gone')
    said.broker.down('gone')
    expect(hub.news()).toEqual(['up@b1 = true at 1000', 'up@b1 = true at 500000', 'up@b1 = false at 1001000'])
  })

  test('is found by name, with its objects and calls of their methods', async () => {
    const { sensor, said } = open()
    const broker = sensor.broker('b1')
    const [object] = broker?.objects() ?? []
    expect([object?.label, object?.id]).toEqual(['q1', id(1)])
    expect(object && broker?.has(object)).toBe(true)
    if (object === undefined) throw new Error('no object')
    const method = { name: 'purge', arguments: [] }
    expect(await broker?.call(object, method, [1])).toMatchObject({ text: `${id(1)} queue.purge(1)` })
    said.broker.down('gone')
    expect(await broker?.call(object, method, [1])).toBeUndefined()
    expect(broker?.has(object)).toBe(false)
  })
})
