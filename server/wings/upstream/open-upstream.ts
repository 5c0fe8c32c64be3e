/** Makes an upstream, or a link to a node: its values are paced with all feeds, and count for the quota of its tenant. */
import { ValueMeter } from '../../kernel/accounts/quotas.ts'
import { Pacer } from '../../kit/io/pacer.ts'
import type { SourceContext } from '../../kit/source.ts'
import type { UpstreamTable } from './config.ts'
import { Position } from './position.ts'
import type { UpstreamReport } from './report.ts'
import type { UpstreamSensor } from './sensor.ts'
import { StoredBindings } from './stored-bindings.ts'
import { Upstream, type UpstreamNode, type UpstreamOptions } from './upstream.ts'

/** What is stored of an upstream. */
export type KeptUpstream = Pick<UpstreamOptions, 'position' | 'stored'>

/** `name`: `tenant/name`. */
export function keptUpstream({ upstreams, upstreamBindings, journal }: SourceContext, name: string): KeptUpstream {
  const row = upstreams.find((row) => row.name === name)
  const position = new Position(name, row, journal)
  const rows = upstreamBindings.filter(({ upstream }) => upstream === name)
  return { position, stored: new StoredBindings({ upstream: name, position, journal, rows }) }
}

export interface OpenUpstreamOptions extends KeptUpstream {
  readonly table: UpstreamTable
  readonly report: UpstreamReport
  /** It becomes one of those of this sensor. */
  readonly sensor: UpstreamSensor
  /** Set if it is a node of this producer. */
  readonly peerNode?: UpstreamNode
}

/** It has no connections before `start`. */
export function openUpstream(context: SourceContext, options: OpenUpstreamOptions): Upstream {
  const { quotas, clock, pacing, producer, hub } = context
  const { table, sensor } = options
  const meter = quotas.of(table.tenant).values
  const limit = table.valuesPerSecond === 0 ? Number.POSITIVE_INFINITY : table.valuesPerSecond
  const own = new ValueMeter(
    () => limit,
    () => clock.monotonicMs(),
  )
  const both = {
    take: () => own.take() && meter.take(),
    get waitMs() {
      return Math.max(own.waitMs, meter.waitMs)
    },
  }
  const whenStored = (resume: () => void): void => {
    const { waitMs } = both
    if (waitMs > 0) clock.setTimeout(resume, waitMs)
    else pacing.journal.wait({ durable: resume })
  }
  const upstream = new Upstream({
    ...context,
    ...options,
    meter: both,
    pacer: new Pacer({
      storage: { behind: () => both.waitMs > 0 || pacing.behind(), whenStored },
      turns: pacing.turns,
      clock,
      failed: (error) => hub.faults.report(sensor, error),
    }),
    id: producer.id,
    producersChanged: () => hub.producersChanged(sensor),
    catalogued: (upstream, before) => sensor.changed(upstream, before),
  })
  sensor.add(upstream)
  return upstream
}
