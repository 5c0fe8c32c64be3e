/**
 * The producer as a QMF agent of one broker over a given AMQP connection. It attaches (A, a), reports its package and
 * classes (p, q), gives their schemas to the broker (S, s), and then answers requests (G, M) and broadcasts changes (c,
 * i, h). After it has reported `down` it is of no use.
 *
 * A newcomer's mistakes: the broker's own messages (S, a, x) have no reply-to, so its schemas go to `broker`, where
 * everything for it goes. And everything for it needs a reply-to, or it is silently dropped.
 */
import type { AmqpClient, AmqpEvents, AmqpTransfer } from '../../../../protocol/amqp/client.ts'
import type { AmqpDelivery } from '../../../../protocol/amqp/session.ts'
import { ProtocolError } from '../../../../protocol/errors.ts'
import {
  BodyPacker,
  decodeBody,
  encodeMessage,
  MANAGEMENT_EXCHANGE,
  MAX_BODY_BYTES,
  REPLY_EXCHANGE,
} from '../../../../protocol/qmf/messages.ts'
import {
  type Banks,
  type DecodeStop,
  type ObjectHeader,
  type QmfMessage,
  QmfStatus,
  type SchemaLookup,
} from '../../../../protocol/qmf/types.ts'
import type { Clock } from '../../../kit/running.ts'
import { type AgentObject, type Inventory, isBanks } from './inventory.ts'
import { AGENT_PACKAGE, agentSchemas, isSchemaOf, producerSchema } from './schema.ts'
import { type AgentTransfer, type SendJob, SendQueue } from './send-queue.ts'

/** The part of an AmqpClient that an agent uses. */
export type AgentLink = Pick<
  AmqpClient,
  'start' | 'push' | 'tick' | 'declareQueue' | 'bind' | 'subscribe' | 'transfer' | 'sync' | 'close'
>

export interface AgentEvents {
  /** The broker has accepted the agent and given it these banks. */
  attached(banks: Banks): void
  /** Called once, last, with a reason for people. */
  down(reason: string): void
}

export interface QmfAgentOptions {
  /** The name of the AMQP session, unique at the broker; the queue is named after it. */
  readonly session: string
  /** Its name at the broker. */
  readonly label: string
  /** A uuid that never changes. */
  readonly systemId: string
  /** The last banks, if any: they stay the same unless another agent has them. */
  readonly banks?: Banks | undefined
  readonly inventory: Inventory
  readonly counters: QmfAgentCounters
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly events: AgentEvents
  readonly connect: (events: AmqpEvents) => AgentLink
}

/** The counters of an agent, for `producer.sensors`. */
export type QmfAgentCounters = ReturnType<typeof newAgentCounters>

export function newAgentCounters() {
  return {
    /** Connections made so far. */
    connections: 0,
    /** Answered requests: G, M and S. */
    requests: 0,
    /** Messages of QMF v2, which is another protocol. */
    qmf2: 0,
    /** Messages that could not be read; refused if they expect an answer. */
    malformed: 0,
    /** Requests without an address for the answer, and messages that no agent gets. */
    unexpected: 0,
    /** Requests beyond the limit of those that wait for their answer. */
    requestsFull: 0,
  }
}

/** The interval of broadcasts, the same as qpidd's. */
const INTERVAL_MS = 10_000
const ATTACH_TIMEOUT_MS = 10_000
const ATTACH_SEQUENCE = 1
/** A label is a str8. */
const MAX_LABEL_CHARACTERS = 60
/** The number of objects that are handled in one piece of work. */
const PIECE_OBJECTS = 500
/** If the queue is not read fast enough it is to lose its oldest messages, so that nobody else's are refused. */
const RING = new Map([['qpid.policy_type', 'ring']])

/** Our classes, and their one method. */
export const agentLookup: SchemaLookup = {
  schema: (key) => agentSchemas.find((schema) => isSchemaOf(schema, key)),
  method: () => producerSchema.methods[0],
}

