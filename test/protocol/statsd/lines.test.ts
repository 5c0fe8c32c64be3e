/** Lines of StatsD: the examples of Etsy's server and of the documentation of DogStatsD. */
import { describe, expect, test } from 'vitest'
import { parseLine } from '../../../protocol/statsd/lines.ts'
import { times } from '../../support/long.ts'
import { Random } from '../../support/random.ts'

const plain = { tags: [], isRelative: false, weight: 1, unit: '' }

describe("Etsy's examples", () => {
  test.each([
    ['gorets:1|c', { ...plain, kind: 'counter', name: 'gorets', values: [1] }],
    ['gorets:1|c|@0.1', { ...plain, kind: 'counter', name: 'gorets', values: [1], weight: 10 }],
    ['glork:320|ms|@0.1', { ...plain, kind: 'timer', name: 'glork', values: [320], weight: 10, unit: 'ms' }],
    ['gaugor:333|g', { ...plain, kind: 'gauge', name: 'gaugor', values: [333] }],
    ['gaugor:-10|g', { ...plain, kind: 'gauge', name: 'gaugor', values: [-10], isRelative: true }],
    ['gaugor:+4|g', { ...plain, kind: 'gauge', name: 'gaugor', values: [4], isRelative: true }],
    ['uniques:765|s', { ...plain, kind: 'set', name: 'uniques', values: ['765'] }],
  ])('%s', (line, parsed) => expect(parseLine(line)).toEqual(parsed))
})

describe('those of DogStatsD', () => {
  test.each([
    ['fuel.level:0.5|g', { ...plain, kind: 'gauge', name: 'fuel.level', values: [0.5] }],
    ['song.length:240|h|@0.5', { ...plain, kind: 'timer', name: 'song.length', values: [240], weight: 2 }],
    ['page.views:1:2:32|d', { ...plain, kind: 'timer', name: 'page.views', values: [1, 2, 32] }],
    [
      'users.online:1|c|@0.5|#country:china,beta',
      {
        ...plain,
        kind: 'counter',
        name: 'users.online',
        values: [1],
        weight: 2,
        tags: [
          ['country', 'china'],
          ['beta', 'true'],
        ],
      },
    ],
    [
      'page.views:1|g|#env:dev|c:83c0a99c0a54c0c187f461c7980e9b57f3f6a8b0c918c8d93df19a9de6f3fe1d|T1656581400',
      { ...plain, kind: 'gauge', name: 'page.views', values: [1], tags: [['env', 'dev']] },
    ],
    ['a:2:+5:-3|g', { ...plain, kind: 'gauge', name: 'a', values: [4] }],
    ['a:+5:-3|g', { ...plain, kind: 'gauge', name: 'a', values: [2], isRelative: true }],
    ['a:1|c|@0.000001', { ...plain, kind: 'counter', name: 'a', values: [1], weight: 1e6 }],
    ['a:1|c|#url:http://x', { ...plain, kind: 'counter', name: 'a', values: [1], tags: [['url', 'http://x']] }],
  ])('%s', (line, parsed) => expect(parseLine(line)).toEqual(parsed))

  test.each([
    '_e{21,36}:An exception occurred|Cannot parse CSV file from 10.0.0.17|t:warning|#err_type:bad_file',
    '_sc|Redis connection|2|#env:dev|m:Redis connection timed out after 10s',
    '',
  ])('no metric: %s', (line) => expect(parseLine(line)).toBeUndefined())
})

describe('members of sets are texts, which may contain colons', () => {
  test.each([
    ['set.colon:::1|s', '::1'],
    ['visitors:10.0.0.1:8080|s', '10.0.0.1:8080'],
    ['visitors:|s', ''],
  ])('%s', (line, member) => expect(parseLine(line)).toMatchObject({ kind: 'set', values: [member] }))
})

test('a second # before tags, as a client in PHP writes it (prometheus/statsd_exporter#34)', () => {
  const tags = [
    ['a', 'b'],
    ['c', 'd'],
  ]
  expect(parseLine('foo:100|c|##a:b,#c:d')).toMatchObject({ name: 'foo', tags })
  expect(parseLine('foo,#a=b:100|c')).toMatchObject({ name: 'foo', tags: [['#a', 'b']] })
})

test('tags of Graphite and InfluxDB', () => {
  const tags = [
    ['env', 'prod'],
    ['az', 'b'],
  ]
  expect(parseLine('a.b;env=prod;az=b:1|c')).toMatchObject({ name: 'a.b', tags })
  expect(parseLine('a.b,env=prod,az=b:1|c')).toMatchObject({ name: 'a.b', tags })
  expect(parseLine('a,env=prod:1|c|#az:b')).toMatchObject({ name: 'a', tags })
})

describe('what is bad', () => {
  test.each([
    ['a', 'no name:value|type'],
    ['a:1', 'no name:value|type'],
    [':1|c', 'no name:value|type'],
    [',a=b:1|c', 'no name'],
    ['a:1|x', 'no type "x"'],
    ['a:1|__proto__', 'no type "__proto__"'],
    ['a:|c', 'a value that is no number'],
    ['a:0x10|c', 'a value that is no number'],
    ['a:NaN|g', 'a value that is no number'],
    ['a:1:x|ms', 'a value that is no number'],
    ['a:1e999|g', 'a number that is too large'],
    ['a:1:-1e999|ms', 'a number that is too large'],
    ['x:1|ms|@1e-320', 'a sample rate that is not from 0.000001 to 1'],
    ['valid:0|ms|@0.000000001', 'a sample rate that is not from 0.000001 to 1'],
    ['a:1|c|@0', 'a sample rate that is not from 0.000001 to 1'],
    ['a:1|c|@2', 'a sample rate that is not from 0.000001 to 1'],
    ['foo:-1|c', 'a counter that would go back'],
    ['a:1:-7:3|c', 'a counter that would go back'],
    ['a:1e308:+1e308|g', 'a number that is too large'],
    [`a:${'1:'.repeat(1024)}1|ms`, 'more than 1024 values'],
    [`a:1|c|#${'t,'.repeat(66)}`, 'more than 64 tags'],
  ])('%s', (line, problem) => expect(parseLine(line)).toEqual({ problem }))

  test('random lines are taken, passed over, or bad', () => {
    const random = new Random(3)
    const parts = [
      'a',
      ':',
      '|',
      'c',
      'g',
      'ms',
      's',
      '@',
      '#',
      ',',
      ';',
      '=',
      '1',
      '-',
      '0.5',
      '_e{',
      '\u{1f600}',
      '\0',
    ]
    for (let round = 0; round < times({ short: 5_000, long: 20_000 }); round++) {
      const line = Array.from({ length: random.below(14) }, () => random.pick(parts)).join('')
      const parsed = parseLine(line)
      if (parsed === undefined || 'problem' in parsed) continue
      expect(parsed.name).not.toBe('')
      for (const value of parsed.values) if (typeof value === 'number') expect(Number.isFinite(value)).toBe(true)
    }
  })
})
