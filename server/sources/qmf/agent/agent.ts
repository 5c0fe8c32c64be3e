/**
 * The producer as a QMF agent of one broker, over an AMQP connection that somebody else made. It attaches (A, a), tells its
 * package and classes (p, q), gives their schemas to the broker (S, s) and then answers whoever asks (G, M) and tells all
 * what changed (c, i, h). It says `down` once and is no good afterwards.
 *
 * What a newcomer gets wrong: the broker asks and tells (S, a, x) without a reply-to; its schemas go where everything for
 * it goes, `broker`. And everything for it needs a reply-to, or it is dropped silently.
 */

import type { AmqpClient, AmqpEvents, Delivery } from '../../../../protocol/amqp/client.ts'
import { ProtocolError } from '../../../../protocol/errors.ts'
import { MAX_BODY_BYTES } from '../../../../protocol/qmf/bodies.ts'
import { decodeBody } from '../../../../protocol/qmf/decode.ts'
import { encodeMessage } from '../../../../protocol/qmf/encode.ts'
import { type QmfMessage, QmfStatus, type Stopped } from '../../../../protocol/qmf/types.ts'
import type { Clock } from '../../../core/clock.ts'
import { answer, broadcast, complete, EXCHANGE, known, reply } from './contents.ts'
import type { AgentCounters } from './counters.ts'
import { type Banks, type Inventory, isBanks } from './objects.ts'
import { PACKAGE, schemas } from './schema.ts'
import { type Job, Sending, type Sent } from './sending.ts'

/** What an agent needs of an AmqpClient. */
export type AgentLink = Pick<
  AmqpClient,
  'start' | 'push' | 'tick' | 'declareQueue' | 'bind' | 'subscribe' | 'transfer' | 'sync' | 'close'
>

export interface AgentEvents {
  /** The broker knows it now, by these banks. */
  attached(banks: Banks): void
  /** Everything is over. `reason` is for people. */
  down(reason: string): void
}

export interface AgentOptions {
  /** The name of the AMQP session, unique in the broker; the queue is named after it. */
  readonly session: string
  /** What the broker calls it. */
  readonly label: string
  /** A uuid that stays the same. */
  readonly systemId: string
  /** Those that it had last, if any: where nobody else has them they stay the same. */
  readonly banks?: Banks | undefined
  readonly inventory: Inventory
  readonly counters: AgentCounters
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly events: AgentEvents
  readonly connect: (events: AmqpEvents) => AgentLink
}

/** As qpidd's own. */
const INTERVAL_MS = 10_000
/** Until it is attached. */
const PATIENCE_MS = 10_000
const ATTACH = 1
/** A label is a str8. */
const MOST_LABEL = 60
/** What nobody reads fast enough is to lose its oldest; the others are not to be refused theirs. */
const RING = new Map([['qpid.policy_type', 'ring']])

export class Agent {
  readonly #options: AgentOptions
  readonly #queue: string
  readonly #link: AgentLink
  readonly #sending: Sending
  #state: 'opening' | 'attaching' | 'attached' | 'over' = 'opening'
  #banks: Banks = { brokerBank: 0, agentBank: 0 }
  /** When it has to be attached; then when all are told next. Monotonic. */
  #dueMs: number
  /** All are to be told everything: there may be somebody new. */
  #isAll = true
  #isTelling = false

