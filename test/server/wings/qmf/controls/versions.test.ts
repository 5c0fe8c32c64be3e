/** Brokers that do not agree about a method, and methods as odd as a broker may describe them. */
import { beforeEach, describe, expect, it } from 'vitest'
import { BasicType } from '../../../../../protocol/monitor/constants.ts'
import { QmfType, type SchemaArgument, type TableSchema } from '../../../../../protocol/qmf/types.ts'
import { Fleet, identity, recorded } from './fixture.ts'

const ODD = 'qmf.org.apache.qpid.broker.odd'
const queue = recorded('queue')

let fleet: Fleet
beforeEach(() => {
  fleet = new Fleet('east', 'west')
})

const input = (name: string, type: QmfType, more: Partial<SchemaArgument> = {}): SchemaArgument => ({
  name,
  type,
  direction: 'I',
  ...more,
})

/** The class `odd` with one method. */
function odd(
  name: string,
  args: readonly SchemaArgument[],
  hash = 'aa'.repeat(16),
  more: Partial<TableSchema['key']> = {},
) {
  const key = { ...queue.key, className: 'odd', hash, ...more }
  return { ...queue, key, methods: [{ name, arguments: args }] } satisfies TableSchema
}

/** A broker with one object of that class. */
function connect(broker: string, schema: TableSchema, object = 'one'): void {
  fleet.connect(broker, schema)
  fleet.object(broker, schema, '0-1-1-0-1', object)
}

describe('two brokers with a method', () => {
  it('each fill in the default of their own', async () => {
    connect('east', odd('set', [input('level', QmfType.UINT8, { default: 1 })]))
    connect('west', odd('set', [input('level', QmfType.UINT8, { default: 2 })], 'bb'.repeat(16)))
    expect(fleet.control(`${ODD}.set`).parameters.at(-1)).toMatchObject({ optional: true, default: undefined })
    for (const broker of ['east', 'west']) await fleet.run(`${ODD}.set`, { broker })
    expect(fleet.calls.map(({ args }) => args)).toEqual([[1], [2]])
  })

  it('are each given the type and the bounds that they want', async () => {
    connect('east', odd('set', [input('level', QmfType.UINT32)]))
    connect('west', odd('set', [input('level', QmfType.UINT64)], 'bb'.repeat(16)))
    expect(fleet.control(`${ODD}.set`).parameters.at(-1)?.type).toBe(BasicType.UINT64)
    for (const broker of ['east', 'west']) await fleet.run(`${ODD}.set`, { broker, level: 5 })
    expect(fleet.calls.map(({ args }) => args)).toEqual([[5], [5n]])
    expect(() => fleet.judge(`${ODD}.set`, { broker: 'east', level: 2 ** 32 })).toThrow('does not fit uint32')
  })

  it('keep what is secret for one of them from being shown', () => {
    connect('east', odd('set', [input('level', QmfType.UINT32)]))
    connect('west', odd('set', [input('level', QmfType.UINT32), input('token', QmfType.SHORT_STRING)], 'bb'.repeat(16)))
    expect(fleet.control(`${ODD}.set`).parameters.at(-1)).toMatchObject({ secret: true, optional: true })
    expect(() => fleet.judge(`${ODD}.set`, { broker: 'east', level: 1, token: 'x' })).toThrow('takes no argument token')
    expect(() => fleet.judge(`${ODD}.set`, { broker: 'west', level: 1 })).toThrow('needs the argument token')
  })

  it('of classes whose names run together have to be told apart, and neither hides the other', async () => {
    connect('west', odd('b.set', [], undefined, { packageName: 'p', className: 'a' }))
    connect('east', odd('set', [], undefined, { packageName: 'p.a', className: 'b' }))
    expect(() => fleet.judge('qmf.p.a.b.set', {})).toThrow('one of east, west')
    for (const broker of ['east', 'west']) await fleet.run('qmf.p.a.b.set', { broker })
    expect(fleet.calls.map(({ broker, method }) => [broker, method])).toEqual([
      ['east', 'set'],
      ['west', 'b.set'],
    ])
  })
})

describe('an object', () => {
  it('of a class in two versions has a name of its own', async () => {
    const [old, young] = [odd('set', []), odd('set', [], 'bb'.repeat(16))]
    fleet.connect('east', old, young)
    fleet.object('east', old, '0-1-1-0-1', 'one')
    fleet.object('east', young, '0-1-1-11-1', 'one')
    expect(() => fleet.judge(`${ODD}.set`, {})).toThrow('name the object: east has 2')
    for (const object of ['one', 'one@0-1-1-11-1', '0-1-1-11-1']) await fleet.run(`${ODD}.set`, { object })
    expect(fleet.calls.map(({ object }) => object)).toEqual(['0-1-1-0-1', '0-1-1-11-1', '0-1-1-11-1'])
  })

  it('that is gone when its turn comes is not called on', async () => {
    connect('east', odd('set', []))
    const { run } = fleet.judge(`${ODD}.set`, {})
    fleet.sensor.broker('east')?.gone('0-1-1-0-1')
    fleet.object('east', odd('set', []), '0-1-1-0-1', 'another')
    expect(await run(new AbortController().signal)).toMatchObject({ outcome: 'failed', detail: /one of east is gone/ })
    expect(fleet.calls).toEqual([])
  })
})

describe('a method', () => {
  it.each(['constructor', '__proto__', 'with space', 'with.dots', 'ünï'])('called %s is a control', async (name) => {
    connect('east', odd(name, [input('__proto__', QmfType.UINT8)]))
    await fleet.run(`${ODD}.${name}`, JSON.parse('{"__proto__":7}'))
    expect(fleet.calls).toMatchObject([{ method: name, args: [7] }])
  })

  it.each(['', '*', 'a\n'])('called %j is none', (name) => {
    fleet.connect('east', odd(name, []))
    expect([...fleet.controls.of(identity)]).toEqual([])
    expect(fleet.controls.find(`${ODD}.${name}`, identity)).toBeUndefined()
  })

  it('whose description would fill a frame is cut, and one with more arguments than anybody gives is none', () => {
    const many = Array.from({ length: 101 }, (_, at) => input(`a${at}`, QmfType.UINT8))
    connect('east', odd('set', [input('level', QmfType.UINT8, { description: 'x'.repeat(60_000) })]))
    connect('west', odd('other', many))
    expect(fleet.control(`${ODD}.set`).parameters.at(-1)?.description).toHaveLength(1_000)
    expect(fleet.controls.find(`${ODD}.other`, identity)).toBeUndefined()
  })

  it.each([
    [QmfType.UINT32, '-1'],
    [QmfType.UINT32, 2n ** 32n],
    [QmfType.UINT8, 256],
    [QmfType.INT32, '0xFFFFFFFF'],
    [QmfType.UINT64, -1n],
    [QmfType.DOUBLE, ''],
    [QmfType.UUID, ''],
    [QmfType.REFERENCE, ''],
  ])('of type %d has no default %s, which nobody could give', (type, byDefault) => {
    connect('east', odd('set', [input('level', type, { default: byDefault })]))
    expect(() => fleet.judge(`${ODD}.set`, {})).toThrow('needs the argument level')
  })
})
