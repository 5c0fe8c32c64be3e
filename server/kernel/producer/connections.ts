/**
 * `producer.connections`: who is connected, from where and since when. Each connection after AUTH has one current channel, so
 * those of an identity are found by its channels, without a look at those of others.
 */
import { formatIdentity } from '../../../auth/identity.ts'
import type { Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Channel } from '../channels/channel.ts'
import type { ConnectionFacts } from '../channels/outbox.ts'
import { RecordList } from '../metrics/measure.ts'
import type { ProducerView } from './sensor.ts'

const { ARRAY, STRING, UINT32, UINT64 } = BasicType

/** Users see their own connections, the role admin sees all. `channels` returns the channels that an identity may see. */
export function connectionsView(channels: (identity: Identity) => Iterable<Channel>): ProducerView {
  return {
    metric: {
      name: 'producer.connections',
      exposition: 'none',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'Your connections that are logged in, each with its current channel.',
      parameters: [{ name: 'after', type: UINT32, description: 'Only connections whose channel has a higher id.' }],
    },
    *show(identity, args) {
      const after = (args.get('after') as number | undefined) ?? 0
      const shown: Channel[] = []
      for (const channel of channels(identity)) {
        yield
        const isConnected = channel.connection?.facts !== undefined
        if (isConnected && channel.id > after && channel.isCoveredBy(identity.scope)) shown.push(channel)
      }
      const records = new RecordList()
      for (const channel of shown.sort((a, b) => a.id - b.id)) {
        yield
        // It may have ended between two steps.
        const facts = channel.connection?.facts
        if (facts !== undefined && !records.add(describe(channel, facts))) break
      }
      return records.value()
    },
  }
}

function describe({ id, owner }: Channel, { address, transport, layers, method, since }: ConnectionFacts): Field[] {
  return [
    { name: 'channel', type: UINT32, value: id },
    { name: 'identity', type: STRING, value: formatIdentity(owner) },
    { name: 'address', type: STRING, value: address },
    { name: 'transport', type: STRING, value: transport },
    { name: 'layers', type: STRING, value: layers.join(',') },
    { name: 'method', type: STRING, value: method },
    { name: 'since', type: UINT64, value: BigInt(since) },
  ]
}
