/** What an agent shows, as a test says it, and an agent over a link that the test is the broker of. */

import type { AmqpEvents, AmqpTransfer } from '../../../../../protocol/amqp/client.ts'
import type { AmqpDelivery } from '../../../../../protocol/amqp/session.ts'
import { ProtocolError } from '../../../../../protocol/errors.ts'
import { decodeBody, encodeMessage } from '../../../../../protocol/qmf/messages.ts'
import type { Banks, QmfMessage } from '../../../../../protocol/qmf/types.ts'
import { agentLookup, newAgentCounters, QmfAgent } from '../../../../../server/wings/qmf/agent/agent.ts'
import { AgentState } from '../../../../../server/wings/qmf/agent/agent-state.ts'
import { Inventory, type ObjectSource, type ObjectValues } from '../../../../../server/wings/qmf/agent/inventory.ts'
import { channelSchema, producerSchema, sensorSchema } from '../../../../../server/wings/qmf/agent/schema.ts'
import type { QmfAgentRow } from '../../../../../storage/store.ts'
import { FakeClock } from '../../../../support/fake-clock.ts'

/** A channel as a test changes it. */
export interface FakeChannel {
  readonly id: number
  owner: string
  queued: bigint
  isGone?: boolean
}

export class FakeProducer {
  readonly channels: FakeChannel[] = []
  readonly sources: readonly ObjectSource[]
  uptime = 5n
  /** How often something was read. */
  reads = 0

  constructor() {
    const producer: ObjectSource<FakeProducer> = {
      schema: producerSchema,
      all: () => [this],
      read: () => this.#read(['n1', 'cinnabar/1', 'ok'], [this.uptime, 1n, 2n, 3n, 4n]),
    }
    const channel: ObjectSource<FakeChannel> = {
      schema: channelSchema,
      all: () => this.channels.filter(({ isGone }) => isGone !== true),
      read: ({ id, owner, queued, isGone }) =>
        isGone ? undefined : this.#read([id, owner, true, 'connected'], [queued, 0n, queued, 0n, 0n, 0n]),
    }
    const sensor: ObjectSource = { schema: sensorSchema, all: () => [], read: () => undefined }
    this.sources = [producer, channel, sensor]
  }

  channel(id: number, queued = 0n): FakeChannel {
    const channel = { id, owner: 'alice', queued }
    this.channels.push(channel)
    return channel
  }

  #read(properties: ObjectValues['properties'], statistics: ObjectValues['statistics']): ObjectValues {
    this.reads++
    return { properties, statistics }
  }
}

/** Starts of a server, one after the other, on one database. */
export class Starts {
  /** What the database has. */
  row: QmfAgentRow | undefined
  readonly warned: string[] = []
  readonly #directory: string

  constructor(directory = '/nowhere') {
    this.#directory = directory
  }

  next(): AgentState {
    return new AgentState({
      stored: this.row,
      directory: this.#directory,
      journal: {
        change: (change) => {
          if ('put' in change && change.put === 'qmf agent') this.row = change.row
        },
      },
      log: { warn: (_: unknown, text?: string) => void this.warned.push(String(text)) },
    })
  }
}

export const SYSTEM_ID = '00010203-0405-0607-0809-0a0b0c0d0e0f'

export class AgentPeer {
  readonly clock = new FakeClock()
  readonly producer = new FakeProducer()
  readonly counters = newAgentCounters()
  /** `declare q`, `bind q exchange key`, `subscribe q`, `close`. */
  readonly commands: string[] = []
  readonly sent: { readonly to: AmqpTransfer; readonly body: Uint8Array }[] = []
  readonly attached: Banks[] = []
  readonly down: string[] = []
  readonly agent: QmfAgent
  /** Nothing can be written into its fields. */
  failing = false
  #events: AmqpEvents | undefined
  #syncs: (() => void)[] = []

  constructor(banks?: Banks) {
    const { clock, counters, producer } = this
    const log =
      (name: string) =>
      (...args: readonly unknown[]) => {
        this.commands.push([name, ...args.filter((arg) => typeof arg === 'string')].join(' '))
      }
    this.agent = new QmfAgent({
      session: 'me',
      label: 'agent-x',
      systemId: SYSTEM_ID,
      banks,
      inventory: new Inventory(producer.sources, 3, () => BigInt(clock.microseconds()) * 1_000n),
      counters,
      clock,
      events: { attached: (given) => this.attached.push(given), down: (reason) => this.down.push(reason) },
      connect: (events) => {
        this.#events = events
        return {
          start: log('start'),
          push: () => {},
          tick: () => {},
          declareQueue: log('declare'),
          bind: log('bind'),
          subscribe: log('subscribe'),
          close: log('close'),
          transfer: (to, body) => {
            if (this.failing) throw new ProtocolError('TOO_LONG', 'a key of 400 bytes')
            this.sent.push({ to, body })
          },
          sync: (done) => void this.#syncs.push(done),
        }
      },
    })
  }

  open(): this {
    this.#events?.opened({ serverProperties: new Map(), heartbeatSeconds: 0 })
    return this
  }

  /** As 1.10; what was sent until then is forgotten. */
  attach(): this {
    this.open().tell(undefined, { op: 'a', sequence: 1, brokerBank: 1, agentBank: 10 })
    this.sent.length = 0
    return this
  }

  deliver(body: Uint8Array, replyTo?: string, more: Partial<AmqpDelivery> = {}): void {
    const address = replyTo === undefined ? {} : { replyTo: { exchange: 'amq.direct', routingKey: replyTo } }
    const rest = { destination: 'qmfagent', exchange: '', routingKey: '', headers: new Map() }
    this.#events?.delivered({ ...rest, ...address, body, ...more })
  }

  tell(replyTo: string | undefined, ...messages: QmfMessage[]): void {
    this.deliver(Buffer.concat(messages.map((message) => encodeMessage(message, agentLookup))), replyTo)
  }

  closed(reason: string): void {
    this.#events?.closed(reason)
  }

  /** The broker has taken all that was sent until now. */
  complete(): void {
    for (const done of this.#syncs.splice(0)) done()
  }

  /** Portions of which the broker has not said that it has them. */
  get awaited(): number {
    return this.#syncs.length
  }

  /** And whatever follows from it, also with the next ticks; no time passes. */
  completeAll(): void {
    do {
      while (this.#syncs.length > 0) this.complete()
      this.agent.tick(this.clock.monotonicMs())
    } while (this.#syncs.length > 0)
  }

  /** Time goes on by so many seconds, with a tick each. */
  pass(seconds: number): void {
    for (let second = 0; second < seconds; second++) {
      this.clock.advance(1_000)
      this.agent.tick(this.clock.monotonicMs())
    }
  }

  /** What was sent since the last time, by where it went. */
  news(): [key: string, messages: readonly QmfMessage[]][] {
    return this.sent.splice(0).map(({ to, body }) => {
      const { messages, stopped } = decodeBody(body, agentLookup)
      if (stopped !== undefined) throw new Error(`it sent what cannot be read: ${stopped.detail}`)
      return [`${to.exchange} ${to.routingKey}`, messages]
    })
  }

  /** The same, without where. */
  messages(): QmfMessage[] {
    return this.news().flatMap(([, messages]) => messages)
  }
}
