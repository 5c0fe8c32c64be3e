/**
 * The kinds of fields that commands are declared with: how each is read and written as XDR, and its JSON form.
 * A field with `optional` may be absent at the end of a command, or missing in JSON.
 */
import { fromBase64, toBase64 } from '../bytes/base64.ts'
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import { ProtocolError } from '../errors.ts'
import { type ArgumentList, readArguments, writeArguments } from './arguments.ts'
import { MAX_NAME_BYTES, MAX_URL_BYTES } from './constants.ts'
import { argumentsFromJson, argumentsToJson } from './json-value.ts'
import { nameProblem, readName } from './value.ts'

export interface FieldKind<T> {
  read(reader: XdrReader): T
  write(writer: XdrWriter, value: T): void
  fromJson(json: unknown, key: string): T
  toJson(value: T): unknown
  /** What the field has when it is absent. */
  readonly optional?: T
  /** The word for it in documents. */
  readonly word: string
}

export const uint32: FieldKind<number> = {
  word: 'uint32',
  read: (reader) => reader.uint32(),
  write: (writer, value) => writer.uint32(value),
  fromJson: uint32FromJson,
  toJson: (value) => value,
}

/** A channel; in JSON a missing one is the current one. */
export const channel: FieldKind<number> = {
  ...uint32,
  fromJson: (json, key) => (json === undefined ? 0 : uint32FromJson(json, key)),
}

/** A transaction id: uint64 on the wire, a number here, since ids never reach 2^53. */
export const transactionId: FieldKind<number> = {
  word: 'uint64',
  read: (reader) => reader.uint53(),
  write: (writer, value) => writer.uint53(value),
  fromJson(json, key) {
    const value = typeof json === 'string' && /^\d{1,20}$/.test(json) ? Number(json) : json
    // 2^64-1 is the largest that fits, and the nearest number to it is 2^64.
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 64) return value
    throw badJson(key, 'a transaction id (a whole number, or its digits in a string)')
  },
  toJson: (value) => value,
}

/** COMMIT's `through`: 0 or 1, absent is 0. */
export const flag: FieldKind<boolean> & { readonly optional: boolean } = {
  word: 'uint32 (0 or 1)',
  optional: false,
  read: (reader) => reader.boolean(),
  write: (writer, value) => writer.boolean(value),
  fromJson(json, key) {
    if (typeof json === 'boolean') return json
    throw badJson(key, 'true or false')
  },
  toJson: (value) => value,
}

export const name: FieldKind<string> = {
  word: 'string',
  read: (reader) => readName(reader),
  write: (writer, value) => writer.string(value),
  fromJson: (json, key) => nameFromJson(json, key, MAX_NAME_BYTES, false),
  toJson: (value) => value,
}

/** AUTH's method: a name, or empty to go on with an exchange. */
export const method: FieldKind<string> = {
  ...name,
  read: (reader) => readMaybeEmpty(reader, MAX_NAME_BYTES),
  fromJson: (json, key) => nameFromJson(json, key, MAX_NAME_BYTES, true),
}

/** DEF_CHANNEL's url: up to 2,048 bytes, empty for a channel without a connection. */
export const url: FieldKind<string> = {
  ...name,
  read: (reader) => readMaybeEmpty(reader, MAX_URL_BYTES),
  fromJson: (json, key) => nameFromJson(json, key, MAX_URL_BYTES, true),
}

export const opaque: FieldKind<Uint8Array> = {
  word: 'opaque',
  read: (reader) => reader.opaque(),
  write: (writer, value) => writer.opaque(value),
  fromJson(json, key) {
    if (json === undefined) return new Uint8Array(0)
    const bytes = typeof json === 'string' ? fromBase64(json) : undefined
    if (bytes) return bytes
    throw badJson(key, 'base64')
  },
  toJson: toBase64,
}

export const argumentList: FieldKind<ArgumentList> = {
  word: 'arglist',
  read: readArguments,
  write: writeArguments,
  fromJson: argumentsFromJson,
  toJson: argumentsToJson,
}

function readMaybeEmpty(reader: XdrReader, maxBytes: number): string {
  const at = reader.offset
  if (reader.uint32() === 0) return ''
  reader.offset = at
  return readName(reader, maxBytes)
}

function uint32FromJson(json: unknown, key: string): number {
  if (typeof json === 'number' && Number.isInteger(json) && json >= 0 && json <= 0xffffffff) return json
  throw badJson(key, 'a whole number from 0 to 4294967295')
}

function nameFromJson(json: unknown, key: string, maxBytes: number, empty: boolean): string {
  if (typeof json !== 'string') throw badJson(key, 'a string')
  if (json === '' && empty) return json
  const problem = nameProblem(json, maxBytes)
  if (problem !== undefined) throw new ProtocolError('BAD_NAME', `"${key}" is ${problem}`)
  return json
}

export function badJson(key: string, expected: string): ProtocolError {
  return new ProtocolError('BAD_JSON', `"${key}" has to be ${expected}`)
}
