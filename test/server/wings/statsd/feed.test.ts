/** A feed alone: a metric that cannot be flushed costs no other its value. */
import { expect, it } from 'vitest'
import { type Quota, Quotas } from '../../../../server/kernel/accounts/quotas.ts'
import type { Steps } from '../../../../server/kernel/core/fair-work.ts'
import type { Series } from '../../../../server/kernel/metrics/metric.ts'
import { LabelledFamily } from '../../../../server/kit/labelled-sensor.ts'
import { StatsdFeed } from '../../../../server/wings/statsd/feed.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const FLUSH_MS = 10_000
const NO_LIMIT = {
  connections: 0,
  channels: 0,
  queuedBytes: 0,
  instances: 0,
  valuesPerSecond: 0,
  controlsPerMinute: 0,
  auditBytesPerDay: 0,
  dialsPerMinute: 0,
  series: 0,
} satisfies Quota

it('reports the fault of a metric, and flushes those after it', () => {
  const clock = new FakeClock()
  const emitted: string[] = []
  const hub = {
    add() {},
    addFamily() {},
    born() {},
    died() {},
    emit({ name }: Series) {
      if (name === 'statsd.evil') throw new Error('not this one')
      emitted.push(name)
    },
  }
  const quotas = new Quotas(() => NO_LIMIT, clock)
  const keptMs = () => 60_000
  const family = new LabelledFamily({ family: 'statsd.', kind: 'statsd', from: 'a test', hub, quotas, clock, keptMs })
  const faults: unknown[] = []
  const feed = new StatsdFeed({
    tenant: 'default',
    allow: [{ address: '127.0.0.0', prefix: 8, family: 'ipv4' }],
    flushMs: FLUSH_MS,
    keepMs: 60_000,
    maxMetrics: 100,
    sensor: family.of('default'),
    node: undefined,
    clock,
    run: (steps: Steps<void>) => void [...steps],
    failed: (error) => faults.push(error),
  })
  for (let round = 1; round <= 2; round++) {
    void [...(feed.datagram(Buffer.from(`before:${round}|g\nevil:1|g\nafter:${round}|g`), '127.0.0.1') ?? [])]
    clock.advance(FLUSH_MS)
    feed.sweep()
  }
  expect(emitted).toEqual(['statsd.before', 'statsd.after', 'statsd.before', 'statsd.after'])
  expect(faults).toEqual([new Error('not this one'), new Error('not this one')])
})
