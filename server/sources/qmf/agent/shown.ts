/**
 * What the agent shows, taken from the producer when it is asked. A broker's users are not ours, so it is no more than what
 * an operator needs to see that all is well: no URLs, no metrics, no values, and nothing of another tenant than the one
 * whose broker it is.
 */
import { formatIdentity } from '../../../../auth/identity.ts'
import { mayRead } from '../../../../auth/permissions.ts'
import type { Channel } from '../../../channels/channel.ts'
import { dropCauses } from '../../../channels/ledger.ts'
import type { Sensor } from '../../../metrics/metric.ts'
import type { Stats } from '../../producer/stats.ts'
import type { Row, Shown } from './objects.ts'
import { channelSchema, producerSchema, sensorSchema } from './schema.ts'

export interface ShownOf {
  /** What `producer.stats` shows somebody of that tenant. */
  readonly stats: () => Stats
  readonly channels: () => Iterable<Channel>
  readonly sensors: () => readonly Sensor[]
  readonly tenant: string
}

export function shownOf({ stats, channels, sensors, tenant }: ShownOf): readonly Shown[] {
  const reader = { userId: 0, tenant, name: '', role: '' }
  const isShown = (sensor: Sensor): boolean => sensor.status !== undefined && mayRead(reader, sensor.owner)
  const producer: Shown<typeof stats> = {
    schema: producerSchema,
    all: () => [stats],
    read: (read) => producerRow(read()),
  }
  const channel: Shown<Channel> = {
    schema: channelSchema,
    *all() {
      for (const one of channels()) if (one.owner.tenant === tenant) yield one
    },
    read: (one) => (one.deleted ? undefined : channelRow(one)),
  }
  const sensor: Shown<Sensor> = {
    schema: sensorSchema,
    all: () => sensors().filter(isShown),
    read: (one) => (sensors().includes(one) ? sensorRow(one) : undefined),
  }
  return [producer, channel, sensor]
}

function producerRow({ name, software, storage, ...stats }: Stats): Row {
  const uptime = BigInt(Math.round(stats.uptimeSeconds * 1_000)) * 1_000_000n
  const counts = [stats.connections, stats.channels, stats.unstoredBytes, stats.residentBytes].map(toCount)
  return { properties: [name, software, storage], statistics: [uptime, ...counts] }
}

function channelRow({ id, owner, row, state, queue }: Channel): Row {
  const { queued, inFlight, accepted, committed, dropped, queuedBytes } = queue.status()
  const allDropped = dropCauses.reduce((sum, cause) => sum + dropped[cause], 0)
  return {
    properties: [id, formatIdentity(owner), row.durable, state],
    statistics: [queued, inFlight, accepted, committed, allDropped, queuedBytes].map(toCount),
  }
}

function sensorRow(sensor: Sensor): Row | undefined {
  const status = sensor.status?.()
  if (status === undefined) return undefined
  const { name, state, counters } = status
  const all = new Map(Object.entries(counters).map(([counter, count]) => [counter, toCount(count)]))
  return { properties: [name, state], statistics: [toCount(counters['values'] ?? 0), all] }
}

function toCount(count: number): bigint {
  return Number.isFinite(count) ? BigInt(Math.max(0, Math.round(count))) : 0n
}
