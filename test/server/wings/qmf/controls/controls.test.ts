/** Methods of brokers as controls: with the schemas that a real broker gave, on one object and never on more. */
import { getEventListeners } from 'node:events'
import { beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../../protocol/monitor/constants.ts'
import { QmfType, type TableSchema } from '../../../../../protocol/qmf/types.ts'
import { Fleet, identity, recorded } from './fixture.ts'

const ECHO = 'qmf.org.apache.qpid.broker.broker.echo'
const PURGE = 'qmf.org.apache.qpid.broker.queue.purge'
const [broker, queue, link, acl] = ['broker', 'queue', 'link', 'acl'].map(recorded) as [
  TableSchema,
  TableSchema,
  TableSchema,
  TableSchema,
]

let fleet: Fleet
beforeEach(() => {
  fleet = new Fleet('east', 'west')
  fleet.connect('east', broker, queue, link, acl)
  fleet.object('east', broker, '0-0-1-0-2', 'amqp-broker')
  fleet.object('east', queue, '0-1-1-0-10', 'orders')
  fleet.object('east', queue, '0-1-1-0-11', 'bills')
})

describe('the controls of a tenant', () => {
  it('are the methods of all classes that its brokers have', () => {
    const names = [...fleet.controls.of(identity)].map(({ name }) => name)
    expect(names).toContain(ECHO)
    expect(names).toContain(PURGE)
    expect(names).toContain('qmf.org.apache.qpid.acl.acl.LookupPublish')
    expect(names.filter((name) => name === ECHO)).toHaveLength(1)
  })

  it('are not those of another tenant', () => {
    const other = { ...identity, tenant: 'other' }
    expect([...fleet.controls.of(other)]).toEqual([])
    expect(fleet.controls.find(ECHO, other)).toBeUndefined()
  })

  it('take the arguments that go in, typed as the schema says, and no others', () => {
    const parameters = fleet.control(ECHO).parameters.map(({ name, type, optional = false }) => [name, type, optional])
    expect(parameters).toEqual([
      ['broker', BasicType.STRING, true],
      ['object', BasicType.STRING, true],
      ['sequence', BasicType.UINT32, false],
      ['body', BasicType.STRING, false],
    ])
  })

  it('have the defaults of the schema, also where it writes them in hexadecimal', () => {
    const { parameters } = fleet.control('qmf.org.apache.qpid.broker.link.bridge')
    expect(parameters.find(({ name }) => name === 'credit')).toMatchObject({ default: 0xffffffff, optional: true })
  })

  it('give an argument called object another name, and keep a password secret', () => {
    const lookup = fleet.control('qmf.org.apache.qpid.acl.acl.Lookup').parameters.map(({ name }) => name)
    expect(lookup).toEqual(['broker', 'object', 'userId', 'action', 'argument_object', 'objectName', 'propertyMap'])
    const { parameters } = fleet.control('qmf.org.apache.qpid.broker.broker.connect')
    expect(parameters.find(({ name }) => name === 'password')?.secret).toBe(true)
    expect(parameters.find(({ name }) => name === 'username')?.secret).toBeUndefined()
  })
})

describe('the object', () => {
  it('may be left out where the class has one only, and stands in the arguments that rules see', async () => {
    const { given } = fleet.judge(ECHO, { sequence: 1, body: 'hi' })
    expect([given.get('broker'), given.get('object')]).toEqual(['east', 'amqp-broker'])
    await fleet.run(ECHO, { sequence: 1, body: 'hi' })
    expect(fleet.calls).toEqual([{ broker: 'east', object: '0-0-1-0-2', method: 'echo', args: [1, 'hi'] }])
  })

  it.each([
    ['is left out where there are two', {}],
    ['is empty', { object: '' }],
    ['is a pattern', { object: '*' }],
    ['is a pattern that fits one', { object: 'ord*' }],
    ['is none of them', { object: 'other' }],
  ])('is refused when it %s', (_what, given) => {
    expect(() => fleet.judge(PURGE, { request: 0, filter: '{}', ...given })).toThrow(
      /object.*: east has 2 of its class$/,
    )
    expect(fleet.calls).toEqual([])
  })

  it('may be named by its object id, and rules see its name then', async () => {
    const { given } = fleet.judge(PURGE, { object: '0-1-1-0-11', request: 0, filter: '{}' })
    expect(given.get('object')).toBe('bills')
    await fleet.run(PURGE, { object: '0-1-1-0-11', request: 0, filter: '{}' })
    expect(fleet.calls.map(({ object }) => object)).toEqual(['0-1-1-0-11'])
  })

  it('may be named as QMF v2 does', () => {
    const named = (object: string) => fleet.judge(PURGE, { object, request: 0, filter: '{}' }).given.get('object')
    expect(named('org.apache.qpid.broker:queue:bills')).toBe('bills')
    for (const other of ['broker:bills', 'queue:bills', ':bills', 'org.apache.qpid.broker:exchange:bills']) {
      expect(() => named(other)).toThrow(/there is no object/)
    }
  })
})

describe('the broker', () => {
  it('has to be named where two have the method', async () => {
    fleet.connect('west', broker)
    fleet.object('west', broker, '0-0-1-0-2', 'amqp-broker')
    expect(() => fleet.judge(ECHO, { sequence: 1, body: '' })).toThrow('name the broker: one of east, west')
    await fleet.run(ECHO, { sequence: 1, body: '', broker: 'west' })
    expect(fleet.calls.map((call) => call.broker)).toEqual(['west'])
  })

  it.each(['', '*', 'north'])('is refused when it is "%s"', (name) => {
    expect(() => fleet.judge(ECHO, { sequence: 1, body: '', broker: name })).toThrow('choose one of east')
  })

  it('that is not connected is BUSY, and keeps its controls', () => {
    fleet.sensor.broker('east')?.down('waiting, it closed')
    expect(() => fleet.judge(ECHO, { sequence: 1, body: '' })).toThrow('east is not connected: waiting, it closed')
  })
})

describe('arguments', () => {
  it.each([
    [{ sequence: 1, body: 'x'.repeat(65_536) }, 'argument body: 65536 bytes; at most 65535 are allowed'],
    [{ sequence: 1, body: 'x'.repeat(65_500) }, /a request of 65\d+ bytes, where a broker takes 65536/],
    [{ body: 'hi' }, 'needs the argument sequence'],
  ])('that do not fit are refused %#', (given, message) => {
    expect(() => fleet.judge(ECHO, given)).toThrow(message)
    expect(fleet.calls).toEqual([])
  })

  it.each(['[]', '1', 'no', '{"a":9007199254740993}', '{"a":[1e300]}', `${'{"a":'.repeat(20)}1${'}'.repeat(20)}`])(
    'that are no map are refused: %s',
    (filter) => {
      expect(() => fleet.judge(PURGE, { object: 'orders', request: 0, filter })).toThrow('argument filter')
    },
  )

  it.each([
    `{"${'k'.repeat(256)}":1}`,
    `{"k":"${'x'.repeat(65_536)}"}`,
    `${'['.repeat(200_000)}${']'.repeat(200_000)}`,
  ])('that no broker takes are refused before anything runs %#', (filter) => {
    expect(() => fleet.judge(PURGE, { object: 'orders', request: 0, filter })).toThrow(
      expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
    )
  })

  it('that are JSON become maps', async () => {
    await fleet.run(PURGE, { object: 'orders', request: 5, filter: '{"a":1,"b":[true,"x"],"c":5000000000}' })
    const filter = new Map<string, unknown>([
      ['a', 1],
      ['b', [true, 'x']],
      ['c', 5_000_000_000n],
    ])
    expect(fleet.calls[0]?.args).toEqual([5, filter])
  })

  it('are bounded by min, max, maxlen and the width of their type', () => {
    const method = {
      name: 'set',
      arguments: [
        { name: 'level', type: QmfType.UINT8, direction: 'I', max: 9 },
        { name: 'small', type: QmfType.INT16, direction: 'I', min: -5, default: 0 },
        { name: 'word', type: QmfType.SHORT_STRING, direction: 'I', maxLength: 3, default: '' },
        { name: 'share', type: QmfType.FLOAT, direction: 'I', default: 0.5 },
      ],
    } as const
    const odd = { ...queue, key: { ...queue.key, className: 'odd' }, methods: [method] }
    fleet.connect('west', odd)
    fleet.object('west', odd, '0-1-1-0-1', 'one')
    const set = 'qmf.org.apache.qpid.broker.odd.set'
    expect(() => fleet.judge(set, { level: 9, small: -5, word: 'abc' })).not.toThrow()
    expect(() => fleet.judge(set, { level: 10 })).toThrow('argument level: at most 9')
    expect(() => fleet.judge(set, { level: 256 })).toThrow('argument level: at most 9')
    expect(() => fleet.judge(set, { level: 0, small: -6 })).toThrow('argument small: at least -5')
    expect(() => fleet.judge(set, { level: 0, small: 40_000 })).toThrow('argument small: at most 32767')
    expect(() => fleet.judge(set, { level: 0, share: 1e39 })).toThrow('argument share: it does not fit a float')
    expect(() => fleet.judge(set, { level: 0, word: 'äö' })).toThrow('argument word: 4 bytes; at most 3 are allowed')
  })
})

describe('the result', () => {
  const run = () => fleet.run(ECHO, { sequence: 7, body: 'hello' })

  it('is a REC of what came back, with the text of the agent', async () => {
    fleet.answer = { status: 0, text: 'OK', arguments: [7, 'hello'] }
    expect(await run()).toEqual({
      outcome: 'ok',
      detail: 'OK',
      value: {
        type: BasicType.REC,
        value: [
          { name: 'sequence', type: BasicType.UINT32, value: 7 },
          { name: 'body', type: BasicType.STRING, value: 'hello' },
        ],
      },
    })
  })

  it.each([
    [{ status: 6, text: 'unauthorized', arguments: [] }, 'failed', 'unauthorized'],
    [{ status: 7, text: '', arguments: [] }, 'failed', 'east refused: status 7'],
    ['timeout' as const, 'timeout', 'east did not answer within 30 s'],
    ['full' as const, 'failed', 'too many calls to east are pending: nothing was called'],
    [
      undefined,
      'unknown',
      'the connection to east ended before an answer came: it is not known whether the method was executed',
    ],
    [
      'unreadable' as const,
      'unknown',
      'the answer of east cannot be read: it is not known whether the method was executed',
    ],
  ])('of %j is %s', async (answer, outcome, detail) => {
    fleet.answer = answer
    expect(await run()).toMatchObject({ outcome, detail })
  })

  it('has VOID for what would not fit a frame', async () => {
    const long = new Map([['k', 'x'.repeat(200_000)]])
    const all = ['a', 'b'].map((name) => ({ name, type: QmfType.MAP, direction: 'O' as const }))
    const odd = { ...queue, key: { ...queue.key, className: 'odd' }, methods: [{ name: 'list', arguments: all }] }
    fleet.connect('west', odd)
    fleet.object('west', odd, '0-1-1-0-1', 'one')
    fleet.answer = { status: 0, text: 'OK', arguments: [long, long] }
    const { value } = await fleet.run('qmf.org.apache.qpid.broker.odd.list', {})
    expect(value.value).toMatchObject([{ type: BasicType.STRING }, { type: BasicType.VOID }])
  })

  it('leaves nothing behind at the signal, which lives as long as the producer', async () => {
    const { signal } = new AbortController()
    await fleet.judge(ECHO, { sequence: 1, body: '' }).run(signal)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('is unknown where the producer stops first', async () => {
    const stopping = new AbortController()
    fleet.answer = new Promise(() => {})
    const running = fleet.judge(ECHO, { sequence: 1, body: '' }).run(stopping.signal)
    stopping.abort()
    expect(await running).toMatchObject({ outcome: 'unknown' })
  })
})
