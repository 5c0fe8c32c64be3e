/**
 * QMF v2 in the messages of v1, so that everything above speaks one language: `G` and `M` become queries and calls,
 * their answers `g`, `z` and `m`, indications `c`, `i`, `e` and `h`. A broker is asked for its packages, classes and
 * schemas by v1, which it answers through the exchanges of v2 too; the agents that are attached by v1 are spoken to as
 * ever. The id of an object is its name, with the agent and its epoch in front if it is not the broker's.
 */
import type { FieldTable } from '../../../protocol/amqp/field-table.ts'
import type { AmqpDelivery } from '../../../protocol/amqp/session.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { REPLY_EXCHANGE } from '../../../protocol/qmf/messages.ts'
import { outputsOf } from '../../../protocol/qmf/schema.ts'
import {
  type ClassKey,
  type DecodeSteps,
  type DecodeStop,
  type ObjectId,
  type QmfMessage,
  QmfStatus,
  type Schema,
  type SchemaLookup,
} from '../../../protocol/qmf/types.ts'
import {
  DIRECT_EXCHANGE,
  decodeMapMessage,
  encodeMapRequest,
  MAP_APP_ID,
  type MapEvent,
  type MapMessage,
  type MapObject,
  type MapRequest,
  type MapReturn,
  type ObjectAddress,
  TOPIC_EXCHANGE,
} from '../../../protocol/qmf/v2/messages.ts'
import { mapValues, sampleOf } from '../../../protocol/qmf/v2/values.ts'
import { agentObjectId } from './addresses.ts'
import {
  type AgentSign,
  BytesWire,
  type QmfWire,
  type QueueBinding,
  type WireDelivery,
  type WireRequest,
} from './wire.ts'

/** The address of the broker, which also calls itself so in most answers. */
const BROKER = 'broker'
/** The part of a broker's name that all brokers share. */
const BROKER_PRODUCT = 'apache.org:qpidd:'
/** An agent that is attached by v1. */
const ATTACHED_AGENT = /^agent\.\d+\.\d+$/
/** What the broker broadcasts by v1 comes by v2 too. */
const BROADCAST_TWICE = /^console\.[a-z]+\.1\.0(\.|$)/

export interface MapWireOptions {
  readonly lookup: SchemaLookup
  /** The queue for answers. */
  readonly replies: string
  /** Nanoseconds since 1970, for samples without a time. */
  readonly nowNs: () => bigint
}

export class MapWire implements QmfWire {
  readonly version = 2
  readonly broker = BROKER
  readonly replyExchanges = [DIRECT_EXCHANGE, REPLY_EXCHANGE]
  readonly alwaysBound: readonly QueueBinding[]
  readonly #lookup: SchemaLookup
  readonly #replies: string
  readonly #nowNs: () => bigint
  /** Speaks to the broker about schemas, and to the agents of v1. */
  readonly #bytes: BytesWire
  /** The name of the broker as an agent; undefined if it did not give it. */
  #brokerName: string | undefined

