/**
 * Counters of Mono agents as metrics `mono.<category>.<counter>` with an agent. It knows no socket: listeners open an
 * agent per connection and hand in bytes and the way back. An agent that is gone takes its series along, which tells
 * subscribers VOID; when it comes back it is found under the same name and is asked for the same again.
 */
import type { Owner } from '../../../auth/permissions.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { MonoDialect } from '../../../protocol/mono/constants.ts'
import type { Clock } from '../../core/clock.ts'
import { Catalogue } from '../../metrics/catalogue.ts'
import type { Hub } from '../../metrics/hub.ts'
import type { ListeningSensor, Measurement, Metric, Parameter, SensorStatus, Series } from '../../metrics/metric.ts'
import { AllowedSenders } from '../allowed.ts'
import { feedName, type Meter, type TenantFeed, UNMETERED } from '../by-tenant.ts'
import type { StreamReply } from '../io/tcp.ts'
import { MonoAgent } from './agent.ts'
import type { MonoSection } from './config.ts'
import { type MonoReceiver, MonoSeries } from './counters.ts'
import { counterDetails, MONO_PREFIX, metadataOf } from './names.ts'

export type MonoConfig = Pick<MonoSection, 'tenant' | 'allow' | 'maxAgents' | 'maxCounters' | 'maxMetrics'>

/** The hub, to which births, values and deaths are reported. */
export type MonoHub = Pick<Hub, 'born' | 'emit' | 'died'>

/** The listener over which an agent connects. */
export interface ListenerOptions {
  readonly dialect: MonoDialect
  /** The name of its agents; undefined if they are named after their address. */
  readonly agent: string | undefined
}

/** One connection's bytes. */
export interface MonoFeed {
  /** Nothing in them makes it throw. */
  push(bytes: Uint8Array): void
  end(): void
}

const MAX_NAME_BYTES = 1_024
/** An agent that connected at most this long before another ended is the same one: the kernel notices a dead peer within 25 s. */
const OVERLAP_MS = 30_000

/** An agent, and what it is called: `wanted`, or with a number from 2 on as long as others are called so. */
interface Connected {
  readonly agent: MonoAgent
  readonly breakOff: () => void
  readonly wanted: string
  readonly sinceMs: number
  number: number
}

const PARAMETERS: readonly Parameter[] = [
  {
    name: 'agent',
    type: BasicType.STRING,
    description: 'The agent: the name that the configuration gives its listener or file, else its address.',
    selects: 'any',
  },
]

