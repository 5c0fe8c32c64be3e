/** The bodies of test/vectors/qmf with what they mean, and the schemas that it takes to read them. */
import { readFileSync } from 'node:fs'
import { decodeBody } from '../../../protocol/qmf/messages.ts'
import type { ClassKey, QmfMessage, Schema, SchemaLookup, SchemaMethod } from '../../../protocol/qmf/types.ts'
import { hex } from '../../support/bytes.ts'
import { capturedTransfers } from '../../support/qmf/capture.ts'

export interface Vector {
  readonly name: string
  readonly source: 'live' | 'derived'
  readonly bytes: Uint8Array
  readonly messages: readonly QmfMessage[]
  /** The name of the method that the reply answers. */
  readonly called?: string
  readonly decodedOnly?: boolean
}

const url = new URL('../../vectors/qmf/messages.json', import.meta.url)
export const vectors: readonly Vector[] = JSON.parse(readFileSync(url, 'utf8'), revive).map(
  ({ hex: digits, ...vector }: Vector & { hex: string }) => ({ ...vector, bytes: hex(digits) }),
)

/** `{"absent": true}` becomes undefined in its place, which a reviver that returns it would delete. */
function revive(key: string, value: unknown): unknown {
  if (key === 'properties' && Array.isArray(value)) return value.map((item) => (item?.absent ? undefined : item))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  if ('bigint' in value) return BigInt(String(value.bigint))
  if ('map' in value) return new Map(Object.entries(Object(value.map)))
  return value
}

export function vector(name: string): Vector {
  const found = vectors.find((candidate) => candidate.name === name)
  if (!found) throw new Error(`no vector "${name}"`)
  return found
}

export const noneKnown: SchemaLookup = { schema: () => undefined, method: () => undefined }

/** Knows these classes; every reply answers a call of `method`. */
export function knowing(schemas: readonly Schema[], method?: SchemaMethod): SchemaLookup {
  const byKey = new Map(schemas.map((schema) => [JSON.stringify(schema.key), schema]))
  return {
    schema: ({ packageName, className, hash }: ClassKey) => byKey.get(JSON.stringify({ packageName, className, hash })),
    method: () => method,
  }
}

/** Of the recording and of the vectors. */
export const schemas: readonly Schema[] = [
  ...capturedTransfers().map(({ body }) => body),
  ...vectors.map((v) => v.bytes),
]
  .flatMap((body) => decodeBody(body, noneKnown).messages)
  .flatMap((message) => (message.op === 's' ? [message.schema] : []))

export function knownFor({ called }: Pick<Vector, 'called'>): SchemaLookup {
  const methods = schemas.flatMap((schema) => (schema.kind === 'table' ? schema.methods : []))
  return knowing(
    schemas,
    methods.find(({ name }) => name === called),
  )
}
