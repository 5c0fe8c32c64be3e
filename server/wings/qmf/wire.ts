/**
 * What a console needs to know of the version of QMF that it speaks: where its queues are bound, how a request becomes a
 * transfer, and what a delivery says. Everything else speaks in the messages of v1.
 */
import type { AmqpTransfer } from '../../../protocol/amqp/client.ts'
import type { FieldTable } from '../../../protocol/amqp/field-table.ts'
import type { AmqpDelivery } from '../../../protocol/amqp/session.ts'
import { decodeSteps, encodeMessage, MANAGEMENT_EXCHANGE, REPLY_EXCHANGE } from '../../../protocol/qmf/messages.ts'
import type { DecodeSteps, QmfMessage, Schema, SchemaLookup } from '../../../protocol/qmf/types.ts'
import { MAP_APP_ID } from '../../../protocol/qmf/v2/messages.ts'
import { addressOfBanks, BROKER_PACKAGE } from './addresses.ts'

export type QmfVersion = 1 | 2

export interface QueueBinding {
  readonly exchange: string
  readonly key: string
}

export interface WireRequest {
  readonly transfer: AmqpTransfer
  readonly body: Uint8Array
  /** Whether requests to the same address may stand behind each other in one body. */
  readonly isJoinable: boolean
}

export interface WireDelivery {
  readonly messages: DecodeSteps
  /** The address of the sender. */
  readonly from: string
  /** In heartbeats, and in answers to a locate. */
  readonly sign?: AgentSign
}

/** A sign of life. */
export interface AgentSign {
  readonly agent: string
  readonly isHeartbeat: boolean
  /** Of an agent that speaks v2 only. */
  readonly run?: AgentRun
}

export interface AgentRun {
  /** Counts the runs of the agent. */
  readonly epoch: bigint
  /** The interval of its heartbeats. */
  readonly intervalMs: number
}

export interface QmfWire {
  readonly version: QmfVersion
  /** The address of the broker as an agent: see addresses.ts. */
  readonly broker: string
  /** The exchanges that answers come through; the key is the name of the queue. */
  readonly replyExchanges: readonly string[]
  /** Where what is broadcast is bound always. */
  readonly alwaysBound: readonly QueueBinding[]
  /** Where the objects or events of a class are broadcast. */
  bindingsOf(schema: Schema): readonly QueueBinding[]
  opened(serverProperties: FieldTable): void
  /** Throws ProtocolError. */
  encode(message: QmfMessage, to: string): WireRequest
  /** Returns undefined for a message of the other version. */
  receive(delivery: AmqpDelivery): WireDelivery | undefined
}

/** New classes, heartbeats, and new agents, whose objects nobody could want before. */
const ALWAYS_BOUND = ['schema.#', 'console.heartbeat.#', `console.obj.*.*.${BROKER_PACKAGE}.agent`]
const CONTENT_TYPE = 'x-application/qmf'
/** The broker's own banks. */
const BROKER_BANKS = '1.0'

/** QMF v1. */
export class BytesWire implements QmfWire {
  readonly version = 1
  readonly broker = addressOfBanks(BROKER_BANKS)
  readonly replyExchanges = [REPLY_EXCHANGE]
  readonly alwaysBound = ALWAYS_BOUND.map((key) => ({ exchange: MANAGEMENT_EXCHANGE, key }))
  readonly #lookup: SchemaLookup
  readonly #replies: string

  /** `replies`: the queue for answers. */
  constructor(lookup: SchemaLookup, replies: string) {
    this.#lookup = lookup
    this.#replies = replies
  }

  bindingsOf({ kind, key: { packageName, className } }: Schema): readonly QueueBinding[] {
    const key = `console.${kind === 'table' ? 'obj' : 'event'}.*.*.${packageName}.${className}`
    return [{ exchange: MANAGEMENT_EXCHANGE, key }]
  }

  opened(): void {}

  /** A broker reads many requests from one body, but takes everything after a call for its arguments; agents may not. */
  encode(message: QmfMessage, to: string): WireRequest {
    const replyTo = { exchange: REPLY_EXCHANGE, routingKey: this.#replies }
    const isJoinable = (to === 'broker' || to.endsWith('.0')) && message.op !== 'M'
    const transfer = { exchange: MANAGEMENT_EXCHANGE, routingKey: to, replyTo, contentType: CONTENT_TYPE }
    return { transfer, body: encodeMessage(message, this.#lookup), isJoinable }
  }

  /** The routing key of a heartbeat names its agent; without a name it is the broker's. */
  receive({ appId, routingKey, body }: AmqpDelivery): WireDelivery | undefined {
    if (appId === MAP_APP_ID) return undefined
    const received = { messages: decodeSteps(body, this.#lookup), from: this.broker }
    if (!routingKey.startsWith('console.heartbeat')) return received
    const banks = /^console\.heartbeat\.(\d+\.\d+)/.exec(routingKey)?.[1] ?? BROKER_BANKS
    return { ...received, sign: { agent: addressOfBanks(banks), isHeartbeat: true } }
  }
}
