/**
 * The state of the server as the console sees it: what `producer.stats`, `producer.channels`, `producer.sensors` and
 * `producer.notices` say, followed while somebody is signed in, and the rates that follow from two readings.
 */
import { type ReadonlySignal, signal } from '@preact/signals'
import { type Consumer, type PlainRecord, type Sample, StatusError } from '../client/browser.ts'
import { type ClusterView, clusterOf } from './cluster.ts'
import { hostText, ofAll, producerIn, producersOf } from './producers.ts'
import { type Arguments, pagesOf, recordsOf } from './query.ts'
import { reasonOf } from './refusals.ts'

const INTERVAL_MS = 1_000
const HOSTS_MS = 10_000
const ALERTS_MS = 5_000
/** What not every server has, and not every role needs to read: nothing is said if it cannot be read. */
const OPTIONAL: readonly string[] = ['producer.cluster', 'producer.alerts']
/** Points of the small curves. */
const MAX_POINTS = 120
const MAX_NOTICES = 50

/** How a state is shown: it is good, it wants to be looked at, or it is gone or unused. */
export type Look = 'good' | 'attention' | 'gone'

export interface Stats {
  readonly software: string
  readonly uptime: number
  readonly storage: string
  readonly faults: number
  /** These are only for admins. */
  readonly sentValues: number | undefined
  readonly diskSizeBytes: number | undefined
  readonly diskFreeBytes: number | undefined
  /** Values that were dropped in the last hour, by the reason. */
  readonly droppedLastHour: Readonly<Record<string, number>> | undefined
}

export interface ChannelState {
  readonly id: number
  readonly name: string
  /** It is the one of this page. */
  readonly isOwn: boolean
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
  readonly settings: ChannelSettings
  /** Values per second between the last two readings; undefined before the second one. */
  readonly acceptedRate: number | undefined
  readonly committedRate: number | undefined
}

/** As `channel.configure` takes them. */
export interface ChannelSettings {
  readonly window: number
  readonly windowBytes: number
  readonly maxBytes: number
  readonly maxAgeMs: number
  readonly expireMs: number
  readonly overflow: string
}

/** How a channel was in the last minutes, one point for each reading. */
export interface ChannelHistory {
  readonly accepted: Points
  readonly committed: Points
  readonly waiting: Points
  readonly dropped: Points
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

/** What sources say of hosts that report through them, such as `gmetric.host.up`. */
export interface SilentHosts {
  readonly count: number
  /** Those that have been silent for longer than they should be, in the order of their names. */
  readonly silent: readonly string[]
}

/** A small curve: values at equal distances, the last one is the newest. */
export type Points = readonly number[]

const NO_HISTORY: ChannelHistory = { accepted: [], committed: [], waiting: [], dropped: [] }

export class Fleet {
  readonly #consumer: Consumer
  readonly #tenant: string
  readonly #histories = new Map<number, ChannelHistory>()
  #readAt = 0
  #clock = { serverMs: Date.now(), atMs: performance.now() }
  readonly #problems = signal<Readonly<Record<string, string>>>({})
  #isReadingChannels = false
  readonly #stats = signal<Stats | undefined>(undefined)
  readonly #channels = signal<readonly ChannelState[] | undefined>(undefined)
  readonly #sensors = signal<readonly SensorState[] | undefined>(undefined)
  readonly #cluster = signal<ClusterView | undefined>(undefined)
  readonly #hosts = signal<SilentHosts | undefined>(undefined)
  readonly #firing = signal(0)
  readonly #notices = signal<readonly NoticeLine[] | undefined>(undefined)
  readonly #curves = new Map<string, { readonly points: ReturnType<typeof signal<Points>>; last: number; at: number }>()

  /** `tenant`: of whoever has signed in. */
  constructor(consumer: Consumer, tenant = 'default') {
    this.#consumer = consumer
    this.#tenant = tenant
  }

  /** The clock of the server, which values have their times from; that of the browser may be wrong. */
  get nowMs(): number {
    const { serverMs, atMs } = this.#clock
    return serverMs + performance.now() - atMs
  }

