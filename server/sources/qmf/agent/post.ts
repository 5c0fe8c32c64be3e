/** The agent at one broker, as it outlives connections: what it shows, and how it stands. */
import type { AmqpEvents } from '../../../../protocol/amqp/client.ts'
import type { Clock } from '../../../core/clock.ts'
import type { SensorStatus } from '../../../metrics/metric.ts'
import { Agent, type AgentEvents, type AgentLink } from './agent.ts'
import { newAgentCounters } from './counters.ts'
import { Inventory, type Shown } from './objects.ts'
import type { Remembered } from './remembered.ts'

export interface PostOptions {
  /** As the configuration calls the broker. */
  readonly broker: string
  /** Whose broker it is. */
  readonly tenant: string
  /** The name of the producer. */
  readonly label: string
  readonly shown: readonly Shown[]
  readonly remembered: Remembered
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
}

export class AgentPost {
  readonly broker: string
  readonly owner: { readonly tenant: string }
  readonly #options: PostOptions
  readonly #counters = newAgentCounters()
  readonly #inventory: Inventory
  #isAttached = false
  #detail = 'not connected yet'

  constructor(options: PostOptions) {
    this.broker = options.broker
    this.owner = { tenant: options.tenant }
    this.#options = options
    const { shown, remembered, clock } = options
    this.#inventory = new Inventory(shown, remembered.boot, () => BigInt(clock.microseconds()) * 1_000n)
  }

  /** The agent of a new connection. */
  open(session: string, events: AgentEvents, connect: (events: AmqpEvents) => AgentLink): Agent {
    const { broker, label, remembered, clock } = this.#options
    this.#counters.connections++
    this.#detail = 'connected, not attached yet'
    return new Agent({
      session,
      label,
      systemId: remembered.systemId,
      banks: remembered.banks(broker),
      inventory: this.#inventory,
      counters: this.#counters,
      clock,
      connect,
      events: {
        attached: (banks) => {
          remembered.keep(broker, banks)
          this.#isAttached = true
          this.#detail = `attached as ${banks.brokerBank}.${banks.agentBank}`
          events.attached(banks)
        },
        down: events.down,
      },
    })
  }

  /** Its connection is over, or could not be made. */
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
