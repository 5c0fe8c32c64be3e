/**
 * The header segment of a transfer: structs in any order, each `uint32 size | uint16 code | packing flags | fields`. Those
 * of other codes are skipped. qpidd sends the message's before the delivery's, other than it takes them.
 */
import { Cursor } from './cursor.ts'
import type { FieldTable } from './field-table.ts'
import {
  type Address,
  address,
  bit,
  type Fields,
  map,
  readFields,
  str8,
  str16,
  uint8,
  uint64,
  uuid,
  writeFields,
} from './fields.ts'
import { Writer } from './writer.ts'

const DELIVERY_PROPERTIES = 0x0401
const MESSAGE_PROPERTIES = 0x0403

const deliveryLayout = {
  discardUnroutable: bit,
  immediate: bit,
  redelivered: bit,
  priority: uint8,
  deliveryMode: uint8,
  ttl: uint64,
  timestamp: uint64,
  expiration: uint64,
  exchange: str8,
  routingKey: str8,
  resumeId: str16,
  resumeTtl: uint64,
}
const messageLayout = {
  contentLength: uint64,
  messageId: uuid,
  correlationId: str16,
  replyTo: address,
  contentType: str8,
  contentEncoding: str8,
  userId: str16,
  appId: str16,
  headers: map,
}

export type DeliveryProperties = Fields<typeof deliveryLayout>
export type MessageProperties = Fields<typeof messageLayout>
export interface ContentHeader {
  readonly delivery: DeliveryProperties
  readonly message: MessageProperties
}

/** A message that came. */
export interface Delivery {
  /** What the subscription is called. */
  readonly destination: string
  readonly exchange: string
  readonly routingKey: string
  readonly replyTo?: Address
  readonly contentType?: string
  readonly appId?: string
  readonly headers: FieldTable
  /** The taker's to keep. */
  readonly body: Uint8Array
}

/** A message that is to be sent. */
export interface Outgoing {
  readonly exchange: string
  readonly routingKey: string
  readonly replyTo?: Address
  readonly contentType?: string
}

const NO_BYTES: Uint8Array = new Uint8Array(0)

/** Throws ProtocolError. */
export function decodeDelivery(destination = '', header = NO_BYTES, body = NO_BYTES): Delivery {
  const { delivery, message } = decodeHeader(header)
  const { replyTo, contentType, appId, headers = new Map() } = message
  return {
    destination,
    exchange: delivery.exchange ?? '',
    routingKey: delivery.routingKey ?? '',
    ...(replyTo && { replyTo }),
    ...(contentType !== undefined && { contentType }),
    ...(appId !== undefined && { appId }),
    headers,
    body,
  }
}

/** Throws ProtocolError. */
export function decodeHeader(bytes: Uint8Array): ContentHeader {
  const cursor = new Cursor(bytes)
  let delivery: DeliveryProperties = {}
  let message: MessageProperties = {}
  while (cursor.remaining > 0) {
    const struct = new Cursor(cursor.view(cursor.uint32()))
    const code = struct.uint16()
    if (code === DELIVERY_PROPERTIES) delivery = readFields(struct, deliveryLayout)
    else if (code === MESSAGE_PROPERTIES) message = readFields(struct, messageLayout)
  }
  return { delivery, message }
}

/** Throws ProtocolError (TOO_LONG) where a text does not fit into its field. */
export function encodeHeader({ delivery, message }: ContentHeader): Uint8Array {
  const writer = new Writer(128)
  writer.sized32(() => writeFields(writer.uint16(DELIVERY_PROPERTIES), deliveryLayout, delivery))
  writer.sized32(() => writeFields(writer.uint16(MESSAGE_PROPERTIES), messageLayout, message))
  return writer.bytes()
}
