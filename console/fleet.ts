/**
 * The state of the server as the console sees it: what `producer.stats`, `producer.channels`, `producer.sensors` and
 * `producer.notices` say, followed while somebody is signed in, and the rates that follow from two readings.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import type { Consumer, PlainRecord, Sample } from '../client/browser.ts'

const INTERVAL_MS = 1_000
/** Points of the small curves. */
const MAX_POINTS = 120
const MAX_NOTICES = 50

export interface Stats {
  readonly time: number
  readonly software: string
  readonly name: string
  readonly uptime: number
  readonly storage: string
  readonly connections: number
  readonly channels: number
  readonly faults: number
  readonly unstoredBytes: number
  /** These are only for admins. */
  readonly acceptedValues: number | undefined
  readonly sentValues: number | undefined
  readonly diskSizeBytes: number | undefined
  readonly diskFreeBytes: number | undefined
  /** Values that were dropped in the last hour, by the reason. */
  readonly droppedLastHour: Readonly<Record<string, number>> | undefined
}

export interface ChannelState {
  readonly id: number
  readonly name: string
  readonly identity: string
  readonly url: string
  readonly state: string
  readonly durable: boolean
  readonly accepted: number
  readonly committed: number
  readonly inFlight: number
  readonly queued: number
  readonly queuedBytes: number
  /** Values by the cause of their loss. */
  readonly dropped: Readonly<Record<string, number>>
  /** Microseconds since 1970; 0 if nothing waits. */
  readonly oldest: number
  readonly bindings: readonly string[]
  readonly bound: number
}

export interface SensorState {
  readonly name: string
  readonly state: string
  readonly detail: string
  readonly counters: Readonly<Record<string, number>>
}

export interface NoticeLine {
  readonly time: number
  readonly severity: string
  readonly subject: string
  readonly detail: string
}

/** A small curve: values at equal distances, the last one is the newest. */
export type Points = readonly number[]

export class Fleet {
  readonly #stats = signal<Stats | undefined>(undefined)
  readonly #channels = signal<readonly ChannelState[] | undefined>(undefined)
  readonly #sensors = signal<readonly SensorState[] | undefined>(undefined)
  readonly #notices = signal<readonly NoticeLine[]>([])
  readonly #curves = new Map<string, { readonly points: ReturnType<typeof signal<Points>>; last: number; at: number }>()

  get stats(): ReadonlySignal<Stats | undefined> {
    return this.#stats
  }

  get channels(): ReadonlySignal<readonly ChannelState[] | undefined> {
    return this.#channels
  }

  get sensors(): ReadonlySignal<readonly SensorState[] | undefined> {
    return this.#sensors
  }

  get notices(): ReadonlySignal<readonly NoticeLine[]> {
    return this.#notices
  }

  /** The curve of a figure per second, by its name; empty until there are two readings. */
  curve(name: string): ReadonlySignal<Points> {
    return this.#curveOf(name).points as ReadonlySignal<Points>
  }

