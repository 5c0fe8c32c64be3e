/**
 * A QMF console of one broker over a given AMQP connection: learns its classes and objects, receives their values as
 * far as somebody wants them, and calls methods. Nothing is requested that nobody wants, except for the list of what
 * exists. After it has reported `down` it is of no use: a new connection needs a new console.
 */
import type { AmqpClient, AmqpEvents } from '../../../protocol/amqp/client.ts'
import type { FieldTable } from '../../../protocol/amqp/field-table.ts'
import type { AmqpDelivery, AmqpRefusal } from '../../../protocol/amqp/session.ts'
import type {
  ClassKey,
  DecodeSteps,
  ObjectId,
  QmfMessage,
  QmfValue,
  Schema,
  SchemaLookup,
  SchemaMethod,
} from '../../../protocol/qmf/types.ts'
import type { Clock, Steps } from '../../kit/running.ts'
import { ConsoleBindings } from './bindings.ts'
import {
  type CallResult,
  type ConsoleEvents,
  type ConsoleLimits,
  consoleLimits,
  countStop,
  type ObjectSample,
  type QmfCounters,
} from './console-events.ts'
import { classText, Discovery, type SchemaCache } from './discovery.ts'
import { MapWire } from './map-wire.ts'
import { KnownObjects } from './objects.ts'
import { Polling } from './polling.ts'
import { QmfRequests, REQUEST_TIMEOUT_MS } from './requests.ts'
import type { VersionChoice } from './version-choice.ts'
import { type AgentSign, BytesWire, type QmfWire } from './wire.ts'

/** The part of an AmqpClient that a console uses. */
export type AmqpLink = Pick<
  AmqpClient,
  'start' | 'push' | 'tick' | 'declareQueue' | 'bind' | 'unbind' | 'subscribe' | 'transfer' | 'close'
>

export interface ConsoleOptions {
  /** The name of the AMQP session, unique at the broker; the queues are named after it. */
  readonly session: string
  /** The version to speak, kept over connections. */
  readonly choice: VersionChoice
  /** The interval of requests for wanted classes if the broker does not broadcast. */
  readonly intervalMs: number
  /** The schemas of this broker only. */
  readonly cache: SchemaCache
  /** The names of classes that this broker refuses to send, kept over connections. */
  readonly refusedClasses: Set<string>
  readonly limits?: ConsoleLimits
  readonly counters: QmfCounters
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly events: ConsoleEvents
  readonly connect: (events: AmqpEvents) => AmqpLink
}

/** The limit for the time from connecting to an open session. */
const OPEN_TIMEOUT_MS = 10_000
/** The interval of rounds, which look for new classes and for objects that nobody wants. */
const ROUND_INTERVAL_MS = 60_000
/** The interval after a call, which may have made objects. */
const ROUND_AFTER_CALL_MS = 10_000
/** After two ticks that are further apart than this, answers may wait to be read: no request is given up. */
const LATE_TICK_MS = 3_000
/** The number of refused classes that are shown. */
const SHOWN_CLASSES = 10

export class Console {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #events: ConsoleEvents
  readonly #counters: QmfCounters
  readonly #link: AmqpLink
  readonly #bindings: ConsoleBindings
  readonly #choice: VersionChoice
  readonly #wire: QmfWire
  readonly #requests: QmfRequests
  readonly #discovery: Discovery
  readonly #objects: KnownObjects
  readonly #polling: Polling
  readonly #refusedClasses: ReadonlySet<string>
  /** The classes that have objects, as `classText` gives them. */
  readonly #classes = new Set<string>()
  /** What was pushed and is not handled yet: messages of AMQP, and perhaps the end of the connection. */
  readonly #arrived: Steps<void>[] = []
  #state: 'opening' | 'open' | 'discovered' | 'ready' | 'closed' = 'opening'
  /** The monotonic time when the session has to be open. */
  readonly #openByMs: number
  /** When the last round began and the next one is due; there is none before the console is ready. */
  #roundBegunMs = Number.POSITIVE_INFINITY
  #roundDueMs = Number.POSITIVE_INFINITY
  #tickedMs = Number.POSITIVE_INFINITY

