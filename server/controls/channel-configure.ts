/** `channel.configure`: changes the settings of a channel; the change is in force and stored when OK is answered [MON 8]. */
import { BasicType, CURRENT_CHANNEL } from '../../protocol/monitor/constants.ts'
import type { Registry } from '../channels/registry.ts'
import { StatusError } from '../core/errors.ts'
import { channelParameters, settingsOf } from './channel-settings.ts'
import { type Control, ok } from './control.ts'

export function channelConfigure(registry: Registry): Control {
  return {
    name: 'channel.configure',
    description: 'Changes the settings of a channel of yours.',
    parameters: [
      { name: 'channel', type: BasicType.UINT32, description: 'Its id; 0: the current one.' },
      ...channelParameters,
    ],
    immediate: true,
    prepare(args, context) {
      const id = args.get('channel') as number
      const channel = id === CURRENT_CHANNEL ? context.channel : registry.find(context, id)
      const settings = settingsOf(args, channel.row, registry.defaults)
      if (settings.durable !== channel.row.durable && !channel.queue.empty) {
        throw new StatusError('BUSY', '`durable` can be changed only while nothing is queued or in flight')
      }
      // It need not be the channel that the result goes to, for which there is room.
      if (settings.durable && !channel.stored) registry.needsRoom(context.identity)
      return () => {
        registry.configure(channel, settings)
        return ok()
      }
    },
  }
}
