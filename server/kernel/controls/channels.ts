/** `channel.configure`, `channel.purge` and `channel.delete`, and the settings of a channel as DEF_CHANNEL takes them too [MON 8 Configuring, Limits]. */
import { formatIdentity } from '../../../auth/identity.ts'
import { BasicType, CURRENT_CHANNEL } from '../../../protocol/monitor/constants.ts'
import type { Overflow } from '../../../storage/store.ts'
import type { Channel } from '../channels/channel.ts'
import type { ChannelSettings } from '../channels/queue-host.ts'
import type { Registry } from '../channels/registry.ts'
import { StatusError } from '../core/errors.ts'
import { checkBounds } from './bounds.ts'
import { type Control, type ControlArguments, type ControlContext, type ControlParameter, ok } from './control.ts'

const { BOOLEAN, STRING, UINT32, UINT64 } = BasicType
/** The values of a channel that is not durable are in memory. */
const MAX_VOLATILE_BYTES = 1 << 20
const overflows: readonly string[] = ['drop-oldest', 'drop-newest', 'keep-latest'] satisfies Overflow[]

export const channelParameters: readonly ControlParameter[] = [
  { name: 'durable', type: BOOLEAN, optional: true, description: 'Whether values survive a restart of the producer.' },
  {
    name: 'window',
    type: UINT32,
    optional: true,
    description: 'Values that may be sent and not yet committed; 0: the maximum.',
  },
  { name: 'window_bytes', type: UINT64, optional: true, description: 'The same in bytes; 0: the maximum.' },
  {
    name: 'max_bytes',
    type: UINT64,
    optional: true,
    description: 'Bytes of values that may be queued; 0: the maximum.',
  },
  { name: 'max_age_ms', type: UINT64, optional: true, description: 'How long a value waits, ms; 0: the maximum.' },
  {
    name: 'expire_ms',
    type: UINT64,
    optional: true,
    description: 'How long the channel waits for its consumer, ms; 0: the maximum.',
  },
  { name: 'overflow', type: STRING, optional: true, description: 'drop-oldest, drop-newest or keep-latest.' },
]

/** The same with the operator's limits. */
function channelParametersWithin(most: ChannelSettings): ControlParameter[] {
  const max: Readonly<Record<string, number>> = {
    window: most.window,
    window_bytes: most.windowBytes,
    max_bytes: most.maxBytes,
    max_age_ms: most.maxAgeMs,
    expire_ms: most.expireMs,
  }
  return channelParameters.map((parameter) => {
    const { name } = parameter
    if (name === 'overflow') return { ...parameter, values: overflows }
    return Object.hasOwn(max, name) ? { ...parameter, max: max[name], aboveMax: 'QUOTA_EXCEEDED' } : parameter
  })
}

const channelParameter: ControlParameter = { name: 'channel', type: UINT32, description: 'Its id; 0: the current one.' }

/** The change is in force and stored when OK is answered. */
export function channelConfigure(registry: Registry): Control {
  return {
    name: 'channel.configure',
    description: 'Changes the settings of one of your channels.',
    get parameters() {
      return [channelParameter, ...channelParametersWithin(registry.defaults)]
    },
    immediate: true,
    isRecorded: (args, context) => isForeign(registry, args, context),
    prepare(args, context) {
      const channel = channelOf(registry, args, context)
      const settings = changedSettings(args, channel, registry.defaults)
      // The result may go to another channel, for which there is room already.
      if (settings.durable && !channel.stored) registry.needsRoom(context.identity)
      return () => {
        registry.configure(channel, settings)
        return ok()
      }
    },
  }
}

/** Drops values that wait in a channel; a GAP reports them to the consumer. */
export function channelPurge(registry: Registry): Control {
  return {
    name: 'channel.purge',
    description:
      'Drops the values of one of your channels: all of them, those of one metric id, or those up to a transaction id. An admin may name any channel.',
    usesReserve: true,
    parameters: [
      channelParameter,
      { name: 'metric', type: UINT32, optional: true, description: 'Only values of this metric id.' },
      {
        name: 'through',
        type: UINT64,
        optional: true,
        description: 'Only values up to this transaction id.',
      },
    ],
    immediate: true,
    isRecorded: (args, context) => isForeign(registry, args, context),
    prepare(args, context) {
      const channel = reachedChannel(registry, args, context)
      const metric = args.get('metric') as number | undefined
      const through = args.get('through') as bigint | undefined
      const only = {
        ...(metric === undefined ? {} : { metric }),
        ...(through === undefined ? {} : { through: Number(through) }),
      }
      return async () => {
        const isOwn = channel.owner.userId === context.identity.userId
        const count = await registry.purge(channel, only, isOwn ? 'purged by its owner' : 'purged by an admin')
        const whose = isOwn ? '' : ` from channel ${channel.id} of ${formatIdentity(channel.owner)}`
        return ok(`${count} values dropped${whose}`, { type: UINT64, value: BigInt(count) })
      }
    },
  }
}

