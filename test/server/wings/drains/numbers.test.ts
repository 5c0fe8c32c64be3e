/** Numbers that are not finite, in the requests of drains: as each protocol has them. */
import { expect, test } from 'vitest'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../../protocol/monitor/value.ts'
import { decodeMetrics } from '../../../../protocol/otlp/protobuf.ts'
import { decodeWriteRequest, decompress } from '../../../../protocol/prometheus/remote-write.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { otlpWire } from '../../../../server/wings/drains/otlp.ts'
import { remoteWrite } from '../../../../server/wings/drains/prometheus.ts'

const { ARRAY, DOUBLE, REC, UINT64 } = BasicType
const { NaN: NAN, POSITIVE_INFINITY: INFINITY, NEGATIVE_INFINITY, MAX_VALUE } = Number
const LIMITS = { bytes: 1 << 24, elements: 1_000_000 }
const EPOCH = 1_700_000_000_000_000

const outgoing = (value: Value) => [{ transaction: 1, name: 'm', labels: [], value, time: EPOCH }]
const double = (value: number): Value => ({ type: DOUBLE, value })
const doubles = (name: string, items: readonly number[]): Field => ({
  name,
  type: ARRAY,
  value: { element: DOUBLE, items },
})
const counts = (items: readonly bigint[]): Field => ({ name: 'counts', type: ARRAY, value: { element: UINT64, items } })
const count: Field = { name: 'count', type: UINT64, value: 3n }
const sum: Field = { name: 'sum', type: DOUBLE, value: NEGATIVE_INFINITY }
const rec = (...fields: readonly Field[]): Value => ({ type: REC, value: fields })

function written(value: Value): string[] {
  const { request } = finish(
    remoteWrite(
      () => undefined,
      () => 0,
    ).encode(outgoing(value)),
  )
  const { series } = finish(decodeWriteRequest(decompress(request?.body as Uint8Array, LIMITS), LIMITS))
  return series.flatMap(({ name, labels, samples }) => {
    const texts = labels.map(([label, text]) => `${label}=${text}`).join(',')
    return samples.map(({ value }) => `${name}{${texts}} ${value}`)
  })
}

function exported(value: Value) {
  const { request } = finish(otlpWire(() => undefined).encode(outgoing(value)))
  const [resource] = finish(decodeMetrics(request?.body as Uint8Array, LIMITS))
  return (
    resource?.scopes[0]?.metrics.map(({ name, data }) => ({ name, kind: data?.kind, point: data?.points[0] })) ?? []
  )
}

test.each([NAN, INFINITY, NEGATIVE_INFINITY, MAX_VALUE, -0])('%d is a sample and a point', (number) => {
  expect(written(double(number))).toEqual([`m{} ${String(number)}`])
  expect(exported(double(number))).toMatchObject([{ name: 'm', kind: 'gauge', point: { value: number } }])
})

test('a bucket up to infinity is there once, and called +Inf', () => {
  const histogram = rec(count, sum, doubles('bounds', [-1, 0.5, INFINITY]), counts([0n, 1n, 2n, 0n]))
  expect(written(histogram)).toEqual([
    'm_bucket{le=-1} 0',
    'm_bucket{le=0.5} 1',
    'm_bucket{le=+Inf} 3',
    'm_count{} 3',
    'm_sum{} -Infinity',
  ])
  expect(exported(histogram)).toMatchObject([{ kind: 'histogram', point: { bounds: [-1, 0.5], counts: [0n, 1n, 2n] } }])
})

test('bounds that do not ascend make no histogram: its numbers are sent alone', () => {
  const odd = rec(count, sum, doubles('bounds', [1, NAN]), counts([1n, 1n, 1n]))
  expect(written(odd)).toEqual(['m_count{} 3', 'm_sum{} -Infinity'])
  expect(exported(odd).map(({ name, kind }) => `${name} ${kind}`)).toEqual(['m.count gauge', 'm.sum gauge'])
})

test('a start that no time can have is left out', () => {
  const start: Field = { name: 'start', type: UINT64, value: 2n ** 64n - 1n }
  const histogram = rec(start, count, doubles('bounds', []), counts([3n]))
  expect(exported(histogram)).toMatchObject([{ kind: 'histogram', point: { start: 0, time: EPOCH } }])
})
