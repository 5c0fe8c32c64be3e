/** The JSON form of each kind of field [MON 13]. A missing channel is the current one, missing bytes are none. */
import { fromBase64 } from '../bytes/base64.ts'
import { ProtocolError } from '../errors.ts'
import { MAX_NAME_BYTES, MAX_URL_BYTES } from './constants.ts'
import { argumentList, channel, flag, method, name, opaque, transactionId, uint32, url } from './fields.ts'
import { argumentsFromJson } from './json-value.ts'
import { nameProblem } from './value.ts'

type FromJson = (json: unknown, key: string) => unknown

const readers = new Map<unknown, FromJson>([
  [uint32, uint32FromJson],
  [channel, (json, key) => (json === undefined ? 0 : uint32FromJson(json, key))],
  [transactionId, transactionFromJson],
  [flag, flagFromJson],
  [name, (json, key) => nameFromJson(json, key, MAX_NAME_BYTES, false)],
  [method, (json, key) => nameFromJson(json, key, MAX_NAME_BYTES, true)],
  [url, (json, key) => nameFromJson(json, key, MAX_URL_BYTES, true)],
  [opaque, bytesFromJson],
  [argumentList, argumentsFromJson],
])

/** `kind` is one of fields.ts. Throws ProtocolError BAD_JSON, BAD_NAME. */
export function fieldFromJson(kind: unknown, json: unknown, key: string): unknown {
  return readers.get(kind)!(json, key)
}

export function badJson(key: string, expected: string): ProtocolError {
  return new ProtocolError('BAD_JSON', `"${key}" has to be ${expected}`)
}

function uint32FromJson(json: unknown, key: string): number {
  if (typeof json === 'number' && Number.isInteger(json) && json >= 0 && json <= 0xffffffff) return json
  throw badJson(key, 'a whole number from 0 to 4294967295')
}

function transactionFromJson(json: unknown, key: string): number {
  const value = typeof json === 'string' && /^\d{1,20}$/.test(json) ? Number(json) : json
  // 2^64-1 is the largest that fits, and the nearest number to it is 2^64.
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 64) return value
  throw badJson(key, 'a transaction id (a whole number, or its digits in a string)')
}

function flagFromJson(json: unknown, key: string): boolean {
  if (typeof json === 'boolean') return json
  throw badJson(key, 'true or false')
}

function nameFromJson(json: unknown, key: string, maxBytes: number, empty: boolean): string {
  if (typeof json !== 'string') throw badJson(key, 'a string')
  if (json === '' && empty) return json
  const problem = nameProblem(json, maxBytes)
  if (problem !== undefined) throw new ProtocolError('BAD_NAME', `"${key}" is ${problem}`)
  return json
}

function bytesFromJson(json: unknown, key: string): Uint8Array {
  if (json === undefined) return new Uint8Array(0)
  const bytes = typeof json === 'string' ? fromBase64(json) : undefined
  if (bytes) return bytes
  throw badJson(key, 'base64')
}
