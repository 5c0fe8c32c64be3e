/** `producer.stats`: the producer as a whole, in one REC. Connections and channels are those of one's own tenant; role admin all. */
import { ADMIN_ROLE, type Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Quotas } from '../../accounts/quotas.ts'
import type { Registry } from '../../channels/registry.ts'
import type { Clock } from '../../core/clock.ts'
import type { ProducerView } from './sensor.ts'

const { DOUBLE, REC, STRING, UINT64 } = BasicType

export interface Stats {
  readonly software: string
  readonly name: string
  readonly uptimeSeconds: number
  readonly connections: number
  readonly channels: number
  /** Bytes that no durable transaction holds yet. */
  readonly unstoredBytes: number
  readonly residentBytes: number
  /** ok, or full: the disk is. */
  readonly storage: string
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
}

/** The stats as a reader may see them. The time up begins with the call. */
export function statsOf(server: StatsOptions): (reader: Pick<Identity, 'tenant' | 'role'>) => Stats {
  const { software, name, clock, quotas, registry, sessions, host, storage } = server
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
      const { software, name, uptimeSeconds, connections, channels, unstoredBytes, residentBytes, storage } =
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
        ],
      }
    },
  }
}
