/** Answers letter by letter, as Prometheus writes them: times, numbers, labels, each kind of result, and the pieces of long ones. */
import { expect, it } from 'vitest'
import { LabelSet } from '../../../../../promql/label-set.ts'
import {
  jsonLabels,
  jsonNumber,
  jsonTime,
  listTexts,
  resultTexts,
  successTexts,
} from '../../../../../server/edge/http/query/json.ts'

const whole = (texts: Iterable<string>) => [...texts].join('')

it.each([
  [0, '0'],
  [1, '0.001'],
  [-1, '-0.001'],
  [1_700_000_000_000, '1700000000'],
  [1_700_000_000_120, '1700000000.120'],
  [-1_500, '-1.500'],
])('the time %d is %s', (ms, text) => {
  expect(jsonTime(ms)).toBe(text)
})

it.each([
  [0, '0'],
  [-0, '-0'],
  [1, '1'],
  [0.1, '0.1'],
  [1e-6, '0.000001'],
  [9.9e-7, '9.9e-07'],
  [1e-10, '1e-10'],
  [1e20, '100000000000000000000'],
  [1e21, '1e+21'],
  [-1.5e300, '-1.5e+300'],
  [5e-324, '5e-324'],
  [Number.NaN, 'NaN'],
  [Number.POSITIVE_INFINITY, '+Inf'],
  [Number.NEGATIVE_INFINITY, '-Inf'],
])('the number %d is %s', (value, text) => {
  expect(jsonNumber(value)).toBe(text)
})

it('labels are texts of JSON', () => {
  expect(jsonLabels([])).toBe('{}')
  expect(
    jsonLabels([
      ['a"b', 'x\n\\'],
      ['__proto__', '\u{1f600}'],
    ]),
  ).toBe('{"a\\"b":"x\\n\\\\","__proto__":"\u{1f600}"}')
})

it('lists may be empty', () => {
  expect(whole(listTexts([]))).toBe('[]')
  expect(whole(listTexts(['1', '2']))).toBe('[1,2]')
})

it('what is remarkable comes after the data', () => {
  expect(whole(successTexts(['1']))).toBe('{"status":"success","data":1}')
  expect(whole(successTexts(['1'], { warnings: ['a"'], infos: ['b'] }))).toBe(
    '{"status":"success","data":1,"warnings":["a\\""],"infos":["b"]}',
  )
})

const labels = LabelSet.of([['job', 'x']])

it('each kind of result has its form', () => {
  expect(whole(resultTexts({ type: 'scalar', timeMs: 1_500, value: Number.NaN }))).toBe(
    '{"resultType":"scalar","result":[1.500,"NaN"]}',
  )
  expect(whole(resultTexts({ type: 'string', timeMs: 0, text: '"' }))).toBe(
    '{"resultType":"string","result":[0,"\\""]}',
  )
  expect(whole(resultTexts({ type: 'vector', timeMs: 0, samples: [] }))).toBe('{"resultType":"vector","result":[]}')
  expect(whole(resultTexts({ type: 'vector', timeMs: 0, samples: [{ labels, value: 2 }] }))).toBe(
    '{"resultType":"vector","result":[{"metric":{"job":"x"},"value":[0,"2"]}]}',
  )
  expect(whole(resultTexts({ type: 'matrix', series: [] }))).toBe('{"resultType":"matrix","result":[]}')
})

it.each([1, 255, 256, 257, 512])('a series of %d points is in pieces, and whole', (count) => {
  const times = Float64Array.from({ length: count }, (_, index) => index * 1_000)
  const series = [{ labels, times, values: times }]
  const texts = [...resultTexts({ type: 'matrix', series: [...series, ...series] })]
  expect(Math.max(...texts.map(({ length }) => length))).toBeLessThan(256 * 16 + 64)
  const values = Array.from(times, (ms) => [ms / 1_000, String(ms)])
  const one = { metric: { job: 'x' }, values }
  expect(JSON.parse(texts.join(''))).toEqual({ resultType: 'matrix', result: [one, one] })
})
