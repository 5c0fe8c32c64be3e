/** The recorded session of QMF v2: what the broker delivered, what the console asked, what that console made of it. */
import { AmqpClient } from '../../../../protocol/amqp/client.ts'
import { FrameAssembler } from '../../../../protocol/amqp/frames.ts'
import { decodeCommand, decodeHeader, type MessageHeader } from '../../../../protocol/amqp/methods.ts'
import type { AmqpDelivery } from '../../../../protocol/amqp/session.ts'
import { decodeBody } from '../../../../protocol/qmf/messages.ts'
import type { ClassKey, Schema } from '../../../../protocol/qmf/types.ts'
import {
  decodeMapMessage,
  type MapEvent,
  type MapMessage,
  type MapObject,
} from '../../../../protocol/qmf/v2/messages.ts'
import { join } from '../../../support/bytes.ts'
import { capturedChunks, capturedConclusions } from '../../../support/qmf/capture.ts'

const HEADER_BYTES = 8
const chunks = capturedChunks('v2-console')
const streamOf = (from: 'client' | 'broker') => join(...chunks.filter((c) => c.from === from).map((c) => c.bytes))
export const brokerStream = onChannelOne(streamOf('broker'))

/** The recorded console had its session on channel 0, where ours has the connection alone. Its frames begin at a border. */
function onChannelOne(stream: Uint8Array): Uint8Array {
  const moved = stream.slice()
  const view = new DataView(moved.buffer)
  for (let at = HEADER_BYTES; at < moved.length; at += view.getUint16(at + 2)) {
    const isOfConnection = moved[at + 1] === 0 && moved[at + 12] === 1
    if (!isOfConnection) view.setUint16(at + 6, 1)
  }
  return moved
}

export interface Heard {
  readonly deliveries: readonly AmqpDelivery[]
  readonly ends: readonly string[]
}

/** What a client hears of the recorded broker, whose bytes come in pieces that end at `cuts`. */
export function replay(cuts: Iterable<number>): Heard {
  const deliveries: AmqpDelivery[] = []
  const ends: string[] = []
  const client = new AmqpClient({
    virtualHost: '',
    session: 'v2',
    maxBodyBytes: 1 << 20,
    write: () => {},
    events: {
      opened: () => {},
      delivered: (delivery) => deliveries.push(delivery),
      closed: (reason) => ends.push(reason),
    },
  })
  client.start()
  let begin = 0
  for (const cut of [...cuts, brokerStream.length]) {
    const piece = brokerStream.slice(begin, cut)
    client.push(piece)
    piece.fill(0xee)
    begin = cut
  }
  return { deliveries, ends }
}

/** The ends of the frames of the broker, by their sizes. */
export function frameBorders(): readonly number[] {
  const view = new DataView(brokerStream.buffer, brokerStream.byteOffset)
  const borders = [HEADER_BYTES]
  for (let at = HEADER_BYTES; at < brokerStream.length; at = borders.at(-1)!) borders.push(at + view.getUint16(at + 2))
  return borders
}

export const whole = replay([])
export const { deliveries } = whole
export const ofV2 = deliveries.filter(({ appId }) => appId === 'qmf2')

/** A message with all its objects and events. */
export type WholeMessage =
  | Exclude<MapMessage, { op: 'data' | 'event' | 'objects' }>
  | (Extract<MapMessage, { op: 'data' | 'objects' }> & { readonly objects: readonly MapObject[] })
  | (Extract<MapMessage, { op: 'event' }> & { readonly events: readonly MapEvent[] })

export function decodeWhole(delivery: Parameters<typeof decodeMapMessage>[0]): WholeMessage | undefined {
  const message = decodeMapMessage(delivery)
  if (message?.op === 'event') return { ...message, events: [...message.events] }
  if (message?.op === 'data' || message?.op === 'objects') return { ...message, objects: [...message.objects] }
  return message
}

/** The conclusions of a kind, in the order of the wire. */
export function concluded(kind: string): readonly Record<string, unknown>[] {
  return conclusions.flatMap(({ kind: found, ...rest }) => (found === kind ? [rest] : []))
}
const conclusions = capturedConclusions('v2-console')

/** What v1 brought on the way: the schemas of the broker. */
const noneKnown = { schema: () => undefined, method: () => undefined }
export const ofV1 = deliveries
  .filter(({ appId }) => appId !== 'qmf2')
  .map(({ body }) => ({ body, ...decodeBody(body, noneKnown) }))
export const schemas: ReadonlyMap<string, Schema> = new Map(
  ofV1
    .flatMap(({ messages }) => messages)
    .flatMap((message) => (message.op === 's' ? [[titleOf(message.schema), message.schema] as const] : [])),
)

/** As the console prints a class: `package:class:_data(hash)`. */
export function titleOf({ kind, key }: { readonly kind: Schema['kind']; readonly key: ClassKey }): string {
  const hash = key.hash.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
  return `${key.packageName}:${key.className}:${kind === 'table' ? '_data' : '_event'}(${hash})`
}

export interface RecordedRequest {
  readonly exchange: string
  readonly header: MessageHeader
  readonly body: Uint8Array
}
export const requests: readonly RecordedRequest[] = requestsOf(streamOf('client'))

function requestsOf(stream: Uint8Array): RecordedRequest[] {
  const assembler = new FrameAssembler(1 << 20)
  assembler.push(stream.subarray(HEADER_BYTES))
  const found: RecordedRequest[] = []
  for (let next = assembler.next(); next; next = assembler.next()) {
    if (next.isControl || next.header === undefined) continue
    const { command } = decodeCommand(next.method)
    if (command.name !== 'message.transfer') continue
    const header = decodeHeader(next.header)
    found.push({ exchange: command.destination ?? '', header, body: next.body ?? new Uint8Array(0) })
  }
  return found
}

/** Numbers as bigints where they are whole, maps as objects, bytes as they are: JSON shows no widths. */
export function plain(value: unknown): unknown {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value)
  if (value instanceof Uint8Array) return value
  if (Array.isArray(value)) return value.map(plain)
  if (value instanceof Map) return plain(Object.fromEntries(value))
  if (typeof value !== 'object' || value === null) return value ?? null
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
}
