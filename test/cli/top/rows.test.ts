import { describe, expect, test } from 'vitest'
import { GONE_MS, type ReceivedValue, sortRows, TopRows } from '../../../cli/top/rows.ts'
import { BasicType, type Field, type Value, VOID } from '../../../client/index.ts'
import { double, rec, string, uint64 } from '../fake-cli.ts'

const of = (name: string, host: string, value: Value): Value =>
  rec(string('name', name), string('host', host), { ...value, name: 'value' } as Field)
const arrival = (name: string, host: string, value: Value): ReceivedValue => ({
  name: 'gmetric.*',
  time: 7,
  value: of(name, host, value),
})
const shown = (rows: TopRows) => [...rows.values()].map(({ metric, where, content }) => [metric, where, content])

/** When an answer came. */
const AT = { nowMs: 9, wallMs: 7 }

describe('rows', () => {
  test('are the latest value of each series', () => {
    const rows = new TopRows()
    rows.take(arrival('gmetric.a', 'n1', double(1)), 0)
    rows.take(arrival('gmetric.a', 'n2', double(2)), 0)
    rows.take(arrival('gmetric.a', 'n1', double(3)), 5)
    expect(shown(rows)).toEqual([
      ['gmetric.a', 'n1', 3],
      ['gmetric.a', 'n2', 2],
    ])
    expect([...rows.values()][0]).toMatchObject({ pattern: 'gmetric.*', arrivedMs: 5, time: 7 })
  })

  test('of a single metric have the name of the subscription', () => {
    const rows = new TopRows()
    rows.take({ name: 'host.load.one', time: 7, value: double(0.5) }, 0)
    rows.take({ name: 'gmetric.a', time: 7, value: rec(string('host', 'n1'), { name: 'value', ...double(1) }) }, 0)
    rows.take(
      { name: 'smon.b', time: 7, value: rec(string('source', 's'), string('index', '3,0'), uint64('value', 9n)) },
      0,
    )
    expect(shown(rows)).toEqual([
      ['host.load.one', '', 0.5],
      ['gmetric.a', 'n1', 1],
      ['smon.b', 's 3,0', 9n],
    ])
  })

  test('long texts and what is no number are kept short', () => {
    const rows = new TopRows()
    rows.take({ name: 'text', time: 7, value: { type: BasicType.STRING, value: 'x'.repeat(5000) } }, 0)
    rows.take({ name: 'record', time: 7, value: rec(string('a', 'b')) }, 0)
    expect(shown(rows).map(([, , content]) => String(content).length)).toEqual([1000, 3])
  })

  test('that are gone are shown for some seconds, and come back with a value', () => {
    const rows = new TopRows()
    for (const host of ['n1', 'n2']) rows.take(arrival('gmetric.a', host, double(1)), 0)
    for (const host of ['n1', 'n2', 'n3']) rows.take(arrival('gmetric.a', host, VOID), 100)
    expect([...rows.values()].map(({ goneMs }) => goneMs)).toEqual([100, 100])
    rows.take(arrival('gmetric.a', 'n2', double(2)), 200)
    rows.expire(99 + GONE_MS)
    expect(rows.size).toBe(2)
    rows.expire(100 + GONE_MS)
    expect(shown(rows)).toEqual([['gmetric.a', 'n2', 2]])
  })

  test('are bounded; one that is gone makes room', () => {
    const rows = new TopRows(2)
    rows.take(arrival('gmetric.a', 'n1', double(1)), 0)
    rows.take(arrival('gmetric.a', 'n2', double(1)), 0)
    expect(rows.isFull).toBe(false)
    rows.take(arrival('gmetric.a', 'n3', double(1)), 0)
    expect({ isFull: rows.isFull, size: rows.size }).toEqual({ isFull: true, size: 2 })
    rows.take(arrival('gmetric.a', 'n1', double(2)), 0)
    rows.take(arrival('gmetric.a', 'n2', VOID), 0)
    rows.take(arrival('gmetric.a', 'n4', double(1)), 0)
    expect(shown(rows)).toEqual([
      ['gmetric.a', 'n1', 2],
      ['gmetric.a', 'n4', 1],
    ])
    expect(rows.isFull).toBe(false)
  })

  test('take the time and age that each value of an answer has for its own, and not for a place', () => {
    const rows = new TopRows()
    const answered = arrival('gmetric.a', 'n1', double(1))
    if (answered.value.type !== BasicType.REC) throw new Error('not a record')
    const time = { name: 'time', type: BasicType.UINT64, value: 3_000n } as const
    const fields = answered.value.value.toSpliced(-1, 0, time)
    rows.seed([{ ...answered, value: { ...answered.value, value: fields } }], 'gmetric.*', undefined, AT)
    const shown = [...rows.values()].map(({ metric, where, time, arrivedMs }) => [metric, where, time, arrivedMs])
    expect(shown).toEqual([['gmetric.a', 'n1', 3_000, 9 - 4]])
  })

  test('begin with what is there, whose age is not known', () => {
    const rows = new TopRows()
    rows.take(arrival('gmetric.a', 'n1', double(1)), 5)
    rows.take(arrival('gmetric.a', 'n2', double(1)), 5)
    const there = [arrival('gmetric.a', 'n1', double(1)), arrival('gmetric.a', 'n3', double(3))]
    rows.seed(there, 'gmetric.*', undefined, AT)
    expect([...rows.values()].map(({ where, arrivedMs, goneMs }) => [where, arrivedMs, goneMs])).toEqual([
      ['n1', 5, undefined],
      ['n2', 5, undefined],
      ['n3', undefined, undefined],
    ])
    rows.seed(there, 'gmetric.*', 5, AT)
    expect([...rows.values()].map(({ goneMs }) => goneMs)).toEqual([undefined, undefined, undefined])
    rows.seed(there, 'gmetric.*', 6, AT)
    expect([...rows.values()].map(({ goneMs }) => goneMs)).toEqual([undefined, 9, undefined])
  })

  test('of another pattern are not gone when they are not in its answer', () => {
    const rows = new TopRows()
    rows.take(arrival('gmetric.a', 'n1', double(1)), 0)
    rows.seed([], 'smon.*', 9, AT)
    expect([...rows.values()][0]?.goneMs).toBeUndefined()
  })
})

