/** What a scrape of Prometheus brought in goes out under its own names, with its types; with a prefix where that is asked for. */
import { expect, test } from 'vitest'
import { BasicType } from '../../../../../protocol/monitor/constants.ts'
import { Exposition } from '../../../../../protocol/prometheus/exposition.ts'
import { SampleWriter } from '../../../../../server/edge/http/metrics/samples.ts'
import { labelsFrom } from '../../../../../server/kernel/metrics/labels.ts'
import type { Metric } from '../../../../../server/kernel/metrics/metric.ts'

const described = (name: string, more: Partial<Metric>): Metric => {
  return {
    name: `prometheus.${name}`,
    kind: 'continuous',
    type: undefined,
    unit: '',
    description: '',
    parameters: [],
    ...more,
  }
}

/** Names and types of a program in Go, as its client library gives them. */
const scraped: readonly (readonly [metric: Metric, labels: Record<string, string>, value: number])[] = [
  [described('go_alloc_bytes', { isCounter: false, description: 'In use.' }), {}, 5],
  [described('go_alloc_bytes_total', { isCounter: true, description: 'Ever.' }), {}, 7],
  [described('hh_bucket', { isCounter: true, distribution: 'histogram' }), { le: '+Inf' }, 3],
  [described('hh_bucket', { isCounter: true, distribution: 'histogram' }), { le: '0.5' }, 1],
  [described('hh_count', { isCounter: true, distribution: 'histogram' }), {}, 3],
  [described('hh_sum', { isCounter: true, distribution: 'histogram' }), {}, 2.5],
  [described('gc_seconds', { isCounter: false, distribution: 'summary' }), { quantile: '0.5' }, 0.25],
  [described('gc_seconds_count', { isCounter: true, distribution: 'summary' }), {}, 9],
]

function written(isPrefixed: boolean): string {
  const exposition = new Exposition('prometheus')
  const writer = new SampleWriter({ exposition, hasTimes: false, isPrefixed, now: 0 })
  for (const [metric, labels, value] of scraped) {
    const measured = { value: { type: BasicType.DOUBLE, value }, time: 0 } as const
    writer.add({ metric, labels: labelsFrom([['name', metric.name], ...Object.entries(labels)]), measured })
  }
  return [...exposition.text()].join('')
}

test('own names, families and types', () => {
  expect(written(false)).toBe(`# TYPE gc_seconds summary
gc_seconds{quantile="0.5"} 0.25
gc_seconds_count 9
# HELP go_alloc_bytes In use.
# TYPE go_alloc_bytes gauge
go_alloc_bytes 5
# HELP go_alloc_bytes_total Ever.
# TYPE go_alloc_bytes_total counter
go_alloc_bytes_total 7
# TYPE hh histogram
hh_bucket{le="0.5"} 1
hh_bucket{le="+Inf"} 3
hh_count 3
hh_sum 2.5
`)
})

test('`names=prefixed`: names as they were before', () => {
  const names = [...written(true).matchAll(/^# TYPE (.*)$/gm)].map(([, line]) => line)
  expect(names).toEqual([
    'prometheus_gc_seconds gauge',
    'prometheus_gc_seconds_count_total counter',
    'prometheus_go_alloc_bytes gauge',
    'prometheus_go_alloc_bytes_total counter',
    'prometheus_hh_bucket_total counter',
    'prometheus_hh_count_total counter',
    'prometheus_hh_sum_total counter',
  ])
})
