/**
 * The three classes of the producer as a QMF agent, and where their values come from. A broker keeps a schema by
 * package, class and hash, and the hash is made of the contents: a change of a class here needs nothing else.
 */
import { createHash } from 'node:crypto'
import {
  Access,
  type ClassKey,
  QmfType,
  type SchemaMethod,
  type SchemaProperty,
  type SchemaStatistic,
  type TableSchema,
} from '../../../../protocol/qmf/types.ts'
import { formatIdentity, maySee, type Sensor } from '../../../kit/metrics.ts'
import { dropCauses, type ShownChannel, type Stats } from '../../../kit/peer.ts'
import type { ObjectSource, ObjectValues } from './inventory.ts'

export const AGENT_PACKAGE = 'cinnabar'

const property = (
  name: string,
  type: QmfType,
  description: string,
  more: { readonly isIndex?: boolean } = {},
): SchemaProperty => ({ name, type, access: Access.READ_ONLY, isIndex: false, isOptional: false, description, ...more })

const count = (name: string, unit: string, description: string): SchemaStatistic => {
  return { name, type: QmfType.UINT64, unit, description }
}

export const producerSchema = table('producer', {
  properties: [
    property('name', QmfType.LONG_STRING, 'The name of the producer', { isIndex: true }),
    property('software', QmfType.LONG_STRING, 'The software and its version'),
    property('storage', QmfType.SHORT_STRING, 'ok, or why nothing more is stored'),
  ],
  statistics: [
    { name: 'uptime', type: QmfType.DELTATIME, unit: 'nanosecond', description: 'Since the start' },
    count('connections', 'connection', 'Connections of consumers'),
    count('channels', 'channel', 'Channels there are'),
    count('unstoredBytes', 'octet', 'Bytes that no durable transaction holds yet'),
    count('residentBytes', 'octet', 'Memory of the process'),
  ],
  methods: [
    {
      name: 'echo',
      description: 'Returns its arguments, to test whether the agent answers',
      arguments: [
        { name: 'sequence', type: QmfType.UINT32, direction: 'IO' },
        { name: 'body', type: QmfType.LONG_STRING, direction: 'IO' },
      ],
    },
  ],
})

export const channelSchema = table('channel', {
  properties: [
    property('id', QmfType.UINT32, 'The id of the channel', { isIndex: true }),
    property('owner', QmfType.LONG_STRING, 'The owner: tenant/user, or user for the tenant default'),
    property('durable', QmfType.BOOL, 'Whether it survives a restart'),
    property('state', QmfType.SHORT_STRING, 'connected, waiting, window-full or failed'),
  ],
  statistics: [
    count('queued', 'value', 'Values that were not sent yet'),
    count('inFlight', 'value', 'Values that were sent and not committed yet'),
    count('accepted', 'value', 'Values that entered: committed, in flight, queued or dropped'),
    count('committed', 'value', 'Values that the consumer committed'),
    count('dropped', 'value', 'Values that were dropped, each reported by a GAP or dropped on request'),
    count('queuedBytes', 'octet', 'Bytes of what is queued'),
  ],
})

export const sensorSchema = table('sensor', {
  properties: [
    property('name', QmfType.LONG_STRING, 'The name of the sensor', { isIndex: true }),
    property('state', QmfType.SHORT_STRING, 'listening, measuring, fenced, off or failed'),
  ],
  statistics: [
    count('values', 'value', 'Values that it took in'),
    { name: 'counters', type: QmfType.MAP, description: 'All that it counts, by name' },
  ],
})

export const agentSchemas = [producerSchema, channelSchema, sensorSchema]

/** Whether `key` is that of the schema, including the hash. */
export function isSchemaOf({ key }: TableSchema, { packageName, className, hash }: ClassKey): boolean {
  return key.packageName === packageName && key.className === className && key.hash === hash
}

export interface AgentView {
  /** The statistics that `producer.stats` shows to a user of the tenant. */
  readonly stats: () => Stats
  readonly channels: () => Iterable<ShownChannel>
  readonly sensors: () => readonly Sensor[]
  readonly tenant: string
}

/**
 * The objects of the agent, read from the producer on request. The users of a broker are not ours, so it shows only
 * what an operator needs to see that all is well: no URLs, no metrics, no values, and nothing of other tenants than the
 * broker's.
 */
export function objectSources({ stats, channels, sensors, tenant }: AgentView): readonly ObjectSource[] {
  const reader = { userId: 0, tenant, name: '', role: '' }
  const isVisible = (sensor: Sensor): boolean => sensor.status !== undefined && maySee(reader, sensor.owner)
  const producer: ObjectSource<typeof stats> = {
    schema: producerSchema,
    all: () => [stats],
    read: (read) => producerValues(read()),
  }
  const channel: ObjectSource<ShownChannel> = {
    schema: channelSchema,
    *all() {
      for (const one of channels()) if (one.owner.tenant === tenant) yield one
    },
    read: (one) => (one.deleted ? undefined : channelValues(one)),
  }
  const sensor: ObjectSource<Sensor> = {
    schema: sensorSchema,
    all: () => sensors().filter(isVisible),
    read: (one) => (sensors().includes(one) ? sensorValues(one) : undefined),
  }
  return [producer, channel, sensor]
}

function producerValues({ name, software, storage, ...stats }: Stats): ObjectValues {
  const uptime = BigInt(Math.round(stats.uptimeSeconds * 1_000)) * 1_000_000n
  const counts = [stats.connections, stats.channels, stats.unstoredBytes, stats.residentBytes].map(toCount)
  return { properties: [name, software, storage], statistics: [uptime, ...counts] }
}

function channelValues({ id, owner, row, state, queue }: ShownChannel): ObjectValues {
  const { queued, inFlight, accepted, committed, dropped, queuedBytes } = queue.counts
  const allDropped = dropCauses.reduce((sum, cause) => sum + dropped[cause], 0)
  return {
    properties: [id, formatIdentity(owner), row.durable, state],
    statistics: [queued, inFlight, accepted, committed, allDropped, queuedBytes].map(toCount),
  }
}

function sensorValues(sensor: Sensor): ObjectValues | undefined {
  const status = sensor.status?.()
  if (status === undefined) return undefined
  const { name, state, counters } = status
  const all = new Map(Object.entries(counters).map(([counter, count]) => [counter, toCount(count)]))
  return { properties: [name, state], statistics: [toCount(counters['values'] ?? 0), all] }
}

function toCount(count: number): bigint {
  return Number.isFinite(count) ? BigInt(Math.max(0, Math.round(count))) : 0n
}

function table(
  className: string,
  items: Pick<TableSchema, 'properties' | 'statistics'> & { readonly methods?: readonly SchemaMethod[] },
): TableSchema {
  const contents = { methods: [], ...items }
  const hash = createHash('sha256')
    .update(JSON.stringify([AGENT_PACKAGE, className, contents]))
    .digest('hex')
    .slice(0, 32)
  return { kind: 'table', key: { packageName: AGENT_PACKAGE, className, hash }, ...contents }
}