describe('sortRows', () => {
  const rows = new TopRows()
  const put = (name: string, host: string, value: Value, ms: number) => rows.take(arrival(name, host, value), ms)
  put('b', 'n1', double(10), 1)
  put('a', 'n2', double(Number.NaN), 4)
  put('a', 'n1', { type: BasicType.UINT64, value: 2n ** 60n }, 2)
  put('c', 'Web', string('', 'text'), 3)
  rows.seed([arrival('d', 'n9', double(-1))], 'gmetric.*', undefined, AT)
  const order = (sort: 'metric' | 'host' | 'value' | 'age', isReversed = false, filter = '') =>
    sortRows(rows.values(), { sort, isReversed, filter }).map(({ metric, where }) => `${metric}@${where}`)

  test.each([
    ['metric', ['a@n1', 'a@n2', 'b@n1', 'c@Web', 'd@n9']],
    ['host', ['c@Web', 'a@n1', 'b@n1', 'a@n2', 'd@n9']],
    ['value', ['a@n1', 'b@n1', 'd@n9', 'a@n2', 'c@Web']],
    ['age', ['a@n2', 'c@Web', 'a@n1', 'b@n1', 'd@n9']],
  ] as const)('sortKeys by %s', (sort, expected) => {
    expect(order(sort)).toEqual(expected)
    expect(order(sort, true)).not.toEqual(expected)
  })

  test('reversed, the smallest comes first', () => {
    expect(order('value', true)).toEqual(['c@Web', 'a@n2', 'd@n9', 'b@n1', 'a@n1'])
  })

  test.each([
    ['WEB', ['c@Web']],
    ['*', ['a@n1', 'a@n2', 'b@n1', 'c@Web', 'd@n9']],
    ['n*1', ['a@n1', 'b@n1']],
    ['w*b', ['c@Web']],
    ['we*eb', []],
    ['*1*', ['a@n1', 'b@n1']],
    ['x', []],
  ])('keeps what is like %j', (filter, expected) => {
    expect(order('metric', false, filter)).toEqual(expected)
  })
})
