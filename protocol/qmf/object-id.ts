/**
 * The 128 bits of an object id and their text, which is also what a query for `_objectid` takes:
 * flags (4) | boot sequence (12) | broker bank (20) | agent bank (28) | object number (64)   -   `0-0-1-0-2`
 */

import type { Cursor } from '../amqp/cursor.ts'
import type { Writer } from '../amqp/writer.ts'
import { ProtocolError } from '../errors.ts'
import type { ObjectId } from './types.ts'

export interface ObjectIdParts {
  readonly flags: number
  /** Which run of the broker made it; 0: it persists over restarts. */
  readonly boot: number
  /** With the agent bank: whose it is; `agent.<brokerBank>.<agentBank>` is where its methods are called. */
  readonly brokerBank: number
  readonly agentBank: number
  readonly object: bigint
}

export function formatObjectId(parts: ObjectIdParts): ObjectId {
  return `${parts.flags}-${parts.boot}-${parts.brokerBank}-${parts.agentBank}-${parts.object}`
}

/** Undefined where the text is no object id in its one form: no leading zeros, no part too large. */
export function parseObjectId(text: string): ObjectIdParts | undefined {
  if (text.length > 64) return undefined
  const match = /^(\d+)-(\d+)-(\d+)-(\d+)-(\d+)$/.exec(text)
  if (match === null) return undefined
  const [flags, boot, brokerBank, agentBank] = match.slice(1, 5).map(Number) as [number, number, number, number]
  const parts = { flags, boot, brokerBank, agentBank, object: BigInt(match[5]!) }
  const fits = flags < 1 << 4 && boot < 1 << 12 && brokerBank < 1 << 20 && agentBank < 1 << 28
  return fits && parts.object < 1n << 64n && formatObjectId(parts) === text ? parts : undefined
}

export function readObjectId(cursor: Cursor): ObjectId {
  const high = cursor.uint32()
  const low = cursor.uint32()
  return formatObjectId({
    flags: high >>> 28,
    boot: (high >>> 16) & 0xfff,
    brokerBank: ((high & 0xffff) << 4) | (low >>> 28),
    agentBank: low & 0xfffffff,
    object: cursor.uint64(),
  })
}

/** Throws ProtocolError (BAD_NAME) where the text is no object id. */
export function writeObjectId(writer: Writer, id: ObjectId): void {
  const parts = parseObjectId(id)
  if (!parts) throw new ProtocolError('BAD_NAME', `not an object id, which looks like 0-0-1-0-2: ${id}`)
  const { flags, boot, brokerBank, agentBank, object } = parts
  writer
    .uint32((flags << 28) | (boot << 16) | (brokerBank >>> 4))
    .uint32((brokerBank << 28) | agentBank)
    .uint64(object)
}
