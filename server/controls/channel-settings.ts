/** What of a channel a consumer may set, by DEF_CHANNEL or `channel.configure` [MON 8 Configuring, Limits]. */
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Value } from '../../protocol/monitor/value.ts'
import type { Overflow } from '../../storage/store.ts'
import type { ChannelSettings } from '../channels/queue-host.ts'
import { StatusError } from '../core/errors.ts'
import type { ControlParameter } from './control.ts'

const { BOOLEAN, STRING, UINT32, UINT64 } = BasicType
/** Values of a channel that is not durable lie in memory. */
const MAX_VOLATILE_BYTES = 1 << 20
const overflows: readonly string[] = ['drop-oldest', 'drop-newest', 'keep-latest'] satisfies Overflow[]

export const channelParameters: readonly ControlParameter[] = [
  { name: 'durable', type: BOOLEAN, optional: true, description: 'Whether values survive the producer.' },
  {
    name: 'window',
    type: UINT32,
    optional: true,
    description: 'Values that may be sent and not committed; 0: the most.',
  },
  { name: 'window_bytes', type: UINT64, optional: true, description: 'The same in bytes; 0: the most.' },
  { name: 'max_bytes', type: UINT64, optional: true, description: 'Bytes of values that may be queued; 0: the most.' },
  { name: 'max_age_ms', type: UINT64, optional: true, description: 'How long a value waits, ms; 0: the longest.' },
  {
    name: 'expire_ms',
    type: UINT64,
    optional: true,
    description: 'How long the channel waits for its consumer, ms; 0: the longest.',
  },
  { name: 'overflow', type: STRING, optional: true, description: 'drop-oldest, drop-newest or keep-latest.' },
]

type Given = ReadonlyMap<string, Value['value']>

/**
 * The settings after a change. `most`: the operator's limits. Throws StatusError QUOTA_EXCEEDED above those, INVALID_ARGUMENT
 * for what contradicts itself.
 */
export function settingsOf(given: Given, now: ChannelSettings, most: ChannelSettings): ChannelSettings {
  const durable = (given.get('durable') as boolean | undefined) ?? now.durable
  const mostBytes = durable ? most.maxBytes : Math.min(most.maxBytes, MAX_VOLATILE_BYTES)
  const bytesNow = durable === now.durable ? now.maxBytes : mostBytes
  const maxBytes = limit(given, 'max_bytes', bytesNow, mostBytes)
  const windowBytes = limit(
    given,
    'window_bytes',
    Math.min(durable ? Math.max(now.windowBytes, 1) : most.windowBytes, maxBytes),
    most.windowBytes,
  )
  if (windowBytes > maxBytes) {
    throw new StatusError('INVALID_ARGUMENT', `window_bytes (${windowBytes}) is above max_bytes (${maxBytes})`)
  }
  const overflow = (given.get('overflow') as string | undefined) ?? now.overflow
  if (!overflows.includes(overflow)) {
    throw new StatusError('INVALID_ARGUMENT', `overflow is one of ${overflows.join(', ')}, not ${overflow}`)
  }
  return {
    durable,
    window: limit(given, 'window', now.window, most.window),
    windowBytes,
    maxBytes,
    maxAgeMs: limit(given, 'max_age_ms', now.maxAgeMs, most.maxAgeMs),
    expireMs: limit(given, 'expire_ms', now.expireMs, most.expireMs),
    overflow: overflow as Overflow,
  }
}

function limit(given: Given, name: string, now: number, most: number): number {
  const value = given.get(name)
  if (value === undefined) return now
  const number = Number(value)
  if (number > most) throw new StatusError('QUOTA_EXCEEDED', `${name} is at most ${most} here, not ${String(value)}`)
  return number === 0 ? most : number
}