  constructor({ lookup, replies, nowNs }: MapWireOptions) {
    this.#lookup = lookup
    this.#replies = replies
    this.#nowNs = nowNs
    this.#bytes = new BytesWire(lookup, replies)
    this.alwaysBound = [{ exchange: TOPIC_EXCHANGE, key: 'agent.ind.heartbeat.#' }, ...this.#bytes.alwaysBound]
  }

  /** A broker writes an underscore for each dot of a name, other agents do not. */
  bindingsOf(schema: Schema): readonly QueueBinding[] {
    const { packageName, className } = schema.key
    const what = `agent.ind.${schema.kind === 'table' ? 'data' : 'event'}`
    const names = `${packageName.replaceAll('.', '_')}.${className.replaceAll('.', '_')}`
    const keys = [...new Set([names, `${packageName}.${className}`])].map((name) => `${what}.${name}.#`)
    return [...keys.map((key) => ({ exchange: TOPIC_EXCHANGE, key })), ...this.#bytes.bindingsOf(schema)]
  }

  opened(serverProperties: FieldTable): void {
    const tag = serverProperties.get('qpid.federation_tag')
    if (typeof tag === 'string') this.#brokerName = `${BROKER_PRODUCT}${tag}`
  }

  /** `B` asks all agents for a sign of life. */
  encode(message: QmfMessage, to: string): WireRequest {
    if (ATTACHED_AGENT.test(to)) return this.#bytes.encode(message, to)
    const { sequence } = message
    switch (message.op) {
      case 'B':
        return this.#request({ op: 'locate' }, sequence)
      case 'G': {
        const [packageName, className] = ['_package', '_class'].map((key) => String(message.query.get(key) ?? ''))
        return this.#request({ op: 'class', agent: to, packageName: packageName!, className: className! }, sequence)
      }
      case 'M': {
        const schema = this.#lookup.schema(message.key)
        const method = schema?.kind === 'table' ? schema.methods.find(({ name }) => name === message.method) : undefined
        if (method === undefined) throw new ProtocolError('BAD_NAME', `the method "${message.method}" is not known`)
        const id = addressOf(message.id)
        return this.#request({ op: 'call', agent: to, id, method, arguments: message.arguments }, sequence)
      }
      default:
        if (to === BROKER) return this.#ofBroker(message)
        if (message.op !== 'S') return this.#request({ op: 'classes', agent: to }, sequence)
        return this.#request({ op: 'schema', agent: to, kind: message.kind ?? 'table', key: message.key }, sequence)
    }
  }

  receive(delivery: AmqpDelivery): WireDelivery | undefined {
    if (delivery.appId !== MAP_APP_ID) {
      const received = this.#bytes.receive(delivery)
      if (received === undefined) return undefined
      const { messages, sign } = received
      return {
        messages: BROADCAST_TWICE.test(delivery.routingKey) ? none() : messages,
        from: BROKER,
        ...(sign && { sign }),
      }
    }
    try {
      const message = decodeMapMessage(delivery)
      if (message === undefined) return { messages: none(), from: BROKER }
      const sign = this.#signOf(message)
      const from = this.#agentOf(message.agent)
      return { messages: this.#read(message, from, delivery), from, ...(sign && { sign }) }
    } catch (error) {
      return { messages: none(stopOf(error, delivery)), from: BROKER }
    }
  }

  #request(request: MapRequest, sequence: number): WireRequest {
    const replyTo = { exchange: DIRECT_EXCHANGE, routingKey: this.#replies }
    const origin: MapReturn = { correlationId: String(sequence), replyTo }
    return { ...encodeMapRequest(request, origin), isJoinable: false }
  }

  /** `p`, `q` and `z` come through the exchange of v1, whatever the request says. */
  #ofBroker(message: QmfMessage): WireRequest {
    const request = this.#bytes.encode(message, BROKER)
    return { ...request, transfer: { ...request.transfer, exchange: DIRECT_EXCHANGE }, isJoinable: false }
  }

  #signOf(message: MapMessage): AgentSign | undefined {
    if (message.op !== 'located' && message.op !== 'heartbeat') return undefined
    const { name, epoch, interval } = message.status
    const agent = this.#agentOf(name)
    const sign = { agent, isHeartbeat: message.op === 'heartbeat' }
    return agent === BROKER ? sign : { ...sign, run: { epoch, intervalMs: interval * 1_000 } }
  }

  *#read(message: MapMessage, from: string, delivery: AmqpDelivery): DecodeSteps {
    try {
      return yield* this.#translated(message, from)
    } catch (error) {
      return stopOf(error, delivery)
    }
  }