export class QmfAgent {
  readonly #options: QmfAgentOptions
  readonly #queueName: string
  readonly #link: AgentLink
  readonly #queued: SendQueue
  #state: 'opening' | 'attaching' | 'attached' | 'closed' = 'opening'
  #banks: Banks = { brokerBank: 0, agentBank: 0 }
  /** The monotonic time when it has to be attached, afterwards that of the next broadcast. */
  #dueMs: number
  /** Whether the next broadcast has to contain everything because there may be a new console. */
  #isComplete = true
  #isBroadcasting = false

  constructor(options: QmfAgentOptions) {
    this.#options = options
    this.#queueName = `qmfagent-${options.session}`
    const { clock } = options
    this.#dueMs = clock.monotonicMs() + ATTACH_TIMEOUT_MS
    this.#link = options.connect({
      opened: () => this.#opened(),
      delivered: (delivery) => this.#delivered(delivery),
      closed: (reason) => this.#down(reason),
    })
    this.#queued = new SendQueue(
      this.#link,
      () => clock.monotonicMs(),
      () => options.counters.malformed++,
    )
    this.#link.start()
  }

  push(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#link.push(bytes)
  }

  /** Call it every second. */
  tick(nowMs: number): void {
    if (!this.#isClosed) this.#link.tick(nowMs)
    if (this.#isClosed) return
    if (this.#state !== 'attached') {
      if (nowMs >= this.#dueMs) this.#down(`not attached within ${ATTACH_TIMEOUT_MS / 1000} seconds`)
    } else {
      this.#queued.tick(nowMs)
      if (nowMs >= this.#dueMs) this.#broadcast(nowMs)
    }
  }

  /** Closes the AMQP connection in order. */
  end(): void {
    if (this.#isClosed) return
    this.#link.close()
    this.#down('ended')
  }

  get #isClosed(): boolean {
    return this.#state === 'closed'
  }

  #opened(): void {
    if (this.#state !== 'opening') return
    this.#state = 'attaching'
    this.#link.declareQueue(this.#queueName, RING)
    this.#link.bind(this.#queueName, REPLY_EXCHANGE, this.#queueName)
    this.#link.subscribe(this.#queueName, 'qmfagent')
    const { label, systemId, banks = this.#banks } = this.#options
    this.#send(
      this.#toBroker({
        op: 'A',
        sequence: ATTACH_SEQUENCE,
        label: [...label].slice(0, MAX_LABEL_CHARACTERS).join(''),
        systemId,
        ...banks,
      }),
    )
  }

  #attached({ brokerBank, agentBank }: Banks): void {
    if (this.#state !== 'attaching') return
    if (!isBanks({ brokerBank, agentBank })) {
      this.#down(`the broker gave the agent impossible banks: ${brokerBank}.${agentBank}`)
      return
    }
    this.#state = 'attached'
    this.#banks = { brokerBank, agentBank }
    this.#dueMs = this.#options.clock.monotonicMs() + INTERVAL_MS
    this.#link.bind(this.#queueName, MANAGEMENT_EXCHANGE, `agent.${brokerBank}.${agentBank}`)
    this.#send(this.#toBroker({ op: 'p', sequence: 0, packageName: AGENT_PACKAGE }))
    for (const { kind, key } of agentSchemas) this.#send(this.#toBroker({ op: 'q', sequence: 0, kind, key }))
    this.#options.events.attached(this.#banks)
  }

  #broadcast(nowMs: number): void {
    this.#dueMs = nowMs + INTERVAL_MS
    if (this.#isBroadcasting) return
    this.#isBroadcasting = true
    this.#queued.addNext(this.#broadcasting())
  }

  *#broadcasting(): Generator<AgentTransfer | undefined> {
    const isComplete = this.#isComplete
    this.#isComplete = false
    let isDone = false
    try {
      yield* broadcast(this.#options.inventory, this.#banks, isComplete)
      isDone = true
    } finally {
      this.#isBroadcasting = false
      if (!isDone) this.#isComplete = true
    }
  }

  #delivered({ appId, replyTo, body }: AmqpDelivery): void {
    const { counters } = this.#options
    if (appId === 'qmf2') {
      counters.qmf2++
      return
    }
    const { messages, stopped } = decodeBody(body, agentLookup)
    for (const message of messages) {
      if (this.#isClosed) return
      this.#receive(message, replyTo?.routingKey)
    }
    if (stopped !== undefined && !this.#isClosed) this.#refuse(stopped, replyTo?.routingKey)
  }

  #receive(message: QmfMessage, to: string | undefined): void {
    const { counters } = this.#options
    if (message.op === 'a') this.#attached(message)
    else if (message.op === 'z' && this.#state === 'attaching')
      this.#down(`the broker refused the agent: ${message.text}`)
    else if (message.op === 'x') this.#isComplete = true
    else if (this.#state !== 'attached') counters.unexpected++
    else if (message.op === 'S') this.#answerSchema(message, to)
    else if (message.op === 'G' && to !== undefined) this.#answer(answer(this.#options, this.#banks, message, to))
    else if (message.op === 'M' && to !== undefined) this.#answer([reply(to, this.#called(message))].values())
    else counters.unexpected++
  }

  /** The broker's own request has everything but a reply-to. */
  #answerSchema({ sequence, key }: Extract<QmfMessage, { op: 'S' }>, to: string | undefined): void {
    const schema = agentLookup.schema(key)
    const message: QmfMessage = schema
      ? { op: 's', sequence, schema }
      : complete(sequence, QmfStatus.UNKNOWN_OBJECT, 'Class key not found')
    if (to !== undefined) this.#answer([reply(to, message)].values())
    else if (schema) this.#answer([this.#toBroker(message)].values(), true)
    else this.#options.counters.unexpected++
  }

  /** The users of a broker are not ours, so no method may change anything. */
  #called({ sequence, id, key, method, arguments: values }: Extract<QmfMessage, { op: 'M' }>): QmfMessage {
    const object = this.#options.inventory.find(id, this.#banks)
    if (object === undefined) return failed(sequence, QmfStatus.UNKNOWN_OBJECT, 'UnknownObject')
    if (object.schema.key.className !== key.className) return failed(sequence, QmfStatus.INVALID_PARAMETER)
    if (method !== 'echo') return failed(sequence, QmfStatus.UNKNOWN_METHOD, 'UnknownMethod')
    const done: QmfMessage = { op: 'm', sequence, status: QmfStatus.OK, text: 'OK', arguments: values }
    return isSendable(done) ? done : failed(sequence, QmfStatus.INVALID_PARAMETER)
  }

  /** Answers requests that could not be read with a failure. */
  #refuse({ reason, op, sequence = 0 }: DecodeStop, to: string | undefined): void {
    this.#options.counters.malformed++
    if (to === undefined || this.#state !== 'attached') return
    const status = reason === 'unknown-method' ? QmfStatus.UNKNOWN_METHOD : QmfStatus.INVALID_PARAMETER
    const text = reason === 'unknown-method' ? 'UnknownMethod' : 'InvalidParameter'
    if (op === 'M') this.#answer([reply(to, failed(sequence, status, text))].values())
    if (op === 'G' || op === 'S') this.#answer([reply(to, complete(sequence, status, text))].values())
  }

  #answer(job: SendJob, isForBroker = false): void {
    if (this.#queued.add(job, isForBroker)) this.#options.counters.requests++
    else this.#options.counters.requestsFull++
  }

  #toBroker(message: QmfMessage): AgentTransfer {
    const replyTo = { exchange: REPLY_EXCHANGE, routingKey: this.#queueName }
    return {
      to: { exchange: MANAGEMENT_EXCHANGE, routingKey: 'broker', replyTo },
      body: encodeMessage(message, agentLookup),
    }
  }

  #send({ to, body }: AgentTransfer): void {
    this.#link.transfer(to, body)
  }

  #down(reason: string): void {
    if (this.#isClosed) return
    this.#state = 'closed'
    this.#queued.close()
    this.#options.events.down(reason)
  }
}