  /** By the metric that cannot be followed: why not. */
  get problems(): ReadonlySignal<Readonly<Record<string, string>>> {
    return this.#problems
  }

  get stats(): ReadonlySignal<Stats | undefined> {
    return this.#stats
  }

  get channels(): ReadonlySignal<readonly ChannelState[] | undefined> {
    return this.#channels
  }

  get sensors(): ReadonlySignal<readonly SensorState[] | undefined> {
    return this.#sensors
  }

  /** Undefined while it is not known, and if the server is in no cluster. */
  get cluster(): ReadonlySignal<ClusterView | undefined> {
    return this.#cluster
  }

  /** Undefined while it is not known, or if no source has hosts. */
  get hosts(): ReadonlySignal<SilentHosts | undefined> {
    return this.#hosts
  }

  /** How many alerts of the tenant fire. */
  get firing(): ReadonlySignal<number> {
    return this.#firing
  }

  /** Those since the page was opened; undefined until they are followed. */
  get notices(): ReadonlySignal<readonly NoticeLine[] | undefined> {
    return this.#notices
  }

  /** The curve of a figure per second, by its name; empty until there are two readings. */
  curve(name: string): ReadonlySignal<Points> {
    return this.#curveOf(name).points as ReadonlySignal<Points>
  }

  /** By the id of the channel. It has as many points as there were readings since it appeared, 120 at most. */
  historyOf(id: number): ChannelHistory {
    return this.#histories.get(id) ?? NO_HISTORY
  }

