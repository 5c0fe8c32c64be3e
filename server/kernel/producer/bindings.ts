/**
 * `producer.bindings`: everything that one channel binds [MON 8 Ledger]. A channel may have 65,536 bindings, which fit no
 * record: `producer.channels` shows the first of them only.
 */
import type { Identity } from '../../../auth/permissions.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { Channel, ChannelBinding } from '../channels/channel.ts'
import { StatusError } from '../core/errors.ts'
import { RecordList } from '../metrics/measure.ts'
import type { ProducerView } from './sensor.ts'

const { ARRAY, REC, STRING, UINT32 } = BasicType

/** Returns a channel that an identity may see; undefined if there is none with this id. */
export type FindChannel = (identity: Identity, id: number) => Channel | undefined

export function bindingsView(find: FindChannel): ProducerView {
  return {
    metric: {
      name: 'producer.bindings',
      exposition: 'none',
      kind: 'continuous',
      type: ARRAY,
      unit: '',
      description: 'The bindings of one of your channels, ascending by metric id.',
      parameters: [
        { name: 'channel', type: STRING, description: 'The channel; `0`, or nothing, is the current one.' },
        { name: 'after', type: UINT32, description: 'Only metric ids above this one.' },
      ],
    },
    check(args) {
      channelIdOf(args.get('channel'))
    },
    *show(identity, args) {
      const records = new RecordList()
      const channel = find(identity, channelIdOf(args.get('channel')) ?? 0)
      if (channel === undefined || !channel.isCoveredBy(identity.scope)) return records.value()
      const after = (args.get('after') as number | undefined) ?? 0
      const ids: number[] = []
      for (const id of channel.bindings.keys()) {
        if (id > after) ids.push(id)
        yield
      }
      for (const id of Uint32Array.from(ids).sort()) {
        const binding = channel.bindings.get(id)
        if (binding !== undefined && !records.add(describeBinding(channel, binding))) break
        yield
      }
      return records.value()
    },
  }
}

/** The id in an argument `channel`; undefined if it was left out. Throws StatusError INVALID_ARGUMENT. */
export function channelIdOf(text: unknown): number | undefined {
  if (text === undefined) return undefined
  if (typeof text === 'string' && /^\d{1,10}$/.test(text)) return Number(text)
  throw new StatusError('INVALID_ARGUMENT', '`channel` must be the id of a channel, in digits')
}

function describeBinding({ id }: Channel, { instance, mode }: ChannelBinding): Field[] {
  return [
    { name: 'channel', type: UINT32, value: id },
    { name: 'metric', type: UINT32, value: instance.id },
    { name: 'name', type: STRING, value: instance.selection.name },
    { name: 'mode', type: STRING, value: mode },
    { name: 'arguments', type: REC, value: [...instance.selection.args] },
  ]
}
