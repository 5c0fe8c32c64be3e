/** `channel.purge`: drops what waits in a channel; a GAP tells it [MON 8 Configuring]. */
import { BasicType, CURRENT_CHANNEL } from '../../protocol/monitor/constants.ts'
import type { Registry } from '../channels/registry.ts'
import { type Control, ok } from './control.ts'

export function channelPurge(registry: Registry): Control {
  return {
    name: 'channel.purge',
    description:
      'Drops the values of a channel of yours: all of them, those of one metric id, or those up to a transaction id.',
    parameters: [
      { name: 'channel', type: BasicType.UINT32, description: 'Its id; 0: the current one.' },
      { name: 'metric', type: BasicType.UINT32, optional: true, description: 'Only values of this metric id.' },
      {
        name: 'through',
        type: BasicType.UINT64,
        optional: true,
        description: 'Only values up to this transaction id.',
      },
    ],
    immediate: true,
    prepare(args, context) {
      const id = args.get('channel') as number
      const channel = id === CURRENT_CHANNEL ? context.channel : registry.find(context, id)
      const metric = args.get('metric') as number | undefined
      const through = args.get('through') as bigint | undefined
      const only = {
        ...(metric === undefined ? {} : { metric }),
        ...(through === undefined ? {} : { through: Number(through) }),
      }
      return async () => {
        const count = await channel.queue.purge(only, (block) => registry.read(block))
        return ok(`${count} values dropped`, { type: BasicType.UINT64, value: BigInt(count) })
      }
    },
  }
}
