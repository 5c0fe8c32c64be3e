/** Requests of OTLP as they are written: what an exporter of OpenTelemetry has written says the same when it is written again. */
import { ProtobufMetricsSerializer } from '@opentelemetry/otlp-transformer'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  AggregationType,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { expect, test } from 'vitest'
import { decodeAnswer, encodeMetricsRequest } from '../../../protocol/otlp/encode.ts'
import type { MetricData, OtlpMetric } from '../../../protocol/otlp/metrics.ts'
import { decodeMetrics, encodeAnswer } from '../../../protocol/otlp/protobuf.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'

const decode = (bytes: Uint8Array) => finish(decodeMetrics(bytes, { elements: 100_000 }))
const metricsIn = (bytes: Uint8Array): readonly OtlpMetric[] => decode(bytes)[0]?.scopes[0]?.metrics ?? []
const again = (metrics: readonly OtlpMetric[]): readonly OtlpMetric[] =>
  metricsIn(finish(encodeMetricsRequest(metrics as (OtlpMetric & { data: MetricData })[])))

test('sums, gauges and histograms of both kinds are the same again', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const aggregation = { type: AggregationType.EXPONENTIAL_HISTOGRAM } as const
  const views = [{ instrumentName: 'sizes', aggregation }]
  const provider = new MeterProvider({ resource: emptyResource(), readers: [reader], views })
  const meter = provider.getMeter('m')
  meter.createCounter('count', { unit: 'By', description: 'Bytes.' }).add(7, { to: 'x', from: 'ü' })
  meter.createUpDownCounter('level').add(-2)
  meter.createGauge('now').record(0.25, { a: 'b' })
  const latency = meter.createHistogram('latency', { advice: { explicitBucketBoundaries: [1, 2] } })
  for (const value of [0.5, 1.5, 9]) latency.record(value, { to: 'x' })
  for (const value of [0, 1, 8]) meter.createHistogram('sizes').record(value)
  await reader.forceFlush()
  const [written] = exporter.getMetrics()
  const bytes = ProtobufMetricsSerializer.serializeRequest(written as never) as Uint8Array
  await provider.shutdown()
  const metrics = metricsIn(bytes)
  expect(metrics.map(({ data }) => data?.kind).sort()).toEqual([
    'exponential-histogram',
    'gauge',
    'histogram',
    'sum',
    'sum',
  ])
  expect(again(metrics)).toEqual(metrics)
})

test('summaries, ends and whole numbers are written by their definitions', () => {
  const point = { attributes: [{ key: 'k', value: 'v' }], start: 0, time: 1_000_000, isEnd: false }
  const metrics: OtlpMetric[] = [
    {
      name: 's',
      unit: '',
      description: '',
      data: {
        kind: 'summary',
        points: [{ ...point, count: 2n, sum: 3, quantiles: [{ quantile: 0.5, value: 1.5 }] }],
      },
    },
    {
      name: 'e',
      unit: '',
      description: '',
      data: { kind: 'gauge', points: [{ ...point, isEnd: true, value: undefined }] },
    },
    { name: 'i', unit: '', description: '', data: { kind: 'gauge', points: [{ ...point, value: -5n }] } },
  ]
  expect(again(metrics)).toEqual(metrics)
  const [only] = [metrics[2] as OtlpMetric & { data: MetricData }]
  const hex = Buffer.from(finish(encodeMetricsRequest([only]))).toString('hex')
  // resource_metrics = 1, scope_metrics = 2, metrics = 2, name = 1, gauge = 5, data_points = 1, time_unix_nano = 3 (fixed64),
  // as_int = 6 (sfixed64), attributes = 7, key = 1, value = 2, string_value = 1.
  const expected = `0a 27 12 25 12 23  0a 01 69  2a 1e  0a 1c
    19 00ca9a3b00000000  31 fbffffffffffffff  3a 08  0a 01 6b  12 03 0a 01 76`
  expect(hex).toBe(expected.replaceAll(/\s/g, ''))
})

test('an answer says what was not taken', () => {
  expect(decodeAnswer(encodeAnswer(3, 'why'))).toEqual({ rejected: 3, message: 'why' })
  expect(decodeAnswer(new Uint8Array(0))).toEqual({ rejected: 0, message: '' })
  expect(() => decodeAnswer(Uint8Array.from([0x0a, 0xff]))).toThrow()
})