  /** Follows everything while the session lasts. Never rejects: what is refused is a problem, and the rest is followed. */
  async follow(): Promise<void> {
    const consumer = this.#consumer
    const args = { interval_ms: INTERVAL_MS }
    this.#followOne('producer.stats', args, (sample) => this.#tookStats(sample))
    this.#followOne('producer.channels', args, (sample) => void this.#tookChannels(sample))
    this.#followOne('producer.sensors', args, (sample) => this.#tookSensors(sample))
    const listening = (): void => {
      this.#notices.value ??= []
    }
    this.#followOne('producer.notices', {}, (sample) => this.#tookNotice(sample), listening)
    this.#followOne('producer.cluster', args, (sample) => {
      this.#cluster.value = clusterOf(sample.plain as PlainRecord)
    })
    this.#followOne('producer.alerts', { interval_ms: ALERTS_MS }, ({ plain }) => {
      const own = recordsOf(plain).find(({ tenant }) => tenant === this.#tenant)
      this.#firing.value = Number(own?.['firing'] ?? 0)
    })
    const looking = setInterval(() => void this.#lookAtHosts(), HOSTS_MS)
    void this.#lookAtHosts()
    try {
      await consumer.run()
    } catch {
      // The connection has ended for good: the session shows the reason.
    } finally {
      clearInterval(looking)
    }
  }

  /** What could not be followed, because it was refused or the connection was lost, is tried again with each connection. */
  #followOne(metric: string, args: Arguments, took: (sample: Sample) => void, followed = (): void => {}): void {
    let isFollowed = false
    const attempt = async (): Promise<void> => {
      if (isFollowed) return
      isFollowed = true
      try {
        await this.#consumer.follow(metric, args, took)
        this.#setProblem(metric, '')
        followed()
      } catch (error) {
        isFollowed = false
        const isAbsent = OPTIONAL.includes(metric) && error instanceof StatusError
        this.#setProblem(metric, isAbsent ? '' : `${metric} cannot be read: ${reasonOf(error)}`)
      }
    }
    this.#consumer.on('connected', () => void attempt())
    void attempt()
  }

  #setProblem(metric: string, problem: string): void {
    const { [metric]: _, ...others } = this.#problems.value
    this.#problems.value = problem === '' ? others : { ...others, [metric]: problem }
  }

  #tookStats(sample: Sample): void {
    this.#clock = { serverMs: sample.time / 1000, atMs: performance.now() }
    const read = reader(sample.plain as PlainRecord)
    const stats: Stats = {
      software: read.text('software'),
      uptime: read.number('uptime'),
      storage: read.text('storage'),
      faults: read.number('faults'),
      sentValues: read.optional('sent_values'),
      diskSizeBytes: read.optional('disk_size_bytes'),
      diskFreeBytes: read.optional('disk_free_bytes'),
      droppedLastHour:
        (sample.plain as PlainRecord)['dropped_last_hour'] === undefined
          ? undefined
          : read.numbers('dropped_last_hour'),
    }
    this.#stats.value = stats
    if (stats.sentValues !== undefined) this.#count('sent', stats.sentValues, sample.time)
    if (stats.droppedLastHour !== undefined) this.#push('lost', totalOf(stats.droppedLastHour))
    if (stats.diskFreeBytes !== undefined) this.#push('disk', (stats.diskSizeBytes ?? 0) - stats.diskFreeBytes)
  }

  /** What does not fit into one value is asked for. */
  async #tookChannels(sample: Sample): Promise<void> {
    // With very many channels one reading may come before the pages of the last one are there.
    if (this.#isReadingChannels) return
    this.#isReadingChannels = true
    try {
      this.#setChannels(await this.#allChannels(sample), sample.time)
    } catch {
      // The connection is lost: the next reading is complete again.
    } finally {
      this.#isReadingChannels = false
    }
  }

  async #allChannels(sample: Sample): Promise<readonly PlainRecord[]> {
    const ask = async (after: string) =>
      after === '' ? sample : await this.#consumer.query('producer.channels', { after: Number(after) })
    const all: PlainRecord[] = []
    for await (const records of pagesOf(ask, { key: 'channel' })) all.push(...records)
    return all
  }

  #setChannels(records: readonly PlainRecord[], time: number): void {
    const seconds = this.#readAt === 0 ? 0 : (time - this.#readAt) / 1e6
    this.#readAt = time
    const before = new Map(this.#channels.value?.map((channel) => [channel.id, channel]))
    const channels = records.map((record) => channelOf(record, before, seconds, this.#consumer.channel))
    for (const id of this.#histories.keys()) if (!before.has(id)) this.#histories.delete(id)
    for (const channel of channels) this.#histories.set(channel.id, grown(this.historyOf(channel.id), channel))
    this.#channels.value = channels
    const sum = (of: (channel: ChannelState) => number): number => channels.reduce((all, one) => all + of(one), 0)
    // The sum of the rates, since a channel that goes takes its count with it.
    if (seconds > 0)
      this.#push(
        'committed',
        sum(({ committedRate = 0 }) => committedRate),
      )
    this.#push('waiting', sum(waitingOf))
    const stats = this.#stats.value
    const isAnswered = stats !== undefined || this.#problems.value['producer.stats'] !== undefined
    if (isAnswered && stats?.droppedLastHour === undefined) this.#push('lost', sum(droppedOf))
  }

  async #lookAtHosts(): Promise<void> {
    try {
      const producers = producersOf(this.#consumer)
      const { elements } = await this.#consumer.query('*.host.up', ofAll(producers))
      const silent = elements
        .filter(({ plain }) => plain === false)
        .map((sample) => hostText(sample.labels.host ?? '', producerIn(sample, producers)))
      this.#hosts.value = elements.length === 0 ? undefined : { count: elements.length, silent: silent.sort() }
      this.#push('silent', silent.length)
    } catch {
      // The connection is lost, or there is no such metric.
    }
  }

  #tookSensors(sample: Sample): void {
    let all = 0
    this.#sensors.value = recordsOf(sample.plain).map((record) => {
      const read = reader(record)
      const counters = read.numbers('counters')
      const name = read.text('name')
      const received = counters['values'] ?? counters['samplings'] ?? 0
      if (isInput({ name })) all += received
      this.#count(`sensor ${name}`, received + (counters['readings'] ?? 0), sample.time)
      return { name, state: read.text('state'), detail: read.text('detail'), counters }
    })
    this.#count('received', all, sample.time)
  }

  #tookNotice(sample: Sample): void {
    const read = reader(sample.plain as PlainRecord)
    const line = {
      time: sample.time,
      severity: read.text('severity'),
      subject: read.text('subject'),
      detail: read.text('detail'),
    }
    this.#notices.value = [line, ...(this.#notices.value ?? [])].slice(0, MAX_NOTICES)
  }

  /** A counter: its curve has the growth per second. It is set back when the server starts anew. */
  #count(name: string, value: number, time: number): void {
    const curve = this.#curveOf(name)
    const seconds = (time - curve.at) / 1e6
    if (curve.at > 0 && seconds > 0) this.#push(name, Math.max(0, value - curve.last) / seconds)
    curve.last = value
    curve.at = time
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
  return totalOf(dropped)
}