  *#translated(message: MapMessage, from: string): DecodeSteps {
    const sequence = Number(message.correlationId ?? 0)
    const end: QmfMessage = { op: 'z', sequence, code: 0, text: 'OK' }
    switch (message.op) {
      case 'located':
        if (this.#agentOf(message.status.name) !== BROKER) return undefined
        return yield* only({ op: 'b', sequence, brokerId: message.status.name })
      case 'heartbeat':
        return yield* only({ op: 'h', sequence: 0, time: message.status.time })
      case 'data':
        return yield* this.#objects(message.objects, from, changesOf)
      case 'objects': {
        const unknown = yield* this.#objects(message.objects, from, (object) => answersOf(object, sequence))
        if (!message.isPartial) yield end
        return unknown
      }
      case 'classes':
        for (const one of message.classes) yield { op: 'q', sequence, ...one }
        if (!message.isPartial) yield end
        return undefined
      case 'schemas': {
        const [schema] = message.schemas
        return yield* only(schema === undefined ? end : { op: 's', sequence, schema })
      }
      case 'event':
        return yield* this.#happened(message.events)
      case 'result': {
        const method = this.#lookup.method(sequence)
        const values = mapValues(method === undefined ? [] : outputsOf(method), message.arguments)
        return yield* only({ op: 'm', sequence, status: QmfStatus.OK, text: 'OK', arguments: values })
      }
      case 'exception': {
        const { text } = message
        // 0 would be a success; some agents give no code at all.
        const code = Number(message.code ?? 0n) || QmfStatus.EXCEPTION
        const isCall = this.#lookup.method(sequence) !== undefined
        if (isCall) return yield* only({ op: 'm', sequence, status: code, text, arguments: [] })
        return yield* only({ op: 'z', sequence, code, text })
      }
    }
  }

  *#objects(
    objects: Iterable<MapObject>,
    agent: string,
    read: (sample: MapObjectSample) => readonly QmfMessage[],
  ): DecodeSteps {
    let unknown: ClassKey | undefined
    for (const object of objects) {
      const schema = this.#lookup.schema(object.key)
      if (schema === undefined) unknown ??= object.key
      if (schema?.kind !== 'table' || object.id === undefined) continue
      const { key, sampled = this.#nowNs(), created = 0n, deleted } = object
      const header = { key, sampled, created, deleted, id: idOf(object.id, agent) }
      yield* read({ header, ...sampleOf(schema, object.values) })
    }
    return unknown && unknownClass(unknown, 'c')
  }

  *#happened(events: Iterable<MapEvent>): DecodeSteps {
    let unknown: ClassKey | undefined
    for (const { key, time, severity, values } of events) {
      const schema = this.#lookup.schema(key)
      if (schema === undefined) unknown ??= key
      if (schema?.kind !== 'event') continue
      yield { op: 'e', sequence: 0, key, time, severity, arguments: mapValues(schema.arguments, values) }
    }
    return unknown && unknownClass(unknown, 'e')
  }

  #agentOf(name: string): string {
    const isBroker = this.#brokerName === undefined ? name.startsWith(BROKER_PRODUCT) : name === this.#brokerName
    return isBroker ? BROKER : name
  }
}

function* none(stopped?: DecodeStop): DecodeSteps {
  yield* []
  return stopped
}

function* only(message: QmfMessage): DecodeSteps {
  yield message
  return undefined
}

function unknownClass(key: ClassKey, op: string): DecodeStop {
  return { reason: 'unknown-class', detail: 'an unknown class', offset: 0, key, op }
}

function stopOf(error: unknown, { correlationId, headers }: AmqpDelivery): DecodeStop {
  if (!(error instanceof ProtocolError)) throw error
  const { message: detail, offset = 0 } = error
  // Whatever it answers: the end of an answer, or a part of it.
  const op = headers.has('partial') ? 'g' : 'z'
  return { reason: 'malformed', detail, offset, op, sequence: Number(correlationId ?? 0) }
}

type MapObjectSample = { readonly header: Extract<QmfMessage, { op: 'c' }>['header'] } & ReturnType<typeof sampleOf>

function changesOf({ header, properties, statistics }: MapObjectSample): readonly QmfMessage[] {
  return [
    ...(properties === undefined ? [] : [{ op: 'c', sequence: 0, header, properties } as const]),
    ...(statistics === undefined ? [] : [{ op: 'i', sequence: 0, header, statistics } as const]),
  ]
}

function answersOf({ header, properties, statistics = [] }: MapObjectSample, sequence: number): readonly QmfMessage[] {
  return properties === undefined ? [] : [{ op: 'g', sequence, header, properties, statistics }]
}

function idOf({ name, epoch }: ObjectAddress, agent: string): ObjectId {
  return agent === BROKER ? name : agentObjectId(agent, epoch, name)
}

function addressOf(id: ObjectId): ObjectAddress {
  const [agent = '', epoch = '', ...name] = id.split('\0')
  if (name.length === 0) return { name: id }
  return { name: name.join('\0'), agent, ...(epoch !== '' && { epoch: BigInt(epoch) }) }
}
