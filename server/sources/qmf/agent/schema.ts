/**
 * What the producer tells of itself as a QMF agent: three classes. A broker keeps a schema by package, class and hash, so
 * the hash is made of the contents: whoever changes a class here needs to do nothing else.
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

export const PACKAGE = 'cinnabar'

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
    property('name', QmfType.LONG_STRING, 'What the producer is called', { isIndex: true }),
    property('software', QmfType.LONG_STRING, 'What runs there, and its version'),
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
      description: 'Gives back what it is given, to see whether the agent answers',
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
    property('owner', QmfType.LONG_STRING, 'Whose it is: tenant/user, or user for the tenant default'),
    property('durable', QmfType.BOOL, 'Whether it survives a restart'),
    property('state', QmfType.SHORT_STRING, 'connected, waiting, window-full or failed'),
  ],
  statistics: [
    count('queued', 'value', 'Values that were not sent yet'),
    count('inFlight', 'value', 'Values that were sent and not committed yet'),
    count('accepted', 'value', 'Values that entered: committed, in flight, queued or dropped'),
    count('committed', 'value', 'Values that the consumer committed'),
    count('dropped', 'value', 'Values that were dropped, each told by a GAP or wanted gone'),
    count('queuedBytes', 'octet', 'Bytes of what is queued'),
  ],
})

export const sensorSchema = table('sensor', {
  properties: [
    property('name', QmfType.LONG_STRING, 'What the sensor is called', { isIndex: true }),
    property('state', QmfType.SHORT_STRING, 'listening, measuring, fenced, off or failed'),
  ],
  statistics: [
    count('values', 'value', 'Values that it took in'),
    { name: 'counters', type: QmfType.MAP, description: 'All that it counts, by name' },
  ],
})

export const schemas = [producerSchema, channelSchema, sensorSchema]

/** Whether `key` is the one of `schema`, hash and all. */
export function isOf({ key }: TableSchema, { packageName, className, hash }: ClassKey): boolean {
  return key.packageName === packageName && key.className === className && key.hash === hash
}

function table(
  className: string,
  items: Pick<TableSchema, 'properties' | 'statistics'> & { readonly methods?: readonly SchemaMethod[] },
): TableSchema {
  const contents = { methods: [], ...items }
  const hash = createHash('sha256')
    .update(JSON.stringify([PACKAGE, className, contents]))
    .digest('hex')
    .slice(0, 32)
  return { kind: 'table', key: { packageName: PACKAGE, className, hash }, ...contents }
}
