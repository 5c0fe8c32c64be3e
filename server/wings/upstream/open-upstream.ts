/** Makes an upstream, or a link to a node: its values are paced with all feeds, and count for the quota of its tenant. */
import type { Kit } from '../../kit/kit.ts'
import { ValueMeter } from '../../kit/poll.ts'
import type { UpstreamTable } from './config.ts'
import { Position } from './position.ts'
import type { UpstreamReport } from './report.ts'
import type { UpstreamSensor } from './sensor.ts'
import { StoredBindings } from './stored-bindings.ts'
import { Upstream, type UpstreamNode, type UpstreamOptions } from './upstream.ts'

/** What is stored of an upstream. */
export type KeptUpstream = Pick<UpstreamOptions, 'position' | 'stored'>

/** `name`: `tenant/name`. */
export function keptUpstream({ peer }: Kit, name: string): KeptUpstream {
  const { upstreams, upstreamBindings, journal } = peer.stored
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
export function openUpstream(kit: Kit, options: OpenUpstreamOptions): Upstream {
  const { self, clock, poll, peer } = kit
  const { table, sensor } = options
  const meter = poll.meterOf(table.tenant)
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
  const upstream = new Upstream({
    ...kit,
    ...options,
    meter: both,
    pacer: peer.pacer(sensor, both),
    intake: peer.producers.intake,
    connect: peer.producers.connect,
    id: self.id,
    producersChanged: () => peer.producers.changed(sensor),
    catalogued: (upstream, before) => sensor.changed(upstream, before),
  })
  sensor.add(upstream)
  return upstream
}