/** Only what admins do to channels of others is recorded in the audit log. */
function isForeign(registry: Registry, args: ControlArguments, { identity, channel }: ControlContext): boolean {
  const id = args.get('channel') as number
  const { owner } = (id === CURRENT_CHANNEL ? channel : registry.byId(id)) ?? {}
  return owner?.userId !== identity.userId
}

/** Deletes a channel as DEL_CHANNEL does. */
export function channelDelete(registry: Registry): Control {
  return {
    name: 'channel.delete',
    description: 'Deletes one of your channels with everything that waits in it. An admin may name any channel.',
    usesReserve: true,
    parameters: [
      { ...channelParameter, description: 'Its id; not that of the current one.' },
      { name: 'orphan', type: BOOLEAN, optional: true, description: 'True: only if it is an orphan.' },
    ],
    immediate: true,
    isRecorded: (args, context) => isForeign(registry, args, context),
    prepare(args, context) {
      const channel = reachedChannel(registry, args, context)
      if (channel === context.channel) {
        throw new StatusError('INVALID_ARGUMENT', 'the result comes on this channel: delete it with DEL_CHANNEL')
      }
      if (args.get('orphan') === true && !channel.isOrphan) {
        throw new StatusError('BUSY', `channel ${channel.id} is not an orphan, or a connection has taken it meanwhile`)
      }
      return async () => {
        const { label, owner } = channel
        await registry.deleteAndEnd(channel, undefined, owner.userId === context.identity.userId ? undefined : 'purged')
        return ok(`channel ${label} of ${formatIdentity(owner)} deleted`)
      }
    },
  }
}

/** As `channelOf`, but an admin may name any channel. */
function reachedChannel(registry: Registry, args: ControlArguments, context: ControlContext): Channel {
  const id = args.get('channel') as number
  return id === CURRENT_CHANNEL ? currentChannel(context) : registry.reach(context, id)
}

function channelOf(registry: Registry, args: ControlArguments, context: ControlContext): Channel {
  const id = args.get('channel') as number
  return id === CURRENT_CHANNEL ? currentChannel(context) : registry.find(context, id)
}

function currentChannel({ channel }: ControlContext): Channel {
  if (channel === undefined) throw new StatusError('NO_SUCH_CHANNEL', 'the channel is gone')
  return channel
}

/** The settings of a channel after a change. Throws StatusError as `settingsOf` does, and BUSY. */
export function changedSettings(args: ControlArguments, channel: Channel, most: ChannelSettings): ChannelSettings {
  const settings = settingsOf(args, channel.row, most)
  if (settings.durable === channel.row.durable || channel.queue.empty) return settings
  throw new StatusError('BUSY', '`durable` can be changed only while nothing is queued or in flight')
}

/**
 * Returns the settings after a change; `most` are the operator's limits. Throws StatusError QUOTA_EXCEEDED if a setting exceeds
 * them, INVALID_ARGUMENT if settings contradict each other.
 */
export function settingsOf(args: ControlArguments, now: ChannelSettings, most: ChannelSettings): ChannelSettings {
  for (const parameter of channelParametersWithin(most)) {
    const value = args.get(parameter.name)
    if (value !== undefined) checkBounds(parameter, value)
  }
  const durable = (args.get('durable') as boolean | undefined) ?? now.durable
  const mostBytes = durable ? most.maxBytes : Math.min(most.maxBytes, MAX_VOLATILE_BYTES)
  const bytesNow = durable === now.durable ? now.maxBytes : mostBytes
  const maxBytes = limit(args, 'max_bytes', bytesNow, mostBytes)
  const windowBytes = limit(
    args,
    'window_bytes',
    Math.min(durable === now.durable ? Math.max(now.windowBytes, 1) : most.windowBytes, maxBytes),
    most.windowBytes,
  )
  if (windowBytes > maxBytes) {
    throw new StatusError('INVALID_ARGUMENT', `window_bytes (${windowBytes}) is above max_bytes (${maxBytes})`)
  }
  return {
    durable,
    window: limit(args, 'window', now.window, most.window),
    windowBytes,
    maxBytes,
    maxAgeMs: limit(args, 'max_age_ms', now.maxAgeMs, most.maxAgeMs),
    expireMs: limit(args, 'expire_ms', now.expireMs, most.expireMs),
    overflow: (args.get('overflow') as Overflow | undefined) ?? now.overflow,
  }
}

function limit(args: ControlArguments, name: string, now: number, most: number): number {
  const value = args.get(name)
  if (value === undefined) return now
  const number = Number(value)
  if (number > most) throw new StatusError('QUOTA_EXCEEDED', `${name} is at most ${most} here, not ${String(value)}`)
  return number === 0 ? most : number
}
