/** `producer.channels`: the ledger of each channel [MON 8 Ledger]. Users see their own channels, the role admin sees all. */
import { formatIdentity } from '../../../auth/identity.ts'
import type { Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Channel } from '../../channels/channel.ts'
import { dropCauses } from '../../channels/ledger.ts'
import { StatusError } from '../../core/errors.ts'
import { RecordList } from '../../metrics/measure.ts'
import type { ProducerView } from './sensor.ts'

const { STRING, UINT32, UINT64, BOOLEAN, ARRAY, REC } = BasicType

/** `channels`: those that an identity may see. */
export function channelsView(channels: (identity: Identity) => Iterable<Channel>): ProducerView {
  return {
    metric: {
      name: 'producer.channels',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'Your channels with their ledgers: accepted = committed + in flight + queued + dropped.',
      parameters: [
        { name: 'channel', type: STRING, description: 'Only this channel.' },
        { name: 'after', type: UINT32, description: 'Only channels with a higher id.' },
      ],
    },
    check(args) {
      channelOf(args.get('channel'))
    },
    *show(identity, args) {
      const only = channelOf(args.get('channel'))
      const after = (args.get('after') as number | undefined) ?? 0
      const shown: Channel[] = []
      for (const channel of channels(identity)) {
        yield
        const { id } = channel
        if (id > after && (only === undefined || id === only) && channel.isCoveredBy(identity.scope))
          shown.push(channel)
      }
      const records = new RecordList()
      for (const channel of shown.sort((a, b) => a.id - b.id)) {
        yield
        if (!channel.deleted && !records.add(describe(channel))) break
      }
      return records.value()
    },
  }
}

function channelOf(text: unknown): number | undefined {
  if (text === undefined) return undefined
  if (typeof text === 'string' && /^\d{1,10}$/.test(text)) return Number(text)
  throw new StatusError('INVALID_ARGUMENT', '`channel` must be the id of a channel, in digits')
}

function describe(channel: Channel): Field[] {
  const status = channel.queue.status()
  const count = (name: string, value: number): Field => ({ name, type: UINT64, value: BigInt(value) })
  const items = [...channel.bindings.values()].map(({ instance, mode }) => [
    { name: 'metric', type: UINT32, value: instance.id },
    { name: 'name', type: STRING, value: instance.selection.name },
    { name: 'mode', type: STRING, value: mode },
  ])
  return [
    { name: 'channel', type: UINT32, value: channel.id },
    { name: 'identity', type: STRING, value: formatIdentity(channel.owner) },
    { name: 'url', type: STRING, value: channel.row.url },
    { name: 'state', type: STRING, value: channel.state },
    { name: 'durable', type: BOOLEAN, value: channel.row.durable },
    count('accepted', status.accepted),
    count('committed', status.committed),
    count('in_flight', status.inFlight),
    count('queued', status.queued),
    count('queued_bytes', status.queuedBytes),
    count('stored', status.stored),
    count('unstored', status.unstored),
    count('gaps', status.gaps),
    count('oldest', status.oldest),
    { name: 'dropped', type: REC, value: dropCauses.map((cause) => count(cause, status.dropped[cause])) },
    { name: 'bindings', type: ARRAY, value: { element: REC, items } },
  ]
}
