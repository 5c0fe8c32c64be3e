/**
 * The kinds of fields that commands are declared with. A kind knows its XDR form [MON 2] and its JSON form [MON 13].
 */
import { fromBase64 } from '../bytes/base64.ts'
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import { ProtocolError } from '../errors.ts'
import { type ArgumentList, readArguments, writeArguments } from './arguments.ts'
import { MAX_NAME_BYTES, MAX_URL_BYTES } from './constants.ts'
import { argumentsFromJson } from './json-value.ts'
import { nameProblem, readName } from './value.ts'

export interface FieldKind<T> {
  read(reader: XdrReader): T
  write(writer: XdrWriter, value: T): void
  /** `json` is undefined if the key is missing. Throws ProtocolError BAD_JSON, BAD_NAME. */
  fromJson(json: unknown, key: string): T
  /** The value of a field that is absent: at the end of a command in XDR, anywhere in JSON. */
  readonly optional?: T
  /** The name of the kind in documents. */
  readonly word: string
}

const uint32: FieldKind<number> = {
  word: 'uint32',
  read: (reader) => reader.uint32(),
  write: (writer, value) => writer.uint32(value),
  fromJson(json, key) {
    if (typeof json === 'number' && Number.isInteger(json) && json >= 0 && json <= 0xffffffff) return json
    throw badJson(key, 'a whole number from 0 to 4294967295')
  },
}

/** A channel. In JSON a missing one is the current one. */
const channel: FieldKind<number> = {
  ...uint32,
  fromJson: (json, key) => (json === undefined ? 0 : uint32.fromJson(json, key)),
}

/** A transaction id: uint64 on the wire, a number here, since ids never reach 2^53. */
const transactionId: FieldKind<number> = {
  word: 'uint64',
  read: (reader) => reader.uint53(),
  write: (writer, value) => writer.uint53(value),
  fromJson(json, key) {
    const value = typeof json === 'string' && /^\d{1,20}$/.test(json) ? Number(json) : json
    // 2^64-1 is the largest that fits, and the nearest number to it is 2^64.
    if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 64) return value
    throw badJson(key, 'a transaction id (a whole number, or its digits in a string)')
  },
}

/** The field `through` of COMMIT: 0 or 1; an absent one is 0. */
const flag: FieldKind<boolean> & { readonly optional: boolean } = {
  word: 'uint32 (0 or 1)',
  optional: false,
  read: (reader) => reader.boolean(),
  write: (writer, value) => writer.boolean(value),
  fromJson(json, key) {
    if (typeof json === 'boolean') return json
    throw badJson(key, 'true or false')
  },
}

const name: FieldKind<string> = {
  word: 'string',
  read: (reader) => readName(reader),
  write: (writer, value) => writer.string(value),
  fromJson: (json, key) => nameFromJson(json, key, MAX_NAME_BYTES),
}

/** The method of AUTH: a name, or empty to continue an exchange. */
const method: FieldKind<string> = maybeEmptyName(MAX_NAME_BYTES)

/** The URL of DEF_CHANNEL: up to 2,048 bytes, empty for a channel without a connection. */
const url: FieldKind<string> = maybeEmptyName(MAX_URL_BYTES)

/** It has a name because declarations may not spell out the type parameter of Uint8Array, which TypeScript has from 5.7 on. */
export interface BytesKind extends FieldKind<Uint8Array> {}

/** Bytes. In JSON they are base64, and missing ones are none. */
const opaque: BytesKind = {
  word: 'opaque',
  read: (reader) => reader.opaque(),
  write: (writer, value) => writer.opaque(value),
  fromJson(json, key) {
    if (json === undefined) return new Uint8Array(0)
    const bytes = typeof json === 'string' ? fromBase64(json) : undefined
    if (bytes) return bytes
    throw badJson(key, 'base64')
  },
}

const argumentList: FieldKind<ArgumentList> = {
  word: 'arglist',
  read: readArguments,
  write: writeArguments,
  fromJson: argumentsFromJson,
}

export const fieldKinds = { uint32, channel, transactionId, flag, name, method, url, opaque, argumentList } as const

export function badJson(key: string, expected: string): ProtocolError {
  return new ProtocolError('BAD_JSON', `"${key}" has to be ${expected}`)
}

function maybeEmptyName(maxBytes: number): FieldKind<string> {
  return {
    ...name,
    read(reader) {
      const at = reader.offset
      if (reader.uint32() === 0) return ''
      reader.offset = at
      return readName(reader, maxBytes)
    },
    fromJson: (json, key) => (json === '' ? '' : nameFromJson(json, key, maxBytes)),
  }
}

function nameFromJson(json: unknown, key: string, maxBytes: number): string {
  if (typeof json !== 'string') throw badJson(key, 'a string')
  const problem = nameProblem(json, maxBytes)
  if (problem !== undefined) throw new ProtocolError('BAD_NAME', `"${key}" is ${problem}`)
  return json
}
