import pc from 'picocolors'
import { expect, test } from 'vitest'
import { formatTable, toJson, toLine, toTable, toText } from '../../cli/output.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { ValueMessage } from '../../protocol/monitor/message.ts'
import type { Field, Value } from '../../protocol/monitor/value.ts'
import { double, list, MORE, rec, string, TIME, uint32, uint64 } from './fake-cli.ts'

const plain = pc.createColors(false)
const NOW_MS = TIME / 1000 + 59_990
const message = (value: Value): ValueMessage => ({ kind: 'value', metric: 7, transaction: 0, time: TIME, value })
const hosts = list([string('host', 'n1'), uint32('value', 42)], [string('host', 'node22'), uint32('value', 7)], MORE)

test('a list without times of its own is a table with units; the time is only that of the newest', () => {
  expect(toText('gmetric.foo', message(hosts), { unitOf: () => 'MB', colors: plain, nowMs: NOW_MS })).toBe(
    ['HOST    VALUE', 'n1      42 MB', 'node22   7 MB', 'newest value: 2023-11-14 22:13:20.005'].join('\n'),
  )
})

const timed = list(
  [string('host', 'n1'), uint64('time', BigInt(TIME - 5_000)), uint32('value', 42)],
  [string('host', 'node22'), uint32('value', 7)],
  [string('host', 'n3'), uint64('time', BigInt(TIME)), uint32('value', 8)],
)

test('each value that has a time of its own shows it', () => {
  expect(toText('gmetric.foo', message(timed), { unitOf: () => 'MB', colors: plain, nowMs: NOW_MS })).toBe(
    [
      'HOST    VALUE  TIME',
      'n1      42 MB  2023-11-14 22:13:20.000',
      'n3       8 MB  2023-11-14 22:13:20.005',
      'node22   7 MB',
    ].join('\n'),
  )
  expect(toJson('gmetric.foo', message(timed))).toEqual([
    { metric: 'gmetric.foo', time: TIME - 5_000, host: 'n1', value: 42 },
    { metric: 'gmetric.foo', time: TIME, host: 'node22', value: 7 },
    { metric: 'gmetric.foo', time: TIME, host: 'n3', value: 8 },
  ])
})

test('a value that is old says how old it is', () => {
  const [nowMs, colors] = [TIME / 1000 + 60_000, pc.createColors(true)]
  expect(toText('a', message(double(0.5)), { unitOf: () => '', colors: plain, nowMs })).toBe(
    'a  0.5  2023-11-14 22:13:20.005  1 min ago',
  )
  const mixed = list(
    [string('host', 'n1'), uint64('time', BigInt(TIME - 3_600_000_000)), uint32('value', 1)],
    [string('host', 'n2'), uint64('time', BigInt(TIME + 1)), uint32('value', 2)],
  )
  expect(toText('a', message(mixed), { unitOf: () => '', colors: plain, nowMs })).toBe(
    ['HOST  VALUE  TIME', 'n1        1  2023-11-14 21:13:20.005  1 h ago', 'n2        2  2023-11-14 22:13:20.005'].join(
      '\n',
    ),
  )
  expect(toText('a', message(double(0.5)), { unitOf: () => '', colors, nowMs })).toContain('\x1b[33m2023')
})

test('a list of one value shows its time in a column', () => {
  const one = list([string('host', 'n1'), uint32('value', 42)])
  expect(toText('gmetric.foo', message(one), { unitOf: () => 'MB', colors: plain, nowMs: NOW_MS })).toBe(
    ['HOST  VALUE  TIME', 'n1    42 MB  2023-11-14 22:13:20.005'].join('\n'),
  )
})

test('records that differ share one table', () => {
  const table = toTable([[string('a', 'x')], [string('b', 'y')]], { colors: plain })
  expect(table).toBe(['A  B', 'x', '   y'].join('\n'))
})

test('a single value is a line with unit and time, a record a line for each field', () => {
  expect(toText('host.load.one', message(double(0.42)), { unitOf: () => '%', colors: plain, nowMs: NOW_MS })).toBe(
    'host.load.one  0.4 %  2023-11-14 22:13:20.005',
  )
  expect(
    toText('producer.stats', message(rec(string('name', 'n'), uint32('channels', 2))), {
      unitOf: () => '',
      colors: plain,
      nowMs: NOW_MS,
    }),
  ).toBe('name      n\nchannels  2')
})

