/** The agent at one broker as it outlives connections. */
import type { AmqpEvents } from '../../../../protocol/amqp/client.ts'
import type { SensorStatus } from '../../../kit/metrics.ts'
import type { Clock } from '../../../kit/running.ts'
import { type AgentEvents, type AgentLink, newAgentCounters, QmfAgent } from './agent.ts'
import type { AgentState } from './agent-state.ts'
import { Inventory, type ObjectSource } from './inventory.ts'

export interface BrokerAgentOptions {
  /** The name of the broker in the configuration. */
  readonly broker: string
  /** The tenant of the broker. */
  readonly tenant: string
  /** The name of the producer. */
  readonly label: string
  readonly sources: readonly ObjectSource[]
  readonly state: AgentState
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
    const { sources, state, clock } = options
    this.#inventory = new Inventory(sources, state.boot, () => BigInt(clock.microseconds()) * 1_000n)
  }

  /** Makes the agent of a new connection. */
  open(session: string, events: AgentEvents, connect: (events: AmqpEvents) => AgentLink): QmfAgent {
    const { broker, label, state, clock } = this.#options
    this.#counters.connections++
    this.#detail = 'connected, not attached yet'
    return new QmfAgent({
      session,
      label,
      systemId: state.systemId,
      banks: state.banks(broker),
      inventory: this.#inventory,
      counters: this.#counters,
      clock,
      connect,
      events: {
        attached: (banks) => {
          state.keep(broker, banks)
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