/** The entry of a drain begins with this: its values go out, and came in elsewhere. */
const DRAIN = 'drain/'

/** Whether the values of a sensor come in through it. */
export function isInput({ name }: Pick<SensorState, 'name'>): boolean {
  return !name.startsWith(DRAIN)
}

export function totalOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((all, one) => all + one, 0)
}

/** Seconds that the oldest value has waited; undefined if none waits. */
export function lagOf({ oldest }: ChannelState, nowMs: number): number | undefined {
  return oldest === 0 ? undefined : Math.max(0, nowMs - oldest / 1000) / 1000
}

/** Why values wait, in a few words; empty if nothing is wrong. */
export function whyWaiting(channel: ChannelState): string {
  if (waitingOf(channel) === 0) return ''
  if (channel.state === 'orphan') return 'nobody comes back for it'
  if (channel.state === 'waiting') return channel.url === '' ? 'nobody is connected' : 'its consumer cannot be reached'
  if (channel.state === 'window-full') return 'its consumer does not commit what it was sent'
  if (channel.inFlight > 0 && channel.queued > 0) return 'its consumer reads more slowly than values come'
  return channel.inFlight > 0 ? 'its consumer has not committed what it was sent' : ''
}

/** Values that have waited for longer make a channel one to look at. */
const SLOW_SECONDS = 5

export function isSlow(channel: ChannelState, nowMs: number): boolean {
  return (lagOf(channel, nowMs) ?? 0) >= SLOW_SECONDS
}

export function channelLook(channel: ChannelState, nowMs: number): Look {
  if (channel.state === 'orphan') return 'gone'
  return channel.state === 'connected' && !isSlow(channel, nowMs) ? 'good' : 'attention'
}

function channelOf(
  record: PlainRecord,
  before: ReadonlyMap<number, ChannelState>,
  seconds: number,
  own: number,
): ChannelState {
  const read = reader(record)
  const [id, accepted, committed] = [read.number('channel'), read.number('accepted'), read.number('committed')]
  const last = before.get(id)
  // After a restart the figures of a channel that is not durable begin anew.
  const rate = (now: number, then: number | undefined): number | undefined =>
    then === undefined || seconds <= 0 ? undefined : Math.max(0, now - then) / seconds
  return {
    id,
    name: read.text('name'),
    isOwn: id === own,
    identity: read.text('identity'),
    url: read.text('url'),
    state: read.text('state'),
    durable: record['durable'] === true,
    accepted,
    committed,
    inFlight: read.number('in_flight'),
    queued: read.number('queued'),
    queuedBytes: read.number('queued_bytes'),
    dropped: read.numbers('dropped'),
    oldest: read.number('oldest'),
    bindings: recordsOf(record['bindings']).map((binding) => String(binding['name'] ?? '')),
    bound: read.number('bound'),
    settings: {
      window: read.number('window'),
      windowBytes: read.number('window_bytes'),
      maxBytes: read.number('max_bytes'),
      maxAgeMs: read.number('max_age_ms'),
      expireMs: read.number('expire_ms'),
      overflow: read.text('overflow'),
    },
    acceptedRate: rate(accepted, last?.accepted),
    committedRate: rate(committed, last?.committed),
  }
}

function grown(history: ChannelHistory, channel: ChannelState): ChannelHistory {
  const add = (points: Points, value: number | undefined): Points =>
    value === undefined ? points : [...points, value].slice(-MAX_POINTS)
  return {
    accepted: add(history.accepted, channel.acceptedRate),
    committed: add(history.committed, channel.committedRate),
    waiting: add(history.waiting, waitingOf(channel)),
    dropped: add(history.dropped, droppedOf(channel)),
  }
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
