import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { plainOf, Sample, toArgumentList } from '../../client/values.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import { type Field, type Value, VOID } from '../../protocol/monitor/value.ts'

const { INT32, INT64, UINT32, UINT64, DOUBLE, BOOLEAN, STRING, OPAQUE, REC, ARRAY } = BasicType

test('simple values are what JavaScript has for them', () => {
  expect(plainOf({ type: INT32, value: -7 })).toBe(-7)
  expect(plainOf({ type: DOUBLE, value: 0.5 })).toBe(0.5)
  expect(plainOf({ type: BOOLEAN, value: true })).toBe(true)
  expect(plainOf({ type: STRING, value: 'up' })).toBe('up')
  expect(plainOf({ type: OPAQUE, value: new Uint8Array([1, 2]) })).toEqual(new Uint8Array([1, 2]))
  expect(plainOf(VOID)).toBeNull()
})

test('integers of 64 bits are numbers as long as those are exact', () => {
  const last = 2n ** 53n - 1n
  expect(plainOf({ type: UINT64, value: last })).toBe(Number(last))
  expect(plainOf({ type: INT64, value: -last })).toBe(-Number(last))
  expect(plainOf({ type: UINT64, value: last + 1n })).toBe(last + 1n)
  expect(plainOf({ type: INT64, value: -last - 1n })).toBe(-last - 1n)
})

test('text that is not UTF-8 shows U+FFFD', () => {
  expect(plainOf({ type: STRING, value: new Uint8Array([0x61, 0xff]) })).toBe('a\ufffd')
})

test('records become objects and arrays arrays, all the way down', () => {
  const value = [
    { name: 'host', type: STRING, value: 'n1' },
    { name: 'loads', type: ARRAY, value: { element: UINT64, items: [1n, 2n] } },
    { name: 'none', ...VOID },
  ] as const
  expect(plainOf({ type: REC, value })).toEqual({ host: 'n1', loads: [1, 2], none: null })
  expect(plainOf({ type: ARRAY, value: { element: REC, items: [value] } })).toEqual([
    { host: 'n1', loads: [1, 2], none: null },
  ])
})

test('a field cannot stand for the prototype of the object', () => {
  const plain = plainOf({ type: REC, value: [{ name: '__proto__', type: STRING, value: 'x' }] })
  expect(Object.keys(plain as object)).toEqual(['__proto__'])
})

test('a sample has the name that was followed, what came, and its value as JavaScript has it', () => {
  const value = { type: BasicType.UINT64, value: 42n }
  const message = { kind: 'value', metric: 7, transaction: 12, time: 1_700_000_000_000_000, value } as const
  const sample = new Sample('host.uptime', message)
  const { metric: id, ...rest } = message
  expect({ ...sample }).toEqual({ ...rest, id, name: 'host.uptime' })
  expect(sample.plain).toBe(42)
})

/** A value of metric 7, followed under this name. */
const sampleOf = (name: string, value: Value) =>
  new Sample(name, { kind: 'value', metric: 7, transaction: 3, time: 50, value }, { generation: 'a', commit() {} })
const record = (...fields: readonly Field[]) => ({ type: REC, value: fields }) as const
const label = (name: string, value: string | Uint8Array): Field => ({ name, type: STRING, value })

describe('the value of a series', () => {
  const load: Field = { name: 'value', type: DOUBLE, value: 0.5 }

  test('has the name of its metric, its labels, and what was measured', () => {
    const sample = sampleOf('host.load.*', record(label('name', 'host.load.one'), label('host', 'n1'), load))
    expect(sample).toMatchObject({ name: 'host.load.*', metric: 'host.load.one', plain: 0.5, number: 0.5 })
    expect(sample.labels).toEqual({ host: 'n1' })
    expect(sample.text).toBeUndefined()
  })

  test('may have labels and no name of its own, and labels that are not UTF-8', () => {
    const odd = label('source', new Uint8Array([0x61, 0xff]))
    const sample = sampleOf('smon.idle', record(odd, label('index', '3'), { name: 'value', type: UINT64, value: 7n }))
    expect([sample.metric, sample.number]).toEqual(['smon.idle', 7])
    expect(sample.labels).toEqual({ source: 'a\ufffd', index: '3' })
  })

  test.each([
    ['a number', { type: UINT32, value: 4 }, 'm', {}, 4],
    ['a record of another form', record(load, label('host', 'n1')), 'm', {}, undefined],
    [
      'a record with a number before the value',
      record({ name: 'a', type: UINT32, value: 1 }, load),
      'm',
      {},
      undefined,
    ],
    ['a record of a value alone', record(load), 'm', {}, undefined],
    ['an event of texts and a value', record(label('state', 'hot'), load), 'm', {}, undefined],
    ['a field that is like a property of objects', record(label('__proto__', 'x'), load), 'm', {}, undefined],
    ['labels that are not in their order', record(label('mount', '/'), label('host', 'n1'), load), 'm', {}, undefined],
    ['a label that comes twice', record(label('host', 'n1'), label('host', 'n2'), load), 'm', {}, undefined],
    ['the result of a control', record(label('outcome', 'ok'), label('detail', ''), load), 'm', {}, undefined],
    ['nothing', VOID, 'm', {}, undefined],
  ] as const)('is not seen in %s', (_, value, metric, labels, number) => {
    const sample = sampleOf('m', value)
    expect([sample.metric, sample.labels, sample.number]).toEqual([metric, labels, number])
    expect(sample.plain).toEqual(plainOf(value))
  })

  test('may have labels of any name, after one with a place of its own or in a family that has them', () => {
    const labels = [label('host', 'n1'), label('__proto__', 'p'), label('job', 'api')]
    const expected = Object.fromEntries([
      ['host', 'n1'],
      ['__proto__', 'p'],
      ['job', 'api'],
    ])
    expect(sampleOf('plugin.up', record(...labels, load)).labels).toEqual(expected)
    expect(sampleOf('prometheus.up', record(label('job', 'api'), load)).labels).toEqual({ job: 'api' })
    expect(sampleOf('prometheus.up', record(label('job', 'api'), label('env', 'x'), load)).labels).toEqual({})
  })

  test('is a number or a text, if it is one', () => {
    const as = (value: Value) => [sampleOf('m', value).number, sampleOf('m', value).text]
    expect(as({ type: INT64, value: -7n })).toEqual([-7, undefined])
    expect(as({ type: UINT64, value: 2n ** 53n + 1n })).toEqual([2 ** 53, undefined])
    expect(as({ type: STRING, value: 'up' })).toEqual([undefined, 'up'])
    expect(as({ type: BOOLEAN, value: true })).toEqual([undefined, undefined])
    expect(as(record(label('host', 'n1'), { name: 'value', ...VOID }))).toEqual([undefined, undefined])
  })
})

