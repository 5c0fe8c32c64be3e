import { describe, expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { hex, join } from '../../../support/bytes.ts'
import {
  ADD,
  ADDED,
  COLLECTIONS,
  type Connection,
  HELLO,
  header,
  hello,
  LIST,
  LOAD,
  le32,
  le64,
  listOf,
  makeSensor,
  SAMPLED,
  sampling,
  samplingAt,
} from './fixture.ts'

const AT = '@192.0.2.7'
const HALF = hex('000000000000e03f')

/** An agent that has said Hello and answered List. */
function open(config = {}, through = {}) {
  const made = makeSensor(config)
  const agent = made.connect('192.0.2.7', through) as Connection
  agent.feed.push(HELLO)
  agent.asked()
  agent.feed.push(LIST)
  made.hub.news()
  return { ...made, agent }
}

describe('an agent', () => {
  test('has what Hello announces and what List offers; both are asked for by the names that agents use', () => {
    const { hub, connect, sensor } = makeSensor()
    const agent = connect() as Connection
    agent.feed.push(HELLO)
    expect(agent.asked()).toEqual(['01'])
    agent.feed.push(LIST)
    expect(hub.news()).toEqual([`born ${COLLECTIONS}${AT}`, `born ${LOAD}${AT}`])
    expect(agent.asked()).toEqual([])
    expect(sensor.metric(COLLECTIONS)).toMatchObject({
      type: BasicType.INT32,
      unit: '1',
      description: 'Mono GC: Major GC collections',
    })
    expect(sensor.metric(LOAD)).toMatchObject({ type: undefined, unit: '', description: 'my: load' })
  })

  test('gives a value of the type of its counter for each sample, at the time of the sampling', () => {
    const { hub, sensor, connect, series } = makeSensor()
    const agent = connect() as Connection
    const names = ['Int', 'Long', 'Word', 'Double'].map((name, type) => ({ name, type, index: type }))
    agent.feed.push(hello(...names))
    hub.news()
    const minusOne = 'ffffffffffffffff'
    agent.feed.push(sampling([0, le32(-5)], [1, hex(minusOne)], [2, le32(-7)], [3, HALF]))
    expect(hub.news()).toEqual([
      `mono.gc.int${AT} = -5`,
      `mono.gc.long${AT} = -1`,
      `mono.gc.word${AT} = -7`,
      `mono.gc.double${AT} = 0.5`,
    ])
    agent.feed.push(sampling([2, hex(minusOne)]))
    const time = Date.UTC(2014, 2, 31, 19, 52) * 1000
    expect(sensor.last(series('mono.gc.word'))).toEqual({ value: { type: BasicType.INT64, value: -1n }, time })
    expect(sensor.metric('mono.gc.word')?.type).toBe(BasicType.INT64)
  })

  test('keeps the last values of what did not change; constants come once', () => {
    const { hub, sensor, series, agent } = open()
    agent.feed.push(SAMPLED)
    agent.feed.push(sampling())
    expect(hub.news()).toEqual([`${COLLECTIONS}${AT} = 5`])
    expect(sensor.last(series(COLLECTIONS))?.value.value).toBe(5)
    expect(sensor.status().counters).toMatchObject({ samplings: 2, values: 1 })
  })

  test('whose clock says nothing has its values stamped when they come', () => {
    const { sensor, series, agent, counters } = open()
    agent.feed.push(samplingAt(0n, [0, le32(1)]))
    expect(sensor.last(series(COLLECTIONS))?.time).toBe(1_700_000_000_000_000)
    expect(counters()).toMatchObject({ badTime: 1 })
  })

  test('takes its series along when it goes, and has them again when it comes back', () => {
    const { hub, sensor, connect, agent, counters } = open()
    agent.feed.end()
    expect(hub.news()).toEqual([`died ${COLLECTIONS}${AT}`, `died ${LOAD}${AT}`])
    expect([...sensor.metrics()]).toEqual([])
    expect(counters()).toMatchObject({ agents: 0, metrics: 0, connections: 1, cutOff: 0 })
    const back = connect() as Connection
    back.feed.push(HELLO)
    expect(hub.news()).toEqual([`born ${COLLECTIONS}${AT}`])
  })

  test('is called by its address, or as its listener; several have numbers, of which the free ones are used again', () => {
    const { sensor, connect } = makeSensor()
    const [first, second] = [connect('::ffff:192.0.2.7'), connect()]
    expect([...sensor.agents()]).toEqual(['192.0.2.7', '192.0.2.7#2'])
    first?.feed.end()
    connect()
    connect('192.0.2.8', { agent: 'shop' })
    expect([...sensor.agents()].sort()).toEqual(['192.0.2.7', '192.0.2.7#2', 'shop'])
    second?.feed.end()
  })

  test('that comes back before its old connection is over is called as before, with the values it has', () => {
    const { hub, sensor, clock, connect, series, agent } = open()
    const back = connect() as Connection
    back.feed.push(join(HELLO, LIST, SAMPLED))
    const anew = (name: string) => [`born ${COLLECTIONS}${name}`, `born ${LOAD}${name}`]
    expect(hub.news().filter((reported) => reported.startsWith('born'))).toEqual(anew(`${AT}#2`))
    clock.advance(30_000)
    agent.feed.end()
    expect(hub.news()).toEqual([
      `died ${COLLECTIONS}${AT}`,
      `died ${LOAD}${AT}`,
      `died ${COLLECTIONS}${AT}#2`,
      `born ${COLLECTIONS}${AT}`,
      `${COLLECTIONS}${AT} = 5`,
      `died ${LOAD}${AT}#2`,
      `born ${LOAD}${AT}`,
    ])
    expect([...sensor.agents()]).toEqual(['192.0.2.7'])
    back.asked()
    series(LOAD).wanted(true)
    expect(back.asked()).toEqual([ADD])
    back.feed.end()
    expect([...sensor.agents()]).toEqual([])
  })

  test('that was there together with another keeps its number', () => {
    const { sensor, clock, connect, agent } = open()
    connect()
    clock.advance(30_001)
    agent.feed.end()
    expect([...sensor.agents()]).toEqual(['192.0.2.7#2'])
  })
})

describe('a counter that is offered', () => {
  test('is added when somebody wants it, and removed when nobody does any more', () => {
    const { hub, sensor, series, agent, counters } = open()
    series(LOAD).wanted(true)
    expect(agent.asked()).toEqual([ADD])
    agent.feed.push(join(ADDED, sampling([2, HALF])))
    expect(hub.news()).toEqual([`${LOAD}${AT} = 0.5`])
    expect(sensor.metric(LOAD)).toMatchObject({ type: BasicType.DOUBLE, unit: 'percent' })
    series(LOAD).wanted(false)
    expect(agent.asked()).toEqual(['030200'])
    agent.feed.push(hex('0300'))
    expect(sensor.last(series(LOAD))).toBeUndefined()
    expect(counters()).toMatchObject({ added: 1, removed: 1, refused: 0, metrics: 2 })
  })

  test('is there as soon as it is listed: a list without an end fills no memory', () => {
    const { hub, connect } = makeSensor()
    const agent = connect() as Connection
    agent.feed.push(join(HELLO, LIST.subarray(0, -4)))
    expect(hub.news()).toContain(`born ${LOAD}${AT}`)
  })

  test('is asked for in the other dialect where its listener says so', () => {
    const { connect, series } = makeSensor()
    const agent = connect('192.0.2.7', { dialect: 'mono-2014' }) as Connection
    agent.feed.push(HELLO)
    agent.feed.push(hex('01 02000000 6d79 04000000 6c6f6164 ffffffff'))
    series(LOAD).wanted(true)
    expect(agent.asked()).toEqual(['00', '01020000006d79040000006c6f6164'])
  })

  test('that nobody wants any more when it was added is removed, and added when somebody wants it again', () => {
    const { series, agent } = open()
    const load = series(LOAD)
    load.wanted(true)
    load.wanted(false)
    load.wanted(true)
    load.wanted(false)
    expect(agent.asked()).toEqual([ADD])
    agent.feed.push(ADDED)
    expect(agent.asked()).toEqual(['030200'])
    load.wanted(true)
    agent.feed.push(hex('0300'))
    expect(agent.asked()).toEqual([ADD])
  })

  test('that the agent refuses is not asked for again before somebody new wants it', () => {
    const { series, agent, counters } = open()
    series(LOAD).wanted(true)
    agent.asked()
    agent.feed.push(hex('0202'))
    expect(agent.asked()).toEqual([])
    expect(counters()).toMatchObject({ refused: 1, added: 0 })
    series(LOAD).wanted(true)
    expect(agent.asked()).toEqual([ADD])
  })

  describe('that is refused with a header all the same, as the text of the protocol has it,', () => {
    const refusals = [
      ['EXISTING', hex('0203')],
      ['NOK', hex('0201')],
    ] as const
    const following = SAMPLED
    test.each(refusals)('%s: the header is skipped, however the stream is cut', (_, refusal) => {
      for (const headerless of [true, false]) {
        const rest = headerless ? following : join(ADDED.subarray(2), following)
        const stream = join(refusal, rest)
        for (let cut = 1; cut < stream.length; cut++) {
          const { series, agent, counters } = open()
          series(LOAD).wanted(true)
          agent.feed.push(stream.subarray(0, cut))
          agent.feed.push(stream.subarray(cut))
          expect(counters()).toMatchObject({ refused: 1, added: 0, samplings: 1 })
        }
      }
    })
  })

  test('that only a control asked for is forgotten when the agent does not have it', () => {
    const { sensor, agent, hub } = open()
    const answers: (number | undefined)[] = []
    sensor.agent('192.0.2.7')?.add({ category: 'my', name: 'other' }, (status) => answers.push(status))
    agent.feed.push(hex('0202'))
    expect(answers).toEqual([2])
    expect(hub.news()).toEqual([`born mono.my.other${AT}`, `died mono.my.other${AT}`])
  })

  test('from the beginning is never removed', () => {
    const { series, agent } = open()
    series(COLLECTIONS).wanted(true)
    series(COLLECTIONS).wanted(false)
    expect(agent.asked()).toEqual([])
  })

  test('among many is asked for when earlier requests are answered, in their order', () => {
    const { connect, series } = makeSensor()
    const agent = connect() as Connection
    agent.feed.push(hello())
    agent.asked()
    const names = Array.from({ length: 100 }, (_, index) => `c${index}`)
    agent.feed.push(listOf(...names.map((name) => ['my', name] as const)))
    for (const name of names) series(`mono.my.${name}`).wanted(true)
    const asked = agent.asked()
    expect(asked).toHaveLength(64)
    for (let index = 0; index < 100; index++) {
      agent.feed.push(join(hex('0200'), header({ category: 8, name: `my:c${index}`, index })))
    }
    agent.feed.push(sampling([99, le32(7)]))
    expect(agent.asked()).toHaveLength(36)
    expect(series('mono.my.c99').last?.value.value).toBe(7)
    expect(series('mono.my.c98').header?.index).toBe(98)
  })
})

describe('names', () => {
  test('are lower case, without spaces, and without mono twice', () => {
    const { hub, agent } = open()
    agent.feed.end()
    hub.news()
    const { connect, hub: other } = makeSensor()
    const custom = (name: string, index: number) => ({ category: 8, name, index })
    connect()?.feed.push(hello(custom('Shop:Open Carts', 0), custom('plain', 1), { category: 99, name: 'X', index: 2 }))
    expect(other.news()).toEqual([
      `born mono.shop.open_carts${AT}`,
      `born mono.custom.plain${AT}`,
      `born mono.category_99.x${AT}`,
    ])
  })

  test('that cannot be, or are taken, cost only their counter', () => {
    const { hub, connect, counters } = makeSensor()
    const agent = connect() as Connection
    const names = ['', 'a\u0001', 'Two Words', 'two_words', 'x'.repeat(300), '\ufffd', 'last']
    agent.feed.push(hello(...names.map((name, index) => ({ name, index }))))
    agent.feed.push(sampling([0, le32(1)], [3, le32(2)], [6, le32(3)]))
    expect(hub.news()).toEqual([`born mono.gc.two_words${AT}`, `born mono.gc.last${AT}`, `mono.gc.last${AT} = 3`])
    expect(counters()).toMatchObject({ badName: 5, unserved: 2, values: 1 })
  })
})

describe('a hostile agent', () => {
  test.each<[string, Uint8Array]>([
    ['says something else', hex('474554202f')],
    ['answers what was not asked', hex('0300')],
    ['gives an index twice', join(hex('0200'), header({ category: 8, name: 'my:load', index: 0 }))],
    ['answers with another counter', join(hex('0200'), header({ category: 8, name: 'my:other', index: 2 }))],
    ['lists what was not asked for', listOf(['my', 'other']).subarray(0, -4)],
    ['sends a sample of another size', sampling([0, le64(1n)])],
  ])('that %s is counted and closed, and harms no other', (_, bytes) => {
    const { hub, connect, counters, agent, sensor, series } = open()
    series(LOAD).wanted(true)
    const other = connect('192.0.2.8') as Connection
    other.feed.push(HELLO)
    hub.news()
    agent.feed.push(bytes)
    expect(agent.isClosed()).toBe(true)
    expect(hub.news()).toEqual([`died ${COLLECTIONS}${AT}`, `died ${LOAD}${AT}`])
    agent.feed.push(SAMPLED)
    agent.feed.end()
    other.feed.push(SAMPLED)
    expect(hub.news()).toEqual([`${COLLECTIONS}@192.0.2.8 = 5`])
    expect(counters()).toMatchObject({ invalid: 1, agents: 1, cutOff: 0 })
    expect(sensor.status().detail).toMatch(/last error: 192\.0\.2\.7: .* \(byte \d+\)/)
  })

  test('that says nothing is closed after ten seconds', () => {
    const { sensor, clock, connect, counters } = makeSensor()
    const agent = connect() as Connection
    clock.advance(10_000)
    sensor.sweep()
    expect(agent.isClosed()).toBe(false)
    clock.advance(1)
    sensor.sweep()
    expect(agent.isClosed()).toBe(true)
    expect(counters()).toMatchObject({ silent: 1, agents: 0 })
  })

  test('that never answers is told of, gives values all the same, and is asked nothing more', () => {
    const { sensor, clock, connect, counters, hub, series } = makeSensor()
    const agent = connect() as Connection
    agent.feed.push(HELLO)
    clock.advance(10_001)
    sensor.sweep()
    sensor.sweep()
    expect(counters()).toMatchObject({ unanswered: 1, agents: 1 })
    expect(sensor.status().detail).toContain('192.0.2.7 did not answer: check `dialect`')
    hub.news()
    agent.feed.push(SAMPLED)
    expect(hub.news()).toEqual([`${COLLECTIONS}${AT} = 5`])
    agent.feed.push(LIST)
    agent.asked()
    series(LOAD).wanted(true)
    expect(agent.asked()).toEqual([ADD])
  })

  test('from elsewhere, or one too many, is refused; a metric too many is passed over', () => {
    const { connect, counters, hub } = makeSensor({ maxAgents: 2, maxMetrics: 1 })
    expect(connect('198.51.100.1')).toBeUndefined()
    connect()?.feed.push(HELLO)
    connect('192.0.2.8')?.feed.push(join(HELLO, SAMPLED))
    expect(connect('192.0.2.9')).toBeUndefined()
    expect(hub.news()).toEqual([`born ${COLLECTIONS}${AT}`])
    expect(counters()).toMatchObject({ refusedSource: 1, agentsFull: 1, metricsFull: 1, unserved: 1, agents: 2 })
  })

  test('takes no place of a file, and a file none of an agent', () => {
    const { sensor, connect, counters } = makeSensor({ maxAgents: 1 })
    sensor.openFile('first')
    const agent = connect()
    expect(agent).toBeDefined()
    expect(connect('192.0.2.8')).toBeUndefined()
    sensor.openFile('second').end()
    expect(connect('192.0.2.8')).toBeUndefined()
    agent?.feed.end()
    expect(connect('192.0.2.8')).toBeDefined()
    expect(counters()).toMatchObject({ agentsFull: 2, agents: 2 })
  })

  test('that answers a request with what breaks the protocol has not answered it', () => {
    const { sensor, agent } = open()
    const answers: unknown[] = []
    sensor.agent('192.0.2.7')?.add({ category: 'my', name: 'load' }, (status) => answers.push(status))
    expect(agent.asked()).toEqual([ADD])
    // The index of the collections.
    agent.feed.push(join(ADDED.subarray(0, -2), hex('0000')))
    expect([answers, agent.isClosed()]).toEqual([[undefined], true])
  })

  test('that ends in the middle of a message is counted', () => {
    const { agent, counters } = open()
    agent.feed.push(SAMPLED.subarray(0, 5))
    agent.feed.end()
    expect(counters()).toMatchObject({ cutOff: 1 })
  })
})
