/**
 * Counters of Mono agents as metrics `mono.<category>.<counter>` with the parameter `agent`. The sensor has no socket:
 * listeners open an agent per connection and hand in its bytes and the way back. When an agent disconnects, its series end,
 * and subscribers get VOID; when it reconnects, it gets the same name and the same counters are requested again.
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

/** The bytes of one connection. */
export interface MonoFeed {
  /** Never throws, whatever the bytes. */
  push(bytes: Uint8Array): void
  end(): void
}

const MAX_NAME_BYTES = 1_024
/** If an agent connected at most this long before an older connection ended, both are the same agent: the kernel detects a dead peer within 25 s. */
const OVERLAP_MS = 30_000

/** A connected agent. Its name is `wanted`, followed by a number from 2 on if others have that name. */
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
    description: 'The agent: the name of its listener or file in the configuration, or its address.',
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
  /** Agents are read only while it accepts values, so nothing is lost. */
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

  metrics(prefix?: string, after?: string): Iterable<Metric> {
    return this.#catalogue.metrics(prefix, after)
  }

  metric(name: string): Metric | undefined {
    return this.#catalogue.metric(name)
  }

  series(name?: string, prefix?: string): Iterable<MonoSeries> {
    return this.#catalogue.series(name, prefix)
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

  /** Opens a connection from an address; returns undefined if it is refused, which is counted. */
  open(from: string, through: ListenerOptions, back: StreamReply): MonoFeed | undefined {
    const { address, allowed } = this.#allowed.check(from)
    if (!allowed) {
      this.counters.refusedSource++
      return undefined
    }
    return this.#open(through.agent ?? address, through.dialect, back)
  }

  /** Opens a file that an agent wrote, which cannot be sent requests; returns undefined like `open`. */
  openFile(name: string): MonoFeed | undefined {
    return this.#open(name, 'gist', undefined)
  }

  /** Ends agents that sent no Hello in time, or stay after Good Bye; call this about once a second. */
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
        late.length > 0 && `${late.slice(0, 3).join(', ')} did not answer: check \`dialect\``,
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

  /** The lowest free number, so that an agent that reconnects keeps its name. */
  #free(wanted: string): number {
    let number = 1
    while (this.#agents.has(numbered(wanted, number))) number++
    return number
  }

  /** Frees the name of an agent. If the agent had already reconnected, the new connection takes over the name. */
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