describe('the elements of an answer', () => {
  const element = (name: string, time: bigint, value: number) => [
    label('name', name),
    { name: 'time', type: UINT64, value: time } as const,
    { name: 'value', type: DOUBLE, value } as const,
  ]
  const more = { name: 'more', type: BOOLEAN, value: true } as const
  const list = (...items: readonly (readonly Field[])[]) => ({ type: ARRAY, value: { element: REC, items } }) as const

  test('are the values of a pattern, each with its own name and time', () => {
    const answer = sampleOf('host.load.*', list(element('host.load.five', 40n, 1), element('host.load.one', 50n, 2)))
    expect(answer.elements.map(({ metric, id, time, number, place }) => [metric, id, time, number, place])).toEqual([
      ['host.load.five', 7, 40, 1, { generation: 'a', transaction: 3 }],
      ['host.load.one', 7, 50, 2, { generation: 'a', transaction: 3 }],
    ])
    expect(answer.isCut).toBe(false)
  })

  test('are fewer than there are if the answer says so', () => {
    const answer = sampleOf('*', list(element('a', 40n, 1), [more]))
    expect([answer.elements.length, answer.isCut]).toEqual([1, true])
    expect(sampleOf('*', list()).elements).toEqual([])
  })

  test('of a value that is not a list of records are the value itself', () => {
    for (const value of [VOID, { type: ARRAY, value: { element: UINT32, items: [1] } } as const]) {
      const sample = sampleOf('m', value)
      expect([sample.elements, sample.isCut]).toEqual([[sample], false])
    }
  })
})

test('plain values become arguments of the type that loses nothing', () => {
  const bytes = new Uint8Array([1])
  const values = { s: '7', n: 7, f: 0.5, far: 2 ** 53, i: -1n, u: 2n ** 63n, t: true, o: bytes }
  expect(toArgumentList(values)).toEqual([
    { name: 's', type: BasicType.STRING, value: '7' },
    { name: 'n', type: BasicType.INT64, value: 7n },
    { name: 'f', type: BasicType.DOUBLE, value: 0.5 },
    { name: 'far', type: BasicType.DOUBLE, value: 2 ** 53 },
    { name: 'i', type: BasicType.INT64, value: -1n },
    { name: 'u', type: BasicType.UINT64, value: 2n ** 63n },
    { name: 't', type: BasicType.BOOLEAN, value: true },
    { name: 'o', type: BasicType.OPAQUE, value: bytes },
  ])
})

test.each([
  ['undefined', undefined],
  ['null', null],
  ['an object', {}],
  ['a date', new Date(0)],
  ['an array', [1, 2]],
  ['a map', new Map()],
  ['a view of other elements', new Uint16Array(2)],
  ['a function', () => 1],
  ['a symbol', Symbol('s')],
])('%s is no argument', (_, value) => {
  // As a program in JavaScript may pass it.
  const given = { good: 1, after: value } as unknown as Parameters<typeof toArgumentList>[0]
  expect(() => toArgumentList(given)).toThrow(TypeError)
  expect(() => toArgumentList(given)).toThrow(/argument `after`.*string, number, bigint, boolean or Uint8Array/)
})

test.each([2n ** 64n, -(2n ** 63n) - 1n])('the integer %s is no argument', (value) => {
  expect(() => toArgumentList({ far: value })).toThrow(RangeError)
  expect(() => toArgumentList({ far: value })).toThrow(/argument `far`.*64 bits/)
})

test('bytes of another realm are bytes', () => {
  const bytes: Uint8Array = runInNewContext('new Uint8Array([1])')
  expect(toArgumentList({ o: bytes })).toEqual([{ name: 'o', type: BasicType.OPAQUE, value: bytes }])
})