test('a plain number has no unit to show', () => {
  expect(toText('a', message(double(0.5)), { unitOf: () => '1', colors: plain, nowMs: NOW_MS })).toBe(
    'a  0.5  2023-11-14 22:13:20.005',
  )
})

test('a line tells the time of day, who it is about, and the value', () => {
  expect(toLine('host.load.one', message(double(0.5)), { unitOf: () => '', colors: plain })).toBe(
    '22:13:20.005  host.load.one  0.5',
  )
  const open = rec(string('name', 'gmetric.a'), string('host', 'n1'), uint32('value', 42))
  expect(toLine('gmetric.*', message(open), { unitOf: () => '', colors: plain })).toBe(
    '22:13:20.005  gmetric.a  n1  42',
  )
  expect(toLine('producer.notices', message(rec(string('text', 'x y'))), { unitOf: () => '', colors: plain })).toBe(
    '22:13:20.005  producer.notices  text=x y',
  )
})

test('JSON has an object for each value, with exact numbers', () => {
  expect(toJson('gmetric.foo', message(hosts))).toEqual([
    { metric: 'gmetric.foo', time: TIME, host: 'n1', value: 42 },
    { metric: 'gmetric.foo', time: TIME, host: 'node22', value: 7 },
  ])
  expect(toJson('a', message(double(1 / 3)))).toEqual([{ metric: 'a', time: TIME, value: 1 / 3 }])
  const big: Value = { type: BasicType.REC, value: [uint64('bytes', 2n ** 60n)] }
  expect(toJson('a', message(big))).toEqual([{ metric: 'a', time: TIME, bytes: '1152921504606846976' }])
})

test('colours are used if the terminal has them', () => {
  expect(toLine('a', message(double(1)), { unitOf: () => '', colors: pc.createColors(true) })).toContain(
    '\x1b[1m1\x1b[22m',
  )
  expect(toText('a', message(hosts), { unitOf: () => '', colors: pc.createColors(true), nowMs: NOW_MS })).toContain(
    '\x1b[1mHOST',
  )
})

test('the values of a pattern have each their own unit', () => {
  const list = message({
    type: BasicType.ARRAY,
    value: {
      element: BasicType.REC,
      items: [
        [string('name', 'a'), uint32('value', 1)],
        [string('name', 'b'), uint32('value', 2)],
      ],
    },
  })
  const text = toText('*', list, { unitOf: (name) => (name === 'a' ? 'B' : ''), colors: plain, nowMs: NOW_MS })
  expect(text.split('\n').slice(0, 3)).toEqual(['NAME  VALUE', 'a       1 B', 'b         2'])
})

test('values come in natural order, numbers to the right, in units of people or as they are', () => {
  const named = (name: string, value: Value) => [string('name', name), { ...value, name: 'value' } as Field]
  const values = message(list(named('m_10', double(2.5 * 2 ** 30)), named('m_2', double(12)), named('m_1', double(7))))
  const showing = { unitOf: (name: string) => (name === 'm_10' ? 'B' : '%'), colors: plain, nowMs: NOW_MS }
  const table = (isExact: boolean) =>
    toText('m_*', values, { ...showing, isExact })
      .split('\n')
      .slice(0, -1)
  expect(table(false)).toEqual(['NAME     VALUE', 'm_1      7.0 %', 'm_2     12.0 %', 'm_10  2.50 GiB'])
  expect(table(true)).toEqual(['NAME         VALUE', 'm_1            7 %', 'm_2           12 %', 'm_10  2684354560 B'])
})

test('a table fits the terminal: text is broken between words, and numbers are not', () => {
  const columns = [{ head: 'name' }, { head: 'count', align: 'right' }, { head: 'what it is' }] as const
  const rows = [
    ['gmetric.a', '1234567', 'the number of things that wait somewhere'],
    ['gmetric.much_longer.than_others', '1', 'short'],
  ]
  const lines = formatTable(columns, rows, plain, 50).split('\n')
  expect(lines).toEqual([
    'NAME                    COUNT  WHAT IT IS',
    'gmetric.a             1234567  the number of',
    '                               things that wait',
    '                               somewhere',
    'gmetric.much_longer.        1  short',
    'than_others',
  ])
  const wide = formatTable(columns, rows, plain, 200).split('\n')
  expect(wide).toHaveLength(3)
})
