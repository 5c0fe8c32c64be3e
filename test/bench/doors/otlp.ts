/**
 * The rows `otlp-gauges` and `otlp-histograms`: a sender hands over a point of each of a thousand series with five attributes in a
 * request, at a steady rate, to Cinnabar, where nobody has bound them or a consumer reads them from a durable channel.
 */
import { encodeMetricsRequest, type OutgoingMetric } from '../../../protocol/otlp/encode.ts'
import { type MetricData, Temporality } from '../../../protocol/otlp/metrics.ts'
import { finish } from '../../../server/kernel/core/fair-work.ts'
import { OTLP_HEADERS } from '../../rig/prometheus-stack.ts'
import type { Row } from './row.ts'
import { cinnabar, costsOf } from './taker.ts'

const METRICS = 50
const SERIES = 1_000
/** So many points a second are sent. */
const RATES = { gauge: 40_000, histogram: 10_000 } as const
const ATTRIBUTES = ['http.request.method', 'http.route', 'url.scheme', 'server.address', 'http.response.status_code']
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export const otlpGaugesRow = rowOf('gauge')
export const otlpHistogramsRow = rowOf('histogram')

function rowOf(kind: keyof typeof RATES): Row {
  return (sizes) => {
    const takers = { cinnabar: () => cinnabar('otlp.*', true), cinnabarUnbound: () => cinnabar('otlp.*', false) }
    const sending = {
      path: '/v1/metrics',
      headers: OTLP_HEADERS,
      values: SERIES,
      rate: RATES[kind],
      body: (nowMs: number) => Uint8Array.from(finish(encodeMetricsRequest(metricsAt(kind, nowMs)))),
    }
    return costsOf(takers, sending, sizes)
  }
}

function metricsAt(kind: keyof typeof RATES, nowMs: number): OutgoingMetric[] {
  return Array.from({ length: METRICS }, (_, metric) => ({
    name: `bench.server.${kind}.${metric}`,
    unit: 's',
    description: 'What the benchmark sends.',
    data: dataAt(kind, nowMs),
  }))
}

function dataAt(kind: keyof typeof RATES, nowMs: number): MetricData {
  const points = Array.from({ length: SERIES / METRICS }, (_, series) => ({
    attributes: ATTRIBUTES.map((key) => ({ key, value: `${key.slice(-8)}-${series}` })),
    start: 0,
    time: nowMs * 1_000,
    isEnd: false,
  }))
  if (kind === 'gauge') return { kind, points: points.map((point) => ({ ...point, value: nowMs % 1e6 })) }
  const filled = { count: BigInt(nowMs), sum: nowMs / 7, min: undefined, max: undefined, bounds: BOUNDS }
  const counts = Array.from({ length: BOUNDS.length + 1 }, (_, bucket) => BigInt((nowMs >> bucket) & 0xffff))
  return {
    kind,
    temporality: Temporality.CUMULATIVE,
    points: points.map((point) => ({ ...point, ...filled, counts })),
  }
}
