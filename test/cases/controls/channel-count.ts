/** `channel.count`: how many channels a user has. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Registry } from '../../../server/kernel/channels/registry.ts'
import { type Control, ok } from '../../../server/kernel/controls/control.ts'

export function channelCount(registry: Pick<Registry, 'of'>): Control {
  return {
    name: 'channel.count',
    description: 'Counts your channels.',
    parameters: [
      { name: 'durable', type: BasicType.BOOLEAN, optional: true, description: 'Only channels that are, or are not.' },
    ],
    prepare(args, { identity }) {
      const durable = args.get('durable')
      return () => {
        const own = [...registry.of(identity.userId)]
        const { length } = own.filter(({ row }) => durable === undefined || row.durable === durable)
        return ok(`channels: ${length}`, { type: BasicType.UINT32, value: length })
      }
    },
  }
}