  /** Follows everything on a channel. Rejects if that is refused. */
  async follow(consumer: Consumer): Promise<void> {
    const args = { interval_ms: INTERVAL_MS }
    await Promise.all([
      consumer.follow('producer.stats', args, (sample) => this.#tookStats(sample)),
      consumer.follow('producer.channels', args, (sample) => this.#tookChannels(sample)),
      consumer.follow('producer.sensors', args, (sample) => this.#tookSensors(sample)),
      consumer.follow('producer.notices', {}, (sample) => this.#tookNotice(sample)),
    ])
    await consumer.run()
  }

  #tookStats(sample: Sample): void {
    const read = reader(sample.plain as PlainRecord)
    const stats: Stats = {
      time: sample.time,
      software: read.text('software'),
      name: read.text('name'),
      uptime: read.number('uptime'),
      storage: read.text('storage'),
      connections: read.number('connections'),
      channels: read.number('channels'),
      faults: read.number('faults'),
      unstoredBytes: read.number('unstored_bytes'),
      acceptedValues: read.optional('accepted_values'),
      sentValues: read.optional('sent_values'),
      diskSizeBytes: read.optional('disk_size_bytes'),
      diskFreeBytes: read.optional('disk_free_bytes'),
      droppedLastHour:
        (sample.plain as PlainRecord)['dropped_last_hour'] === undefined
          ? undefined
          : read.numbers('dropped_last_hour'),
    }
    this.#stats.value = stats
    if (stats.acceptedValues !== undefined) this.#count('accepted', stats.acceptedValues, sample.time)
    if (stats.sentValues !== undefined) this.#count('sent', stats.sentValues, sample.time)
    if (stats.diskFreeBytes !== undefined) this.#level('disk', (stats.diskSizeBytes ?? 0) - stats.diskFreeBytes)
  }

  #tookChannels(sample: Sample): void {
    const channels = recordsOf(sample).map((record): ChannelState => {
      const read = reader(record)
      return {
        id: read.number('channel'),
        name: read.text('name'),
        identity: read.text('identity'),
        url: read.text('url'),
        state: read.text('state'),
        durable: record['durable'] === true,
        accepted: read.number('accepted'),
        committed: read.number('committed'),
        inFlight: read.number('in_flight'),
        queued: read.number('queued'),
        queuedBytes: read.number('queued_bytes'),
        dropped: read.numbers('dropped'),
        oldest: read.number('oldest'),
        bindings: listOf(record['bindings']).map((binding) => String(binding['name'] ?? '')),
        bound: read.number('bound'),
      }
    })
    this.#channels.value = channels
    const sum = (of: (channel: ChannelState) => number): number => channels.reduce((all, one) => all + of(one), 0)
    this.#count(
      'committed',
      sum(({ committed }) => committed),
      sample.time,
    )
    this.#level('waiting', sum(waitingOf))
    this.#level('lost', sum(droppedOf))
  }

  #tookSensors(sample: Sample): void {
    this.#sensors.value = recordsOf(sample).map((record) => {
      const read = reader(record)
      const counters = read.numbers('counters')
      const name = read.text('name')
      const received = counters['values'] ?? counters['received'] ?? counters['readings'] ?? 0
      this.#count(`sensor ${name}`, received, sample.time)
      return { name, state: read.text('state'), detail: read.text('detail'), counters }
    })
  }

  #tookNotice(sample: Sample): void {
    const read = reader(sample.plain as PlainRecord)
    const line = {
      time: sample.time,
      severity: read.text('severity'),
      subject: read.text('subject'),
      detail: read.text('detail'),
    }
    this.#notices.value = [line, ...this.#notices.value].slice(0, MAX_NOTICES)
  }

  /** A counter: its curve has the growth per second. It is set back when the server starts anew. */
  #count(name: string, value: number, time: number): void {
    const curve = this.#curveOf(name)
    const seconds = (time - curve.at) / 1e6
    if (curve.at > 0 && seconds > 0) this.#push(name, Math.max(0, value - curve.last) / seconds)
    curve.last = value
    curve.at = time
  }

  #level(name: string, value: number): void {
    this.#push(name, value)
  }

  #push(name: string, value: number): void {
    const { points } = this.#curveOf(name)
    points.value = [...(points.value ?? []), value].slice(-MAX_POINTS)
  }

  #curveOf(name: string) {
    const curve = this.#curves.get(name) ?? { points: signal<Points>([]), last: 0, at: 0 }
    this.#curves.set(name, curve)
    return curve
  }
}

/** Values that nobody has committed yet. */
export function waitingOf({ queued, inFlight }: ChannelState): number {
  return queued + inFlight
}

export function droppedOf({ dropped }: ChannelState): number {
  return Object.values(dropped).reduce((all, one) => all + one, 0)
}

/** Seconds that the oldest value has waited; undefined if none waits. */
export function lagOf({ oldest }: ChannelState, nowMs: number): number | undefined {
  return oldest === 0 ? undefined : Math.max(0, nowMs - oldest / 1000) / 1000
}

/** Why values wait, in a few words; empty if nothing is wrong. */
export function whyWaiting(channel: ChannelState): string {
  if (waitingOf(channel) === 0) return ''
  if (channel.state === 'orphan') return 'an orphan: nobody comes back for it'
  if (channel.state === 'waiting') return channel.url === '' ? 'nobody is connected' : 'its consumer cannot be reached'
  if (channel.inFlight > 0 && channel.queued > 0) return 'sent, not committed: the consumer is slow'
  return channel.inFlight > 0 ? 'sent, not committed yet' : ''
}

function recordsOf(sample: Sample): readonly PlainRecord[] {
  return listOf(sample.plain).filter((record) => record['more'] !== true)
}

function listOf(plain: unknown): readonly PlainRecord[] {
  return Array.isArray(plain) ? (plain as readonly PlainRecord[]) : []
}

function reader(record: PlainRecord) {
  const optional = (name: string): number | undefined => {
    const value = record[name]
    return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : undefined
  }
  return {
    text: (name: string): string => (typeof record[name] === 'string' ? record[name] : ''),
    number: (name: string): number => optional(name) ?? 0,
    optional,
    numbers: (name: string): Readonly<Record<string, number>> =>
      Object.fromEntries(
        Object.entries((record[name] ?? {}) as PlainRecord).map(([key, value]) => [key, Number(value)]),
      ),
  }
}
