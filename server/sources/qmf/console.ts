/**
 * One broker as a console sees it, over an AMQP connection that somebody else made: what classes and objects it has, what
 * they are worth where somebody wants to know, and calls of methods. Nothing is fetched that nobody wants but the list of
 * what there is. It says `down` once and is no good afterwards; a new connection needs a new one.
 */

import type { Delivery } from '../../../protocol/amqp/client.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { decodeBody } from '../../../protocol/qmf/decode.ts'
import { encodeMessage } from '../../../protocol/qmf/encode.ts'
import type {
  ClassKey,
  Known,
  ObjectId,
  QmfMessage,
  QmfValue,
  Schema,
  SchemaMethod,
  TableSchema,
} from '../../../protocol/qmf/types.ts'
import type { Clock } from '../../core/clock.ts'
import { BROKER_AGENT, banksOf, heartbeatOf, publishesOf } from './agent.ts'
import { Bindings, EXCHANGE, REPLY_EXCHANGE } from './bindings.ts'
import { Calls } from './calls.ts'
import { type AmqpLink, type ConsoleOptions, consoleLimits } from './console-options.ts'
import { countStopped, type QmfCounters } from './counters.ts'
import { Discovery } from './discovery.ts'
import { endsLast } from './endings.ts'
import { agentOf, KnownObjects } from './objects.ts'
import { Polling } from './polling.ts'
import { Requests, TIMEOUT_MS } from './requests.ts'
import { Rounds } from './rounds.ts'
import type { CallResult, ConsoleEvents, ObjectSample } from './told.ts'

export type { CallResult, ConsoleEvents, MethodReply, ObjectSample, QmfEvent } from './told.ts'

const CONTENT_TYPE = 'x-application/qmf'
/** From the connect to an open session. */
const PATIENCE_MS = 10_000

export class Console {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #events: ConsoleEvents
  readonly #counters: QmfCounters
  readonly #link: AmqpLink
  readonly #bindings: Bindings
  readonly #known: Known
  readonly #requests: Requests
  readonly #calls: Calls
  readonly #discovery: Discovery
  readonly #objects: KnownObjects
  readonly #polling: Polling
  /** Names of the classes that have objects. */
  readonly #classes = new Set<string>()
  /** The banks of agents by the objects that tell of them. */
  readonly #agents = new Map<ObjectId, string>()
  #state: 'opening' | 'open' | 'discovered' | 'ready' | 'over' = 'opening'
  readonly #rounds = new Rounds()
  /** When it has to be open, monotonic ms. */
  readonly #dueMs: number

