/** The JSON forms of fields [MON 13]. Each function throws ProtocolError BAD_JSON for what is not of its form. */
import { fromBase64 } from '../bytes/base64.ts'
import { ProtocolError } from '../errors.ts'
import { nameProblem } from './value.ts'

export function badJson(key: string, expected: string): ProtocolError {
  return new ProtocolError('BAD_JSON', `"${key}" has to be ${expected}`)
}

export function uint32FromJson(json: unknown, key: string): number {
  if (typeof json === 'number' && Number.isInteger(json) && json >= 0 && json <= 0xffffffff) return json
  throw badJson(key, 'a whole number from 0 to 4294967295')
}

/** A missing channel is the current one. */
export function channelFromJson(json: unknown, key: string): number {
  return json === undefined ? 0 : uint32FromJson(json, key)
}

export function transactionFromJson(json: unknown, key: string): number {
  const value = typeof json === 'string' && /^\d{1,20}$/.test(json) ? Number(json) : json
  // 2^64-1 is the largest that fits, and the nearest number to it is 2^64.
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 64) return value
  throw badJson(key, 'a transaction id (a whole number, or its digits in a string)')
}

export function flagFromJson(json: unknown, key: string): boolean {
  if (typeof json === 'boolean') return json
  throw badJson(key, 'true or false')
}

/** Throws ProtocolError BAD_NAME for a string that is no name. */
export function nameFromJson(json: unknown, key: string, maxBytes: number): string {
  if (typeof json !== 'string') throw badJson(key, 'a string')
  const problem = nameProblem(json, maxBytes)
  if (problem !== undefined) throw new ProtocolError('BAD_NAME', `"${key}" is ${problem}`)
  return json
}

/** Missing bytes are none. */
export function bytesFromJson(json: unknown, key: string): Uint8Array {
  if (json === undefined) return new Uint8Array(0)
  const bytes = typeof json === 'string' ? fromBase64(json) : undefined
  if (bytes) return bytes
  throw badJson(key, 'base64')
}
