/** `producer.series`: what a question costs that few series answer. What the list says is in test/server/rules/section-9-series.test.ts. */
import { expect, it } from 'vitest'
import type { Steps } from '../../../../server/kernel/core/fair-work.ts'
import type { Labels, ListeningSensor, Series } from '../../../../server/kernel/metrics/metric.ts'
import { seriesView } from '../../../../server/kernel/producer/series.ts'
import { Metrics, rights, tester } from '../metrics/fixture.ts'

const COUNT = 3_000

/** A sensor with many series of one metric, and which of their labels were read how often. */
function manySeries() {
  const reads = new Map<string, number>()
  const counted = (labels: Labels): Labels =>
    new Proxy(labels, {
      get(all, label) {
        reads.set(String(label), (reads.get(String(label)) ?? 0) + 1)
        return all[String(label)]
      },
    })
  const all = Array.from({ length: COUNT }, (_, n): Series => {
    const labels = counted({ name: 'many.a', host: n % 1_000 === 0 ? `h${n}` : '', job: `j${n}` })
    return { name: 'many.a', labels, subscriptions: [], matches: () => false }
  })
  const metric = { name: 'many.a', kind: 'continuous', type: 6, unit: '', description: '', parameters: [] } as const
  const sensor: ListeningSensor = {
    polled: false,
    family: 'many.',
    owner: { tenant: 'default' },
    hasOpenLabels: true,
    metrics: () => [metric],
    metric: () => metric,
    series: () => all,
    last: () => undefined,
  }
  return { sensor, reads }
}

it.each([
  ['host', { host: 'h1000' }],
  ['host', { with: 'host' }],
])('reads one label of the series that a question of `%s` does not select, many in one step', (label, given) => {
  const { hub, clock } = new Metrics()
  const { sensor, reads } = manySeries()
  hub.add(sensor)
  const view = seriesView({ hub, rights, clock })
  let steps = 0
  for (const _ of view.show(tester, new Map(Object.entries(given))) as Steps<unknown>) steps++
  expect(steps).toBeLessThan(COUNT / 10)
  expect(reads.get(label)).toBeGreaterThanOrEqual(COUNT)
  for (const [other, times] of reads) if (other !== label) expect(times, other).toBeLessThan(COUNT / 10)
})