  constructor(options: AgentOptions) {
    this.#options = options
    this.#queue = `qmfagent-${options.session}`
    const { clock } = options
    this.#dueMs = clock.monotonicMs() + PATIENCE_MS
    this.#link = options.connect({
      opened: () => this.#opened(),
      delivered: (delivery) => this.#delivered(delivery),
      closed: (reason) => this.#down(reason),
    })
    this.#sending = new Sending(
      this.#link,
      () => clock.monotonicMs(),
      () => options.counters.malformed++,
    )
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
    else if (this.#state !== 'attached') {
      if (nowMs >= this.#dueMs) this.#down(`not attached within ${PATIENCE_MS / 1000} seconds`)
    } else {
      this.#sending.tick(nowMs)
      if (nowMs >= this.#dueMs) this.#tell(nowMs)
    }
  }

  /** Says goodbye to the broker. */
  end(): void {
    if (this.#isOver) return
    this.#link.close()
    this.#down('ended')
  }

  get #isOver(): boolean {
    return this.#state === 'over'
  }

  #opened(): void {
    if (this.#state !== 'opening') return
    this.#state = 'attaching'
    this.#link.declareQueue(this.#queue, RING)
    this.#link.bind(this.#queue, 'amq.direct', this.#queue)
    this.#link.subscribe(this.#queue, 'qmfagent')
    const { label, systemId, banks = this.#banks } = this.#options
    this.#send(
      this.#toBroker({
        op: 'A',
        sequence: ATTACH,
        label: [...label].slice(0, MOST_LABEL).join(''),
        systemId,
        ...banks,
      }),
    )
  }

  #attached({ brokerBank, agentBank }: Banks): void {
    if (this.#state !== 'attaching') return
    if (!isBanks({ brokerBank, agentBank })) {
      this.#down(`the broker gave the agent banks that no agent has: ${brokerBank}.${agentBank}`)
      return
    }
    this.#state = 'attached'
    this.#banks = { brokerBank, agentBank }
    this.#dueMs = this.#options.clock.monotonicMs() + INTERVAL_MS
    this.#link.bind(this.#queue, EXCHANGE, `agent.${brokerBank}.${agentBank}`)
    this.#send(this.#toBroker({ op: 'p', sequence: 0, packageName: PACKAGE }))
    for (const { kind, key } of schemas) this.#send(this.#toBroker({ op: 'q', sequence: 0, kind, key }))
    this.#options.events.attached(this.#banks)
  }

  #tell(nowMs: number): void {
    this.#dueMs = nowMs + INTERVAL_MS
    if (this.#isTelling) return
    this.#isTelling = true
    this.#sending.urge(this.#telling())
  }

  *#telling(): Generator<Sent | undefined> {
    const isAll = this.#isAll
    this.#isAll = false
    let isDone = false
    try {
      yield* broadcast({ inventory: this.#options.inventory, banks: this.#banks }, isAll)
      isDone = true
    } finally {
      this.#isTelling = false
      if (!isDone) this.#isAll = true
    }
  }

  #delivered({ appId, replyTo, body }: Delivery): void {
    const { counters } = this.#options
    if (appId === 'qmf2') {
      counters.qmf2++
      return
    }
    const { messages, stopped } = decodeBody(body, known)
    for (const message of messages) {
      if (this.#isOver) return
      this.#take(message, replyTo?.routingKey)
    }
    if (stopped !== undefined && !this.#isOver) this.#refuse(stopped, replyTo?.routingKey)
  }

  #take(message: QmfMessage, to: string | undefined): void {
    const { counters, inventory } = this.#options
    if (message.op === 'a') this.#attached(message)
    else if (message.op === 'z' && this.#state === 'attaching')
      this.#down(`the broker refused the agent: ${message.text}`)
    else if (message.op === 'x') this.#isAll = true
    else if (this.#state !== 'attached') counters.unexpected++
    else if (message.op === 'S') this.#giveSchema(message, to)
    else if (message.op === 'G' && to !== undefined) {
      this.#answer(answer({ inventory, banks: this.#banks }, message, to))
    } else if (message.op === 'M' && to !== undefined) this.#answer([reply(to, this.#called(message))].values())
    else counters.unexpected++
  }

  /** Of the broker's own request everything is known but a reply-to. */
  #giveSchema({ sequence, key }: Extract<QmfMessage, { op: 'S' }>, to: string | undefined): void {
    const schema = known.schema(key)
    const message: QmfMessage = schema
      ? { op: 's', sequence, schema }
      : complete(sequence, QmfStatus.UNKNOWN_OBJECT, 'Class key not found')
    if (to !== undefined) this.#answer([reply(to, message)].values())
    else if (schema) this.#answer([this.#toBroker(message)].values(), true)
    else this.#options.counters.unexpected++
  }

  /** A broker's user is no user of ours: nothing can be called that changes anything. */
  #called({ sequence, id, key, method, arguments: given }: Extract<QmfMessage, { op: 'M' }>): QmfMessage {
    const object = this.#options.inventory.find(id, this.#banks)
    if (object === undefined) return failed(sequence, QmfStatus.UNKNOWN_OBJECT, 'UnknownObject')
    if (object.schema.key.className !== key.className) return failed(sequence, QmfStatus.INVALID_PARAMETER)
    if (method !== 'echo') return failed(sequence, QmfStatus.UNKNOWN_METHOD, 'UnknownMethod')
    const done: QmfMessage = { op: 'm', sequence, status: QmfStatus.OK, text: 'OK', arguments: given }
    return isSendable(done) ? done : failed(sequence, QmfStatus.INVALID_PARAMETER)
  }

  /** Who waits for an answer is told that there is none. */
  #refuse({ reason, op, sequence = 0 }: Stopped, to: string | undefined): void {
    this.#options.counters.malformed++
    if (to === undefined || this.#state !== 'attached') return
    const status = reason === 'unknown-method' ? QmfStatus.UNKNOWN_METHOD : QmfStatus.INVALID_PARAMETER
    const text = reason === 'unknown-method' ? 'UnknownMethod' : 'InvalidParameter'
    if (op === 'M') this.#answer([reply(to, failed(sequence, status, text))].values())
    if (op === 'G' || op === 'S') this.#answer([reply(to, complete(sequence, status, text))].values())
  }

  #answer(job: Job, isForBroker = false): void {
    if (this.#sending.offer(job, isForBroker)) this.#options.counters.requests++
    else this.#options.counters.requestsFull++
  }

  #toBroker(message: QmfMessage): Sent {
    const replyTo = { exchange: 'amq.direct', routingKey: this.#queue }
    return { to: { exchange: EXCHANGE, routingKey: 'broker', replyTo }, body: encodeMessage(message, known) }
  }

  #send({ to, body }: Sent): void {
    this.#link.transfer(to, body)
  }

  #down(reason: string): void {
    if (this.#isOver) return
    this.#state = 'over'
    this.#sending.end()
    this.#options.events.down(reason)
  }
}

function failed(sequence: number, status: QmfStatus, text = 'InvalidParameter'): QmfMessage {
  return { op: 'm', sequence, status, text, arguments: [] }
}

/** What is no UTF-8 may have got longer. */
function isSendable(message: QmfMessage): boolean {
  try {
    return encodeMessage(message, known).length <= MAX_BODY_BYTES
  } catch (error) {
    if (error instanceof ProtocolError) return false
    throw error
  }
}
