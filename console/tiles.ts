/**
 * What the tiles of the overview say. Of what the server has not answered yet nothing is said, and what it refuses is not called
 * zero: the three are told apart here, for every tile by the same rule.
 */
import { type ChannelState, isInput, lagOf, type SensorState, type Stats, totalOf, waitingOf } from './fleet.ts'
import { formatBytes, formatDuration, formatNumber, formatRate, UNKNOWN } from './units.ts'

export interface TileText {
  readonly figure: string
  readonly note: string
  /** All of what the note says in short. */
  readonly detail?: string
  /** Whether the answer is still awaited. */
  readonly isLoading?: true
}

/** What has been answered, each undefined until it is there. */
export interface Answered {
  readonly stats: Stats | undefined
  readonly channels: readonly ChannelState[] | undefined
  readonly sensors: readonly SensorState[] | undefined
  /** Why a metric cannot be read, by its name. */
  readonly problems: Readonly<Record<string, string>>
}

type Source = 'producer.stats' | 'producer.channels' | 'producer.sensors'

function absent({ problems }: Answered, source: Source): TileText {
  return problems[source] === undefined
    ? { figure: UNKNOWN, note: 'loading', isLoading: true }
    : { figure: UNKNOWN, note: 'cannot be read', detail: problems[source] }
}

/** `rate`: values per second; undefined until there are two readings. */
export function valuesIn(answered: Answered, rate: number | undefined): TileText {
  const { sensors } = answered
  if (sensors === undefined) return absent(answered, 'producer.sensors')
  return { figure: formatRate(rate), note: `from ${counted(sensors.filter(isInput).length, 'source')}` }
}

export function committed(answered: Answered, rate: number | undefined, sent: number | undefined): TileText {
  const { channels } = answered
  if (channels === undefined) return absent(answered, 'producer.channels')
  const by = `by ${counted(channels.length, 'channel')}`
  const out = sent === undefined ? undefined : `sent ${formatRate(sent)}`
  return { figure: formatRate(rate), note: out ?? by, detail: [by, out].filter(Boolean).join(', ') }
}

export function waiting(answered: Answered, nowMs: number): TileText {
  const { channels } = answered
  if (channels === undefined) return absent(answered, 'producer.channels')
  const bytes = channels.reduce((sum, { queuedBytes }) => sum + queuedBytes, 0)
  const lag = Math.max(0, ...channels.map((channel) => lagOf(channel, nowMs) ?? 0))
  const count = channels.reduce((sum, channel) => sum + waitingOf(channel), 0)
  const note = count === 0 ? 'nothing waits' : `${formatBytes(bytes)} · oldest ${formatDuration(lag)}`
  return { figure: formatNumber(count), note }
}

/** In the last hour; users who are not admins see what their channels have lost so far. */
export function lost(answered: Answered): TileText & { readonly title: string } {
  const { stats, channels, problems } = answered
  const inLastHour = stats?.droppedLastHour
  const title = inLastHour === undefined ? 'Lost' : 'Lost, last hour'
  // Until it is known who asks, it is not known which of the two is to be shown.
  if (stats === undefined && problems['producer.stats'] === undefined) {
    return { title, ...absent(answered, 'producer.stats') }
  }
  if (inLastHour === undefined && channels === undefined) return { title, ...absent(answered, 'producer.channels') }
  const causes = new Map(Object.entries(inLastHour ?? {}))
  if (inLastHour === undefined) {
    for (const { dropped } of channels ?? []) {
      for (const [cause, count] of Object.entries(dropped)) causes.set(cause, (causes.get(cause) ?? 0) + count)
    }
  }
  const reasons = [...causes].filter(([, count]) => count > 0).sort(([, a], [, b]) => b - a)
  const [first = 'nothing was lost', ...others] = reasons.map(([cause, count]) => `${cause} ${formatNumber(count)}`)
  return {
    title,
    figure: formatNumber(totalOf(Object.fromEntries(reasons))),
    note: others.length === 0 ? first : `most: ${first}`,
    detail: [first, ...others].join(', '),
  }
}

export function diskUsed(answered: Answered): TileText {
  const { stats } = answered
  if (stats === undefined) return absent(answered, 'producer.stats')
  const { diskSizeBytes: size, diskFreeBytes: free } = stats
  if (size === undefined || free === undefined) return { figure: UNKNOWN, note: 'only an admin may see it' }
  if (size === 0) return { figure: UNKNOWN, note: 'the server does not know it' }
  return { figure: `${Math.round((1 - free / size) * 100)} %`, note: `${formatBytes(free)} free` }
}

function counted(count: number, what: string): string {
  return `${formatNumber(count)} ${what}${count === 1 ? '' : 's'}`
}