function failed(sequence: number, status: QmfStatus, text = 'InvalidParameter'): QmfMessage {
  return { op: 'm', sequence, status, text, arguments: [] }
}

/** Text that was not UTF-8 may be longer than it came. */
function isSendable(message: QmfMessage): boolean {
  try {
    return encodeMessage(message, agentLookup).length <= MAX_BODY_BYTES
  } catch (error) {
    if (error instanceof ProtocolError) return false
    throw error
  }
}

/**
 * Answers G with the objects of a class, or the one with an id, and then z. There are none if another package or another
 * agent is named.
 */
function* answer(
  { inventory, systemId }: Pick<QmfAgentOptions, 'inventory' | 'systemId'>,
  banks: Banks,
  { sequence, query }: Extract<QmfMessage, { op: 'G' }>,
  routingKey: string,
): Generator<AgentTransfer | undefined> {
  const className = query.get('_class')
  const id = query.get('_objectid')
  const messageOf = (object: AgentObject): QmfMessage => {
    return { op: 'g', sequence, header: object.header(inventory.boot, banks), ...object.values }
  }
  const isOurs =
    (query.get('_package') ?? AGENT_PACKAGE) === AGENT_PACKAGE && (query.get('_agent') ?? systemId) === systemId
  if (isOurs && typeof className === 'string') {
    yield* transfers({ exchange: REPLY_EXCHANGE, routingKey }, inventory.of(className), (object) =>
      object.deleted === 0n ? [messageOf(object)] : [],
    )
  } else if (isOurs && typeof className !== 'string' && typeof id === 'string') {
    const object = inventory.find(id, banks)
    if (object !== undefined) yield reply(routingKey, messageOf(object))
  }
  const isAsked = typeof className === 'string' || typeof id === 'string'
  const refusal = complete(sequence, QmfStatus.INVALID_PARAMETER, 'neither _class nor _objectid is given')
  yield reply(routingKey, isAsked ? complete(sequence) : refusal)
}

