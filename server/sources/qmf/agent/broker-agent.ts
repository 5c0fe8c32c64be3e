/** The agent at one broker as it outlives connections, and what all agents keep in the data directory. */
import { randomUUID } from 'node:crypto'
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AmqpEvents } from '../../../../protocol/amqp/client.ts'
import type { Banks } from '../../../../protocol/qmf/types.ts'
import type { Clock } from '../../../core/clock.ts'
import type { Logger } from '../../../core/log.ts'
import type { SensorStatus } from '../../../metrics/metric.ts'
import { type AgentEvents, type AgentLink, newAgentCounters, QmfAgent } from './agent.ts'
import { Inventory, isBanks, type ObjectSource } from './inventory.ts'

const STATE_FILE = 'qmf-agent.json'
/** An object id has 12 bits for it; 0 is for objects that persist. */
const MAX_BOOT = 0xfff
/** Ten times what a thousand brokers need. */
const MAX_STATE_BYTES = 1 << 20

export interface BrokerAgentOptions {
  /** The name of the broker in the configuration. */
  readonly broker: string
  /** The tenant of the broker. */
  readonly tenant: string
  /** The name of the producer. */
  readonly label: string
  readonly sources: readonly ObjectSource[]
  readonly stateFile: AgentStateFile
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
}

export class BrokerAgent {
  readonly broker: string
  readonly owner: { readonly tenant: string }
  readonly #options: BrokerAgentOptions
  readonly #counters = newAgentCounters()
  readonly #inventory: Inventory
  #isAttached = false
  #detail = 'not connected yet'

  constructor(options: BrokerAgentOptions) {
    this.broker = options.broker
    this.owner = { tenant: options.tenant }
    this.#options = options
    const { sources, stateFile, clock } = options
    this.#inventory = new Inventory(sources, stateFile.boot, () => BigInt(clock.microseconds()) * 1_000n)
  }

  /** Makes the agent of a new connection. */
  open(session: string, events: AgentEvents, connect: (events: AmqpEvents) => AgentLink): QmfAgent {
    const { broker, label, stateFile, clock } = this.#options
    this.#counters.connections++
    this.#detail = 'connected, not attached yet'
    return new QmfAgent({
      session,
      label,
      systemId: stateFile.systemId,
      banks: stateFile.banks(broker),
      inventory: this.#inventory,
      counters: this.#counters,
      clock,
      connect,
      events: {
        attached: (banks) => {
          stateFile.keep(broker, banks)
          this.#isAttached = true
          this.#detail = `attached as ${banks.brokerBank}.${banks.agentBank}`
          events.attached(banks)
        },
        down: events.down,
      },
    })
  }

  /** The connection has ended, or could not be made. */
  down(reason: string): void {
    this.#isAttached = false
    this.#detail = `waiting, ${reason}`
  }

  /** For `producer.sensors`. */
  status(): SensorStatus {
    return {
      name: `qmf-agent/${this.broker}`,
      state: this.#isAttached ? 'listening' : 'failed',
      detail: this.#detail,
      counters: { ...this.#counters },
    }
  }
}

/**
 * The state of the agents that QMF expects to survive restarts: who they are, the number of this start, and the banks
 * that each broker gave. Without the file they are new agents to their brokers, and nothing else is lost.
 */
export class AgentStateFile {
  readonly systemId: string
  /** The number of this start, 1..4095, one more than the last one. */
  readonly boot: number
  readonly #banks: Map<string, Banks>
  readonly #directory: string
  readonly #log: Pick<Logger, 'warn'>

  /** Never throws: if the file cannot be written, the next start makes new agents. */
  constructor(directory: string, log: Pick<Logger, 'warn'>) {
    this.#directory = directory
    this.#log = log
    const { systemId, boot, banks } = this.#read()
    this.systemId = typeof systemId === 'string' && isUuid(systemId) ? systemId : randomUUID()
    const last = Number(boot)
    this.boot = Number.isInteger(last) && last > 0 && last < MAX_BOOT ? last + 1 : 1
    const entries = typeof banks === 'object' && banks !== null ? Object.entries(banks) : []
    this.#banks = new Map(entries.filter((entry): entry is [string, Banks] => isBanks(entry[1])))
    this.#write()
  }

  /** Returns the last banks at a broker of the configuration. */
  banks(broker: string): Banks | undefined {
    return this.#banks.get(broker)
  }

  keep(broker: string, { brokerBank, agentBank }: Banks): void {
    const before = this.#banks.get(broker)
    if (before?.brokerBank === brokerBank && before.agentBank === agentBank) return
    this.#banks.set(broker, { brokerBank, agentBank })
    this.#write()
  }

  get #path(): string {
    return join(this.#directory, STATE_FILE)
  }

  #read(): Readonly<Record<string, unknown>> {
    try {
      const stat = statSync(this.#path)
      if (!stat.isFile() || stat.size > MAX_STATE_BYTES)
        throw new Error(`it is not a file of at most ${MAX_STATE_BYTES} bytes`)
      const read: unknown = JSON.parse(readFileSync(this.#path, 'utf8'))
      if (typeof read === 'object' && read !== null) return read as Record<string, unknown>
      this.#log.warn(
        { file: this.#path },
        'the state file of the QMF agents is invalid: they will be new agents to their brokers',
      )
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#log.warn(
          { file: this.#path, err: error },
          'the state file of the QMF agents cannot be read: they will be new agents to their brokers',
        )
      }
    }
    return {}
  }

  #write(): void {
    const { systemId, boot } = this
    const text = `${JSON.stringify({ systemId, boot, banks: Object.fromEntries(this.#banks) })}\n`
    try {
      writeFileSync(`${this.#path}.new`, text, { mode: 0o600 })
      renameSync(`${this.#path}.new`, this.#path)
    } catch (error) {
      this.#log.warn({ file: this.#path, err: error }, 'the state file of the QMF agents cannot be written')
    }
  }
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)
}
