/**
 * Messages, producer to consumer [MON 3]. `write...` append one whole frame; `readMessage` reads one frame's payload.
 *
 *     RESPONSE  ffffffff seq status result [detail: if status is neither OK nor AUTH_NEEDED]
 *     CAPS      fffffffe major minor arglist
 *     AUTH      fffffffd opaque
 *     GAP       fffffffc tid:8 metric count:8 from:8 to:8 reason
 *     NOTICE    fffffffb code channel detail
 *     VALUE     metric   tid:8 time:8 type value
 *
 * Each is preceded by the four bytes of the frame's length, which the offsets below include.
 */
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import { ProtocolError } from '../errors.ts'
import { type Capabilities, readCapabilities } from './capabilities.ts'
import { MAX_ID, MessageId } from './constants.ts'
import { StatusCode } from './status.ts'
import { readTyped, readTypedInSteps, type Value, writeTyped } from './value.ts'

/** Offsets in a VALUE frame. Message id (where a VALUE has its metric id) and transaction id lie there in a GAP frame, too. */
export const FRAME_METRIC = 4
export const FRAME_TRANSACTION = 8
export const FRAME_TIME = 16
export const FRAME_TYPE = 24
/** The part of a VALUE frame before its basic type. */
export const HEADER_BYTES = 24
export const GAP_FRAME_BYTES = 48
/** Of a RESPONSE without detail, after its length. */
const RESPONSE_BYTES = 16

export interface Response {
  readonly kind: 'response'
  readonly seq: number
  readonly status: number
  readonly result: number
  readonly detail: string
}
/** Times are microseconds since 1970. 0 means: no transaction to commit, several metrics, an unknown count or time. */
export interface Gap {
  readonly kind: 'gap'
  readonly transaction: number
  readonly metric: number
  readonly count: number
  readonly from: number
  readonly to: number
  readonly reason: number
}
export interface Notice {
  readonly kind: 'notice'
  readonly code: number
  readonly channel: number
  readonly detail: string
}
export interface ValueMessage {
  readonly kind: 'value'
  readonly metric: number
  readonly transaction: number
  readonly time: number
  readonly value: Value
}
export type Message =
  | Response
  | Gap
  | Notice
  | ValueMessage
  | { readonly kind: 'auth'; readonly data: Uint8Array }
  | { readonly kind: 'caps'; readonly caps: Capabilities }

/** RESPONSE OK: one for each COMMIT, so its length is not worked out. */
export function writeOk(writer: XdrWriter, seq: number, result: number): void {
  writer.words(RESPONSE_BYTES, MessageId.RESPONSE, seq, StatusCode.OK, result)
}

/** RESPONSE OK to `count` commands whose seqs follow each other, with the same result. */
export function writeOks(writer: XdrWriter, seq: number, count: number, result = 0): void {
  for (let next = seq; next < seq + count; next++) writeOk(writer, next, result)
}

export function writeResponse(writer: XdrWriter, seq: number, status: number, result: number, detail = ''): void {
  const frame = writer.beginFrame()
  writer.uint32(MessageId.RESPONSE).uint32(seq).uint32(status).uint32(result)
  if (hasDetail(status)) writer.string(detail)
  writer.endFrame(frame)
}

export function writeAuth(writer: XdrWriter, data: Uint8Array): void {
  const frame = writer.beginFrame()
  writer.uint32(MessageId.AUTH).opaque(data).endFrame(frame)
}

export function writeGap(writer: XdrWriter, gap: Omit<Gap, 'kind'>): void {
  const frame = writer.beginFrame()
  writer.uint32(MessageId.GAP).uint53(gap.transaction).uint32(gap.metric).uint53(gap.count)
  writer.uint53(gap.from).uint53(gap.to).uint32(gap.reason).endFrame(frame)
}

export function writeNotice(writer: XdrWriter, code: number, channel: number, detail: string): void {
  const frame = writer.beginFrame()
  writer.uint32(MessageId.NOTICE).uint32(code).uint32(channel).string(detail).endFrame(frame)
}

export function writeValueMessage(writer: XdrWriter, message: Omit<ValueMessage, 'kind'>): void {
  const frame = writer.beginFrame()
  writer.uint32(message.metric).uint53(message.transaction).uint53(message.time)
  writeTyped(writer, message.value)
  writer.endFrame(frame)
}

/** A reader that has a way of its own to read values: `LabelledReader`. */
type ValueReader = XdrReader & { typed?(): Value }

export function readMessage(reader: ValueReader): Message {
  const at = reader.offset
  const id = reader.uint32()
  const message = readRest(reader, id, at)
  reader.finish()
  return message
}

/** As `readMessage`, with a `yield` between the items of a list. */
export function* readMessageInSteps(reader: XdrReader): Generator<void, Message, void> {
  const at = reader.offset
  const id = reader.uint32()
  if (id === 0 || id > MAX_ID) {
    const message = readRest(reader, id, at)
    reader.finish()
    return message
  }
  const transaction = reader.uint53()
  const time = reader.uint53()
  const value = yield* readTypedInSteps(reader)
  reader.finish()
  return { kind: 'value', metric: id, transaction, time, value }
}

function readRest(reader: ValueReader, id: number, at: number): Message {
  switch (id) {
    case MessageId.RESPONSE: {
      const seq = reader.uint32()
      const status = reader.uint32()
      const result = reader.uint32()
      return { kind: 'response', seq, status, result, detail: hasDetail(status) ? reader.string() : '' }
    }
    case MessageId.PRODUCER_CAPS:
      return { kind: 'caps', caps: readCapabilities(reader) }
    case MessageId.AUTH:
      return { kind: 'auth', data: reader.opaque() }
    case MessageId.GAP: {
      const transaction = reader.uint53()
      const metric = reader.uint32()
      const count = reader.uint53()
      const from = reader.uint53()
      const to = reader.uint53()
      return { kind: 'gap', transaction, metric, count, from, to, reason: reader.uint32() }
    }
    case MessageId.NOTICE: {
      const code = reader.uint32()
      const channel = reader.uint32()
      return { kind: 'notice', code, channel, detail: reader.string() }
    }
    default: {
      if (id === 0 || id > MAX_ID) throw new ProtocolError('UNKNOWN_MESSAGE', `no message has the number ${id}`, at)
      const transaction = reader.uint53()
      const time = reader.uint53()
      const value = reader.typed === undefined ? readTyped(reader) : reader.typed()
      return { kind: 'value', metric: id, transaction, time, value }
    }
  }
}

function hasDetail(status: number): boolean {
  return status !== StatusCode.OK && status !== StatusCode.AUTH_NEEDED
}