  constructor({
    session,
    intervalMs,
    cache,
    limits = consoleLimits,
    counters,
    clock,
    events,
    connect,
  }: ConsoleOptions) {
    this.#clock = clock
    this.#events = events
    this.#counters = counters
    this.#bindings = new Bindings(session)
    this.#dueMs = clock.monotonicMs() + PATIENCE_MS
    const schemaOf = (key: ClassKey) => this.#discovery.schema(key)
    this.#known = { schema: schemaOf, method: (sequence) => this.#calls.method(sequence, schemaOf) }
    this.#requests = new Requests({
      encode: (message) => encodeMessage(message, this.#known),
      send: (routingKey, body) => this.#send(routingKey, body),
      counters,
    })
    this.#calls = new Calls(this.#requests, limits.calls)
    this.#discovery = new Discovery({
      requests: this.#requests,
      cache,
      mostSchemas: limits.schemas,
      mostPackages: limits.packages,
      counters,
      learned: (schema) => this.#learned(schema),
    })
    this.#objects = new KnownObjects({
      own: { session, queues: [this.#bindings.replies, this.#bindings.topics] },
      most: limits.objects,
      counters,
      took: (sample, schema) => this.#took(sample, schema),
      gone: (id) => this.#gone(id),
      unknown: (agent, className) => this.#polling.askAgent(agent, className),
    })
    this.#polling = new Polling({
      requests: this.#requests,
      objects: this.#objects,
      intervalMs,
      mostAgents: limits.agents,
      counters,
      classes: this.#classes,
      nowMs: () => clock.monotonicMs(),
    })
    this.#link = connect({
      opened: () => this.#opened(),
      delivered: (delivery) => this.#delivered(delivery),
      closed: (reason) => this.#down(reason),
    })
    this.#link.start()
  }

  push(bytes: Uint8Array): void {
    if (this.#isOver) return
    try {
      this.#link.push(bytes)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#down(error.message)
    }
  }

  /** To be called every second. */
  tick(nowMs: number): void {
    if (this.#isOver) return
    if (this.#link.tick(nowMs)) this.#down('the broker has been silent for too long')
    else if (this.#state !== 'opening') this.#sweep(nowMs)
    else if (nowMs >= this.#dueMs) this.#down(`no session within ${PATIENCE_MS / 1000} seconds`)
  }

  /** Says goodbye to the broker. */
  end(): void {
    if (this.#isOver) return
    this.#link.close()
    this.#down('ended')
  }

  /** Values of a class, or events, are to come, or not any more. */
  want(schema: Schema, isWanted: boolean): void {
    if (this.#isOver || !this.#bindings.want(schema, isWanted) || schema.kind !== 'table') return
    const { className } = schema.key
    this.#polling.want(className, this.#bindings.isWanted(className))
    this.#flush()
  }

  /**
   * Never rejects. `args`: those with direction I and IO, in the order of the schema; what does not fit is answered with
   * INVALID_PARAMETER here. `timeoutMs`: when to give up, though the broker may do it all the same.
   */
  call(
    id: ObjectId,
    key: ClassKey,
    method: SchemaMethod,
    args: readonly QmfValue[],
    timeoutMs = TIMEOUT_MS,
  ): Promise<CallResult> {
    if (this.#isOver || this.#state === 'opening') return Promise.resolve(undefined)
    const result = this.#calls.call({ id, key, method: method.name, arguments: args, timeoutMs })
    this.#flush()
    return result.then((reply) => {
      if (typeof reply === 'object') this.#rounds.hasten()
      return reply
    })
  }

  get #isOver(): boolean {
    return this.#state === 'over'
  }

  #opened(): void {
    if (this.#state !== 'opening') return
    this.#state = 'open'
    this.#bindings.open(this.#link)
    this.#requests.ask({ to: 'broker', message: (sequence) => ({ op: 'B', sequence }), ended: () => {} })
    this.#discovery.round(() => {
      this.#state = 'discovered'
      this.#polling.round(() => {
        this.#state = 'ready'
        this.#rounds.begin(this.#clock.monotonicMs())
        this.#events.ready()
      })
    })
    this.#flush()
  }

  #sweep(nowMs: number): void {
    this.#requests.sweep(nowMs)
    this.#polling.sweep(nowMs)
    if (this.#rounds.isDue(nowMs)) {
      this.#rounds.begin(nowMs)
      this.#discovery.round(() => this.#polling.round(() => {}))
    }
    this.#flush()
  }

  #delivered({ appId, routingKey, body }: Delivery): void {
    this.#counters.transfers++
    if (appId === 'qmf2') {
      this.#counters.qmf2++
      return
    }
    const nowMs = this.#clock.monotonicMs()
    const { messages, stopped } = decodeBody(body, this.#known)
    this.#counters.messages += messages.length
    for (const message of endsLast(messages)) {
      if (this.#isOver) return
      this.#take(message, routingKey, nowMs)
    }
    if (this.#isOver) return
    if (stopped !== undefined) {
      countStopped(this.#counters, stopped)
      if (stopped.reason === 'unknown-class' && stopped.key !== undefined) this.#discovery.offer(stopped.key)
      if (stopped.op !== undefined) this.#requests.spoil(stopped.sequence ?? 0, stopped.op)
    }
    this.#flush()
  }

  #take(message: QmfMessage, routingKey: string, nowMs: number): void {
    switch (message.op) {
      case 'g':
        if (this.#requests.answer(message, nowMs)) this.#sample(message)
        break
      case 'c':
      case 'i':
        this.#sample(message)
        break
      case 'e': {
        const schema = this.#discovery.schema(message.key)
        if (schema?.kind !== 'event' || this.#objects.own.isOwnEvent(schema, message.arguments)) break
        const { time, severity, arguments: values } = message
        this.#events.event(message.key, { time, severity, arguments: values })
        break
      }
      case 'h': {
        const banks = heartbeatOf(routingKey)
        this.#polling.heartbeat(banks, nowMs)
        if (banks === BROKER_AGENT) this.#events.heartbeat(message.time)
        break
      }
      default:
        if (message.op === 'p' && message.sequence === 0) this.#discovery.packageIndicated(message.packageName)
        else if (message.op === 'q' && message.sequence === 0) this.#discovery.classIndicated(message.key)
        else this.#requests.answer(message, nowMs)
    }
  }

  #sample(sample: ObjectSample): void {
    const schema = this.#discovery.schema(sample.header.key)
    if (schema?.kind === 'table') this.#objects.take(sample, schema)
  }

  #learned(schema: Schema): void {
    const { className } = schema.key
    if (schema.kind === 'table') this.#classes.add(className)
    this.#events.learned(schema)
    if (schema.kind === 'table' && (this.#state === 'discovered' || this.#state === 'ready')) {
      this.#polling.askClass(className)
    }
  }

  #took(sample: ObjectSample, schema: TableSchema): void {
    this.#events.object(sample)
    const publishes = publishesOf(sample, schema)
    if (publishes !== undefined) this.#polling.publishes(agentOf(sample.header.id), publishes)
    const banks = banksOf(sample, schema)
    if (banks === undefined) return
    this.#agents.set(sample.header.id, banks)
    this.#polling.found(banks)
  }

  #gone(id: ObjectId): void {
    this.#events.gone(id)
    const banks = this.#agents.get(id)
    this.#agents.delete(id)
    if (banks !== undefined) this.#polling.lost(banks)
  }

  #send(routingKey: string, body: Uint8Array): void {
    const replyTo = { exchange: REPLY_EXCHANGE, routingKey: this.#bindings.replies }
    this.#link.transfer({ exchange: EXCHANGE, routingKey, replyTo, contentType: CONTENT_TYPE }, body)
  }

  #flush(): void {
    if (this.#state !== 'opening' && !this.#isOver) this.#requests.flush(this.#clock.monotonicMs())
  }

  #down(reason: string): void {
    if (this.#isOver) return
    this.#state = 'over'
    this.#requests.end()
    this.#events.down(reason)
  }
}