export class MonoSensor implements ListeningSensor, MonoReceiver {
  readonly family = MONO_PREFIX
  readonly polled = false
  readonly owner: Owner
  readonly counters = {
    connections: 0,
    values: 0,
    samplings: 0,
    added: 0,
    removed: 0,
    refused: 0,
    unanswered: 0,
    badName: 0,
    unserved: 0,
    badTime: 0,
    invalid: 0,
    silent: 0,
    cutOff: 0,
    refusedSource: 0,
    agentsFull: 0,
    metricsFull: 0,
  }
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  /** Agents are read on only while it lets values in: they lose nothing. */
  readonly meter: Meter
  readonly #name: string
  readonly #config: MonoConfig
  readonly #hub: MonoHub
  readonly #allowed: AllowedSenders
  readonly #catalogue = new Catalogue<MonoSeries>(MONO_PREFIX, PARAMETERS, ({ counter, header }) => {
    return counterDetails(counter, header)
  })
  readonly #agents = new Map<string, Connected>()
  #metrics = 0
  readonly #listening: string[] = []
  #lastError = ''

  constructor(
    config: MonoConfig,
    hub: MonoHub,
    clock: Pick<Clock, 'monotonicMs' | 'microseconds'>,
    { meter = UNMETERED, named }: TenantFeed = {},
  ) {
    this.#name = feedName('mono', named)
    this.meter = meter
    this.owner = { tenant: config.tenant }
    this.#config = config
    this.#hub = hub
    this.clock = clock
    this.#allowed = new AllowedSenders(config.allow)
  }

  metrics(): Iterable<Metric> {
    return this.#catalogue.metrics()
  }

  metric(name: string): Metric | undefined {
    return this.#catalogue.metric(name)
  }

  series(name?: string): Iterable<MonoSeries> {
    return this.#catalogue.series(name)
  }

  last(series: Series): Measurement | undefined {
    return series instanceof MonoSeries ? series.last : undefined
  }

  /** The agent of that name, if it is connected. */
  agent(name: string): MonoAgent | undefined {
    return this.#agents.get(name)?.agent
  }

  agents(): Iterable<string> {
    return this.#agents.keys()
  }

  /** Opens a connection from there; undefined if it is refused, which is counted. */
  open(from: string, through: ListenerOptions, back: StreamReply): MonoFeed | undefined {
    const { address, allowed } = this.#allowed.check(from)
    if (!allowed) {
      this.counters.refusedSource++
      return undefined
    }
    return this.#open(through.agent ?? address, through.dialect, back)
  }

  /** Opens what an agent wrote into a file, of which nothing can be asked; undefined as for `open`. */
  openFile(name: string): MonoFeed | undefined {
    return this.#open(name, 'gist', undefined)
  }

  /** To be called every second or so: ends those that never say Hello, or do not go after Good Bye. */
  sweep(): void {
    for (const { agent, breakOff } of [...this.#agents.values()]) {
      if (!agent.sweep(this.clock.monotonicMs())) continue
      this.counters.silent++
      breakOff()
    }
  }

  listens(detail: string): void {
    this.#listening.push(detail)
  }

  status(): SensorStatus {
    const late = [...this.#agents.values()].filter(({ agent }) => agent.isLate).map(({ agent }) => agent.name)
    return {
      name: this.#name,
      state: this.#listening.length > 0 ? 'listening' : 'off',
      detail: [
        ...this.#listening,
        late.length > 0 && `${late.slice(0, 3).join(', ')} did not answer: is \`dialect\` right?`,
        this.#lastError,
      ]
        .filter(Boolean)
        .join('; '),
      counters: { ...this.counters, agents: this.#agents.size, metrics: this.#metrics },
    }
  }

  hasRoom(): boolean {
    if (this.#metrics < this.#config.maxMetrics) return true
    this.counters.metricsFull++
    return false
  }

  born(series: MonoSeries): void {
    this.#metrics++
    this.#catalogue.add(series)
    this.metadataChanged(series)
    this.#hub.born(this, series)
  }

  metadataChanged(series: MonoSeries): void {
    this.#catalogue.update(series, metadataOf(series.counter, series.header))
  }

  received(series: MonoSeries, value: Value, time: number): void {
    this.counters.values++
    this.meter.take()
    series.last = { value, time }
    this.#hub.emit(series, value, time)
  }

  died(series: MonoSeries): void {
    this.#metrics--
    this.#catalogue.remove(series)
    this.#hub.died(series)
  }

  #open(wanted: string, dialect: MonoDialect, back: StreamReply | undefined): MonoFeed | undefined {
    if (this.#agents.size >= this.#config.maxAgents) {
      this.counters.agentsFull++
      return undefined
    }
    this.counters.connections++
    const number = this.#free(wanted)
    const name = numbered(wanted, number)
    const limits = { maxCounters: this.#config.maxCounters, maxNameBytes: MAX_NAME_BYTES }
    const agent = new MonoAgent({ name, dialect, limits, receiver: this, back })
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      agent.end()
      this.#leave(connected)
    }
    const breakOff = (): void => {
      end()
      back?.close()
    }
    const connected: Connected = { agent, breakOff, wanted, sinceMs: this.clock.monotonicMs(), number }
    this.#agents.set(name, connected)
    return {
      push: (bytes) => {
        if (isOver) return
        try {
          agent.push(bytes)
        } catch (error) {
          if (!(error instanceof ProtocolError)) throw error
          this.counters.invalid++
          this.#lastError = `last error: ${agent.name}: ${error.message} (byte ${error.offset})`
          breakOff()
        }
      },
      end: () => {
        if (!isOver && !agent.complete) this.counters.cutOff++
        end()
      },
    }
  }

  /** The lowest number that is free: who comes back alone is called as before. */
  #free(wanted: string): number {
    let number = 1
    while (this.#agents.has(numbered(wanted, number))) number++
    return number
  }

  /** An agent that reconnected before its old connection was seen to be over keeps its name, too. */
  #leave({ agent: { name }, wanted, number }: Connected): void {
    this.#agents.delete(name)
    const since = this.clock.monotonicMs() - OVERLAP_MS
    const again = [...this.#agents.values()].find((other) => {
      return other.wanted === wanted && other.number > number && other.sinceMs >= since
    })
    if (again === undefined) return
    this.#agents.delete(again.agent.name)
    this.#agents.set(name, again)
    again.number = number
    again.agent.rename(name)
  }
}

function numbered(name: string, number: number): string {
  return number === 1 ? name : `${name}#${number}`
}
