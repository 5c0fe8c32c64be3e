/** `producer.sensors` and `producer.stats`: what each source accepted and refused, and the state of the producer as a whole. */
import { ADMIN_ROLE, type Identity, mayRead } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Quotas } from '../../accounts/quotas.ts'
import type { Registry } from '../../channels/registry.ts'
import type { Clock } from '../../core/clock.ts'
import type { Fences } from '../../metrics/fences.ts'
import type { Hub } from '../../metrics/hub.ts'
import { RecordList } from '../../metrics/measure.ts'
import type { Sensor, SensorStatus } from '../../metrics/metric.ts'
import type { ProducerView } from './sensor.ts'

const { ARRAY, DOUBLE, REC, STRING, UINT64 } = BasicType

/** An entry of `producer.sensors`. */
export type StatusEntry = Pick<Sensor, 'owner' | 'status'>

/** What the hub knows of sensors. */
type SensorStates = Pick<Hub, 'fences' | 'faults'>

export function sensorsView(sensors: () => readonly StatusEntry[], { fences, faults }: SensorStates): ProducerView {
  return {
    metric: {
      name: 'producer.sensors',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'The sensors with their counters.',
      parameters: [],
    },
    show(identity) {
      const records = new RecordList()
      for (const sensor of sensors()) {
        const status = mayRead(identity, sensor.owner) ? sensor.status?.() : undefined
        if (status && !records.add(describeStatus(fenced(sensor, faults.shown(sensor, status), fences)))) break
      }
      return records.value()
    },
  }
}

function fenced(sensor: StatusEntry, status: SensorStatus, fences: Fences): SensorStatus {
  if (!fences.knows(sensor)) return status
  const counters = { ...status.counters, keptOut: fences.discarded(sensor) }
  return { ...status, state: fences.has(sensor) ? 'fenced' : status.state, counters }
}

function describeStatus({ name, state, detail, counters }: SensorStatus): Field[] {
  const counts = Object.entries(counters).map(
    ([counter, value]): Field => ({ name: counter, type: UINT64, value: BigInt(value) }),
  )
  return [
    { name: 'name', type: STRING, value: name },
    { name: 'state', type: STRING, value: state },
    { name: 'detail', type: STRING, value: detail },
    { name: 'counters', type: REC, value: counts },
  ]
}

export interface Stats {
  readonly software: string
  readonly name: string
  readonly uptimeSeconds: number
  readonly connections: number
  readonly channels: number
  /** Bytes that are not yet in a durable transaction. */
  readonly unstoredBytes: number
  readonly residentBytes: number
  /** `ok`, or `full` if the disk is full. */
  readonly storage: string
  /** Exceptions in the server's own code since the start, each of which cost its session, channel or sensor. */
  readonly faults: number
}

export interface StatsOptions {
  readonly software: string
  readonly name: string
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly quotas: Quotas
  readonly registry: Pick<Registry, 'all' | 'count'>
  readonly sessions: { readonly count: number }
  readonly host: { readonly unstored: number }
  readonly storage: { readonly state: string }
  readonly faults: { readonly count: number }
}

/** Returns the stats that a reader may see. The uptime counts from the call of this function. */
export function statsOf(server: StatsOptions): (reader: Pick<Identity, 'tenant' | 'role'>) => Stats {
  const { software, name, clock, quotas, registry, sessions, host, storage, faults } = server
  const started = clock.monotonicMs()
  const ofTenant = (tenant: string) => ({
    connections: quotas.of(tenant).connections.used,
    channels: [...registry.all()].filter(({ owner }) => owner.tenant === tenant).length,
  })
  return ({ tenant, role }) => ({
    software,
    name,
    uptimeSeconds: (clock.monotonicMs() - started) / 1000,
    ...(role === ADMIN_ROLE ? { connections: sessions.count, channels: registry.count } : ofTenant(tenant)),
    unstoredBytes: host.unstored,
    residentBytes: process.memoryUsage.rss(),
    storage: storage.state,
    faults: faults.count,
  })
}

export function statsView(stats: (identity: Identity) => Stats): ProducerView {
  return {
    metric: {
      name: 'producer.stats',
      kind: 'continuous',
      type: REC,
      unit: '',
      description: 'The producer as a whole: uptime, connections, channels, storage.',
      parameters: [],
    },
    show(identity) {
      const { software, name, uptimeSeconds, connections, channels, unstoredBytes, residentBytes, storage, faults } =
        stats(identity)
      const count = (field: string, value: number): Field => ({
        name: field,
        type: UINT64,
        value: BigInt(Math.round(value)),
      })
      return {
        type: REC,
        value: [
          { name: 'software', type: STRING, value: software },
          { name: 'name', type: STRING, value: name },
          { name: 'uptime', type: DOUBLE, value: uptimeSeconds },
          count('connections', connections),
          count('channels', channels),
          count('unstored_bytes', unstoredBytes),
          count('resident_bytes', residentBytes),
          { name: 'storage', type: STRING, value: storage },
          count('faults', faults),
        ],
      }
    },
  }
}