  constructor(options: ConsoleOptions) {
    const { session, intervalMs, cache, refusedClasses, limits = consoleLimits } = options
    const { choice, counters, clock, events, connect } = options
    this.#choice = choice
    this.#refusedClasses = refusedClasses
    this.#clock = clock
    this.#events = events
    this.#counters = counters
    this.#bindings = new ConsoleBindings(session)
    this.#openByMs = clock.monotonicMs() + OPEN_TIMEOUT_MS
    const schema = (key: ClassKey) => this.#discovery.schema(key)
    const lookup: SchemaLookup = { schema, method: (sequence) => this.#requests.calledMethod(sequence, schema) }
    const { replies, topics } = this.#bindings
    const nowNs = (): bigint => BigInt(clock.microseconds()) * 1_000n
    const wire = choice.version === 2 ? new MapWire({ lookup, replies, nowNs }) : new BytesWire(lookup, replies)
    this.#wire = wire
    const requests = new QmfRequests({
      wire,
      send: ({ transfer, body }) => this.#link.transfer(transfer, body),
      counters,
      maxCalls: limits.calls,
    })
    this.#requests = requests
    this.#discovery = new Discovery({
      requests,
      cache,
      limits,
      counters,
      learned: (schema) => events.learned(schema),
      offered: (agent, schema) => this.#offered(agent, schema),
    })
    this.#objects = new KnownObjects({
      own: { session, queues: [replies, topics] },
      limits,
      counters,
      sampled: (sample, schema) => {
        this.#events.object(sample)
        this.#polling.inspect(sample, schema)
      },
      gone: (id) => {
        this.#events.gone(id)
        this.#polling.objectGone(id)
      },
      unknown: (agent, className) => this.#polling.requestUnknown(agent, className),
    })
    this.#polling = new Polling({
      requests,
      objects: this.#objects,
      intervalMs,
      limits,
      counters,
      classes: this.#classes,
      refused: refusedClasses,
      nowMs: () => clock.monotonicMs(),
      broker: wire.broker,
    })
    this.#link = connect({
      opened: ({ serverProperties }) => this.#opened(serverProperties),
      delivered: (delivery) => this.#arrived.push(this.#delivered(delivery)),
      closed: (reason, refusal) => {
        if (this.#arrived.length === 0) this.#closed(reason, refusal)
        else this.#arrived.push(this.#lastly(() => this.#closed(reason, refusal)))
      },
    })
    this.#link.start()
  }

  push(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#link.push(bytes)
  }

  /** Handles the next QMF message of what was pushed. Returns whether there are more. */
  work(): boolean {
    const [next] = this.#arrived
    if (next?.next().done === true) this.#arrived.shift()
    return this.#arrived.length > 0
  }

  /** Call it every second. */
  tick(nowMs: number): void {
    if (!this.#isClosed) this.#link.tick(nowMs)
    if (this.#isClosed) return
    if (this.#state !== 'opening') this.#poll(nowMs)
    else if (nowMs >= this.#openByMs) this.#down(`no session within ${OPEN_TIMEOUT_MS / 1000} seconds`)
  }

  /** Closes the AMQP connection in order. */
  end(): void {
    if (this.#isClosed) return
    this.#link.close()
    this.#down('ended')
  }

  /** Says whether values of a class, or events, are wanted. */
  want(schema: Schema, isWanted: boolean): void {
    if (this.#isClosed || !this.#bindings.want(this.#wire.bindingsOf(schema), isWanted)) return
    if (schema.kind !== 'table') return
    this.#polling.want(classText(schema.key), isWanted)
    this.#flush()
  }

  /** Requests classes that nobody wants, at most once a second. Undefined if there is nothing to wait for. */
  refresh(keys: readonly ClassKey[]): Promise<unknown> | undefined {
    if (this.#isClosed) return undefined
    const answers = [...new Set(keys.map(classText))].flatMap((name) => this.#polling.refresh(name))
    this.#flush()
    return answers.length === 0 ? undefined : Promise.all(answers)
  }

  /** What is missing, for people. */
  remarks(): string[] {
    const names = [...this.#refusedClasses].sort()
    const shown = names.slice(0, SHOWN_CLASSES).join(', ')
    const more = names.length > SHOWN_CLASSES ? ` and ${names.length - SHOWN_CLASSES} more` : ''
    return [
      ...(names.length === 0 ? [] : [`its access control refuses queries of ${shown}${more}`]),
      ...(this.#polling.mayBroadcast(this.#clock.monotonicMs())
        ? []
        : [`it does not broadcast by QMF v${this.#wire.version}: there are no events, and changes are polled`]),
    ]
  }

  /**
   * Never rejects. `args` are the arguments with direction I and IO, in the order of the schema; the console itself
   * answers INVALID_PARAMETER if they do not fit. After `timeoutMs` it gives up, though the broker may do it all the
   * same.
   */
  async call(
    id: ObjectId,
    key: ClassKey,
    method: SchemaMethod,
    args: readonly QmfValue[],
    timeoutMs = REQUEST_TIMEOUT_MS,
  ): Promise<CallResult> {
    if (this.#isClosed || this.#state === 'opening') return undefined
    const result = this.#requests.call({ id, key, method: method.name, arguments: args, timeoutMs })
    this.#flush()
    const reply = await result
    if (typeof reply === 'object') {
      this.#roundDueMs = Math.min(this.#roundDueMs, this.#roundBegunMs + ROUND_AFTER_CALL_MS)
    }
    return reply
  }

  /** Why a call cannot be sent, for people; undefined if it can. */
  problemOf(id: ObjectId, key: ClassKey, method: SchemaMethod, args: readonly QmfValue[]): string | undefined {
    return this.#requests.problemOf({ id, key, method: method.name, arguments: args })
  }

  get #isClosed(): boolean {
    return this.#state === 'closed'
  }

  #opened(serverProperties: FieldTable): void {
    if (this.#state !== 'opening') return
    this.#state = 'open'
    this.#wire.opened(serverProperties)
    this.#bindings.open(this.#link, this.#wire)
    this.#requests.ask({
      to: 'broker',
      message: (sequence) => ({ op: 'B', sequence }),
      ended: (outcome) => {
        if (outcome === 'timeout') this.#speakOther(this.#choice.isSilent(), 'it does not answer by QMF v2')
      },
    })
    this.#discovery.startRound(() => {
      this.#state = 'discovered'
      this.#polling.startRound(() => {
        this.#state = 'ready'
        this.#choice.worked()
        this.#roundBegins(this.#clock.monotonicMs())
        this.#events.ready()
      })
    })
    this.#flush()
  }

  #poll(nowMs: number): void {
    if (nowMs - this.#tickedMs <= LATE_TICK_MS) {
      this.#requests.tick(nowMs)
      for (const agent of this.#polling.removeSilent(nowMs)) this.#discovery.removeAgent(agent)
    }
    this.#tickedMs = nowMs
    if (this.#isClosed || this.#speakOther(this.#choice.tick(nowMs), 'it broadcasts by QMF v1 only')) return
    this.#polling.tick(nowMs)
    if (nowMs >= this.#roundDueMs) {
      this.#roundBegins(nowMs)
      this.#discovery.startRound(() => this.#polling.startRound(() => {}))
    }
    this.#flush()
  }

  #roundBegins(nowMs: number): void {
    this.#roundBegunMs = nowMs
    this.#roundDueMs = nowMs + ROUND_INTERVAL_MS
  }

  *#lastly(end: () => void): Steps<void> {
    yield
    end()
  }

  *#delivered(delivery: AmqpDelivery): Steps<void> {
    this.#counters.transfers++
    const received = this.#wire.receive(delivery)
    if (received === undefined) {
      this.#counters.qmf2++
      return
    }
    const nowMs = this.#clock.monotonicMs()
    const { from, sign } = received
    if (sign?.isHeartbeat) this.#choice.heard(sign.agent, nowMs)
    if (sign?.run !== undefined && this.#polling.heard(sign.agent, sign.run, nowMs)) {
      this.#discovery.addAgent(sign.agent)
    }
    const messages = deletionsLast(received.messages)
    let next = messages.next()
    for (; next.done !== true; next = messages.next()) {
      this.#counters.messages++
      this.#receive(next.value, sign, nowMs)
      yield
      if (this.#isClosed) return
    }
    const stopped = next.value
    if (stopped !== undefined) {
      countStop(this.#counters, stopped)
      if (stopped.reason === 'unknown-class' && stopped.key !== undefined) {
        this.#discovery.addClass(stopped.key, from, stopped.op === 'e' ? 'event' : 'table')
      }
      if (stopped.op !== undefined) this.#requests.answerUnreadable(stopped.sequence ?? 0, stopped.op)
    }
    this.#flush()
  }

  #receive(message: QmfMessage, sign: AgentSign | undefined, nowMs: number): void {
    switch (message.op) {
      case 'g':
        if (this.#requests.answer(message, nowMs)) {
          this.#polling.compare(message.header, this.#objects.sampledOf(message.header.id))
          this.#sample(message)
        }
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
      case 'h':
        if (sign === undefined) break
        this.#polling.heartbeat(sign.agent, message.time, nowMs)
        if (sign.agent === this.#wire.broker) this.#events.heartbeat(message.time)
        break
      default:
        if (message.op === 'p' && message.sequence === 0) this.#discovery.packageIndicated(message.packageName)
        else if (message.op === 'q' && message.sequence === 0) this.#discovery.classIndicated(message.key)
        else this.#requests.answer(message, nowMs)
    }
  }

  #sample(sample: ObjectSample): void {
    const schema = this.#discovery.schema(sample.header.key)
    if (schema?.kind === 'table') this.#objects.receive(sample, schema)
  }

  #offered(agent: string, { kind, key }: Schema): void {
    if (kind !== 'table') return
    const className = classText(key)
    if (agent !== 'broker') this.#polling.offered(agent, className)
    else {
      this.#classes.add(className)
      if (this.#state === 'discovered' || this.#state === 'ready') this.#polling.requestClass(className)
    }
  }

  #flush(): void {
    if (this.#state !== 'opening' && !this.#isClosed) this.#requests.flush(this.#clock.monotonicMs())
  }

  /** A class that the broker refuses costs the connection once: the next one leaves it out. */
  #closed(reason: string, refusal: AmqpRefusal | undefined): void {
    const className = refusal && !this.#isClosed ? this.#polling.refuse(refusal) : undefined
    if (className === undefined) {
      const isOther = refusal !== undefined && !this.#isClosed && this.#choice.refused(refusal)
      if (!this.#speakOther(isOther, reason)) this.#down(reason)
      return
    }
    this.#counters.refusedClasses++
    this.#down(`its access control refuses queries of ${className}, which are left out from now on`, true)
  }

  /** Ends the connection if the next one is to speak the other version. Returns whether it does. */
  #speakOther(isChosen: boolean, why: string): boolean {
    if (!isChosen) return false
    this.#link.close()
    const { version, isProgress } = this.#choice
    this.#down(`${why}; the next connection speaks QMF v${version}`, isProgress)
    return true
  }

  #down(reason: string, isProgress = false): void {
    if (this.#isClosed) return
    this.#choice.ended()
    this.#state = 'closed'
    this.#arrived.length = 0
    this.#requests.close()
    this.#events.down(reason, isProgress)
  }
}

/**
 * Puts the last statistics of a deleted object before its last properties, which end it: brokers send them in the other
 * order. All other messages keep their places.
 */
export function* deletionsLast(messages: DecodeSteps): DecodeSteps {
  /** Properties of a deleted object. */
  let end: Extract<QmfMessage, { op: 'c' }> | undefined
  for (;;) {
    const { done, value } = messages.next()
    if (end !== undefined && done !== true && value.op === 'i' && value.header.id === end.header.id) {
      yield value
      continue
    }
    if (end !== undefined) yield end
    end = undefined
    if (done === true) return value
    if (value.op === 'c' && value.header.deleted !== 0n) end = value
    else yield value
  }
}