/**
 * Broadcasts what has changed since the last time, or everything, and the end of what is gone; the heartbeat comes
 * last.
 */
function* broadcast(inventory: Inventory, banks: Banks, isComplete: boolean): Generator<AgentTransfer | undefined> {
  const address = `${banks.brokerBank}.${banks.agentBank}`
  for (const { key } of inventory.schemas) {
    const routingKey = `console.obj.${address}.${key.packageName}.${key.className}`
    yield* transfers({ exchange: MANAGEMENT_EXCHANGE, routingKey }, inventory.of(key.className), (object) => {
      const messages = changesOf(object, object.header(inventory.boot, banks), isComplete)
      object.broadcast = object.values
      if (object.deleted !== 0n) inventory.remove(object)
      return messages
    })
  }
  const heartbeat: QmfMessage = { op: 'h', sequence: 0, time: inventory.now }
  const to = { exchange: MANAGEMENT_EXCHANGE, routingKey: `console.heartbeat.${address}` }
  yield { to, body: encodeMessage(heartbeat, agentLookup) }
}

function changesOf(
  { values, broadcast, deleted }: AgentObject,
  header: ObjectHeader,
  isComplete: boolean,
): QmfMessage[] {
  const { properties, statistics } = values
  const messages: QmfMessage[] = []
  const isAlways = isComplete || deleted !== 0n
  if (isAlways || broadcast.properties !== properties) messages.push({ op: 'c', sequence: 0, header, properties })
  if (isAlways || broadcast.statistics !== statistics) messages.push({ op: 'i', sequence: 0, header, statistics })
  return messages
}

/** Packs the messages of objects into as few transfers as possible, piece by piece. */
function* transfers(
  to: AmqpTransfer,
  objects: Iterable<AgentObject>,
  messagesOf: (object: AgentObject) => QmfMessage[],
): Generator<AgentTransfer | undefined> {
  const packer = new BodyPacker()
  let handled = 0
  for (const object of objects) {
    if (++handled % PIECE_OBJECTS === 0) yield undefined
    for (const message of messagesOf(object)) {
      const body = packer.add(encodeMessage(message, agentLookup))
      if (body !== undefined) yield { to, body }
    }
  }
  const body = packer.rest()
  if (body !== undefined) yield { to, body }
}

function reply(routingKey: string, message: QmfMessage): AgentTransfer {
  return { to: { exchange: REPLY_EXCHANGE, routingKey }, body: encodeMessage(message, agentLookup) }
}

function complete(sequence: number, code = 0, text = 'OK'): QmfMessage {
  return { op: 'z', sequence, code, text }
}
