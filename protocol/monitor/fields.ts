/**
 * The kinds of fields that commands are declared with, and how each is read and written as XDR and read from JSON. A field with `optional` may be absent at the end of a command, or missing in JSON.
 */
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import { type ArgumentList, readArguments, writeArguments } from './arguments.ts'
import { MAX_NAME_BYTES, MAX_URL_BYTES } from './constants.ts'
import {
  bytesFromJson,
  channelFromJson,
  flagFromJson,
  nameFromJson,
  transactionFromJson,
  uint32FromJson,
} from './json-fields.ts'
import { argumentsFromJson } from './json-value.ts'
import { readName } from './value.ts'

export interface FieldKind<T> {
  read(reader: XdrReader): T
  write(writer: XdrWriter, value: T): void
  /** `json` is undefined if the key is missing. Throws ProtocolError BAD_JSON, BAD_NAME. */
  fromJson(json: unknown, key: string): T
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
}

/** A channel; in JSON a missing one is the current one. */
export const channel: FieldKind<number> = { ...uint32, fromJson: channelFromJson }

/** A transaction id: uint64 on the wire, a number here, since ids never reach 2^53. */
export const transactionId: FieldKind<number> = {
  word: 'uint64',
  read: (reader) => reader.uint53(),
  write: (writer, value) => writer.uint53(value),
  fromJson: transactionFromJson,
}

/** COMMIT's `through`: 0 or 1, absent is 0. */
export const flag: FieldKind<boolean> & { readonly optional: boolean } = {
  word: 'uint32 (0 or 1)',
  optional: false,
  read: (reader) => reader.boolean(),
  write: (writer, value) => writer.boolean(value),
  fromJson: flagFromJson,
}

export const name: FieldKind<string> = {
  word: 'string',
  read: (reader) => readName(reader),
  write: (writer, value) => writer.string(value),
  fromJson: (json, key) => nameFromJson(json, key, MAX_NAME_BYTES),
}

/** AUTH's method: a name, or empty to go on with an exchange. */
export const method: FieldKind<string> = {
  ...name,
  read: (reader) => readMaybeEmpty(reader, MAX_NAME_BYTES),
  fromJson: (json, key) => (json === '' ? json : nameFromJson(json, key, MAX_NAME_BYTES)),
}

/** DEF_CHANNEL's url: up to 2,048 bytes, empty for a channel without a connection. */
export const url: FieldKind<string> = {
  ...name,
  read: (reader) => readMaybeEmpty(reader, MAX_URL_BYTES),
  fromJson: (json, key) => (json === '' ? json : nameFromJson(json, key, MAX_URL_BYTES)),
}

export const opaque: FieldKind<Uint8Array> = {
  word: 'opaque',
  read: (reader) => reader.opaque(),
  write: (writer, value) => writer.opaque(value),
  fromJson: bytesFromJson,
}

export const argumentList: FieldKind<ArgumentList> = {
  word: 'arglist',
  read: readArguments,
  write: writeArguments,
  fromJson: argumentsFromJson,
}

function readMaybeEmpty(reader: XdrReader, maxBytes: number): string {
  const at = reader.offset
  if (reader.uint32() === 0) return ''
  reader.offset = at
  return readName(reader, maxBytes)
}
