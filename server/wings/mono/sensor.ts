/**
 * Counters of Mono agents as metrics `mono.<category>.<counter>` with the parameter `agent`. The sensor has no socket:
 * listeners open an agent per connection and hand in its bytes and the way back. When an agent disconnects, its series end,
 * and subscribers get VOID; when it reconnects, it gets the same name and the same counters are requested again.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Value } from '../../../protocol/monitor/value.ts'
import type { MonoDialect } from '../../../protocol/mono/messages.ts'
import type { TenantFeed } from '../../kit/by-tenant.ts'
import type { Feed } from '../../kit/feed.ts'
import type { StreamTaker } from '../../kit/io/pacer.ts'
import type { StreamReply } from '../../kit/io/tcp.ts'
import { Catalogue, type Measurement, type Parameter, type Series } from '../../kit/metrics.ts'
import { ReceivingSensor, type SourceReport } from '../../kit/receiving-sensor.ts'
import type { Clock } from '../../kit/running.ts'
import { MonoAgent } from './agent.ts'
import type { MonoSection } from './config.ts'
import { counterDetails, MONO_PREFIX, type MonoReceiver, MonoSeries, metadataOf } from './counters.ts'

export type MonoConfig = Pick<MonoSection, 'tenant' | 'allow' | 'maxAgents' | 'maxCounters' | 'maxMetrics'>

/** The hub, to which births, values and deaths are reported. */
export type MonoHub = Pick<Feed, 'born' | 'emit' | 'died'>

/** The listener over which an agent connects. */
export interface ListenerOptions {
  readonly dialect: MonoDialect
  /** The name of its agents; undefined if they are named after their address. */
  readonly agent: string | undefined
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

export class MonoSensor extends ReceivingSensor<MonoSeries> implements MonoReceiver {
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
  readonly #config: MonoConfig
  readonly #hub: MonoHub
  readonly #agents = new Map<string, Connected>()
  /** How many of the agents are connections, and not files. */
  #connected = 0
  #lastError = ''

  constructor(
    config: MonoConfig,
    hub: MonoHub,
    clock: Pick<Clock, 'monotonicMs' | 'microseconds'>,
    feed: TenantFeed = {},
  ) {
    const catalogue = new Catalogue<MonoSeries>(MONO_PREFIX, PARAMETERS, ({ counter, header }) => {
      return counterDetails(counter, header)
    })
    const { tenant, allow } = config
    super({ ...feed, kind: 'mono', family: MONO_PREFIX, tenant, allow, catalogue, hub })
    this.#config = config
    this.#hub = hub
    this.clock = clock
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

  /** Opens a connection from an address; returns undefined if it is refused, which is counted. Never throws, whatever the bytes. */
  open(from: string, through: ListenerOptions, back: StreamReply): StreamTaker | undefined {
    const { address, allowed } = this.senders.check(from)
    if (!allowed) {
      this.counters.refusedSource++
      return undefined
    }
    if (this.#connected >= this.#config.maxAgents) {
      this.counters.agentsFull++
      return undefined
    }
    return this.#open(through.agent ?? address, through.dialect, back)
  }

  /** Opens a file that an agent wrote, which cannot be sent requests. The configuration bounds the number of files. */
  openFile(name: string): StreamTaker {
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

  protected report(): SourceReport {
    const late = [...this.#agents.values()].filter(({ agent }) => agent.isLate).map(({ agent }) => agent.name)
    return {
      notes: [
        late.length > 0 ? `${late.slice(0, 3).join(', ')} did not answer: check \`dialect\`` : '',
        this.#lastError,
      ],
      counters: { ...this.counters, agents: this.#agents.size, metrics: this.seriesCount },
    }
  }

  hasRoom(): boolean {
    if (this.seriesCount < this.#config.maxMetrics) return true
    this.counters.metricsFull++
    return false
  }

  metadataChanged(series: MonoSeries): void {
    this.catalogue.update(series, metadataOf(series.counter, series.header))
  }

  received(series: MonoSeries, value: Value, time: number): void {
    this.counters.values++
    this.meter.take()
    series.last = { value, time }
    this.#hub.emit(series, value, time)
  }

  #open(wanted: string, dialect: MonoDialect, back: StreamReply | undefined): StreamTaker {
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
    if (!agent.isFile) this.#connected++
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
  #leave({ agent: { name, isFile }, wanted, number }: Connected): void {
    this.#agents.delete(name)
    if (!isFile) this.#connected--
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
