/** `producer.catalogue`: an event when metrics come, go, or are described in another way; for those who may read them. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { Identity } from '../../../../auth/permissions.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { Quotas } from '../../../../server/kernel/accounts/quotas.ts'
import { Hub } from '../../../../server/kernel/metrics/hub.ts'
import type { Measurement } from '../../../../server/kernel/metrics/metric.ts'
import { CatalogueChanges } from '../../../../server/kernel/producer/catalogue-changes.ts'
import { LabelledFamily, type LabelledSensor } from '../../../../server/kit/labelled-sensor.ts'
import type { LabelledSeries } from '../../../../server/kit/labelled-series.ts'
import { defaultConfig } from '../../../../server/start/config.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const clock = new FakeClock()
let hub: Hub
let family: LabelledFamily
let changes: CatalogueChanges
let heard: string[]

function listen(tenant: string, role = 'consumer'): () => void {
  const [metric] = changes.metrics()
  if (metric === undefined) throw new Error('it has no metric')
  const identity = { userId: 1, tenant, name: 'reader', role } as Identity
  return changes.subscribe(metric, identity, ({ value }: Measurement) => {
    expect(value.type).toBe(BasicType.REC)
    heard.push(`${role} of ${tenant}`)
  })
}

/** Who was told, in one second. */
function sweep(): string[] {
  heard = []
  changes.sweep()
  return heard.sort()
}

function series(sensor: LabelledSensor, name: string, host: string): LabelledSeries {
  const made = sensor.of(name, [['host', host]])
  if ('refused' in made) throw new Error(made.detail)
  return made
}

beforeEach(() => {
  hub = new Hub(clock)
  const quotas = new Quotas(() => ({ ...defaultConfig().quota, queuedBytes: 0, historyBytes: 0 }), clock)
  family = new LabelledFamily({
    family: 'otlp.',
    kind: 'otlp',
    from: 'tests',
    hub,
    quotas,
    clock,
    keptMs: () => 60_000,
  })
  changes = new CatalogueChanges(() => hub.sensors, clock)
})

describe('producer.catalogue', () => {
  it('is an event for those whose catalogue it is', () => {
    const [east, west] = [family.of('east'), family.of('west')]
    listen('east')
    listen('west')
    listen('south', 'admin')
    expect(sweep()).toEqual([])
    series(east, 'otlp.a', 'h1')
    expect(sweep()).toEqual(['admin of south', 'consumer of east'])
    series(west, 'otlp.a', 'h1')
    expect(sweep()).toEqual(['admin of south', 'consumer of west'])
    expect(sweep()).toEqual([])
  })

  it('says that a metric is described in another way, but not that there is another series of it', () => {
    const sensor = family.of('east')
    const first = series(sensor, 'otlp.a', 'h1')
    listen('east')
    const metadata = { type: BasicType.DOUBLE, unit: 's', description: 'How long' }
    sensor.describe(first, metadata)
    expect(sweep()).toEqual(['consumer of east'])
    const second = series(sensor, 'otlp.a', 'h2')
    sensor.describe(second, metadata)
    expect(sweep()).toEqual([])
    sensor.describe(second, { ...metadata, unit: 'ms' })
    expect(sweep()).toEqual(['consumer of east'])
    sensor.died(first)
    expect(sweep()).toEqual(['consumer of east'])
  })

  it('says that a metric or a sensor comes or goes', () => {
    const sensor = family.of('east')
    listen('east')
    const only = series(sensor, 'otlp.a', 'h1')
    expect(sweep()).toEqual(['consumer of east'])
    sensor.died(only)
    expect(sweep()).toEqual(['consumer of east'])
    hub.add(changes)
    expect(sweep()).toEqual(['consumer of east'])
  })

  it('ends with its subscription', () => {
    const end = listen('east')
    family.of('east')
    end()
    expect(sweep()).toEqual([])
  })
})
