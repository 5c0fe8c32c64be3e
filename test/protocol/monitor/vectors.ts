/**
 * Reads test/vectors/monitor. The files are written by hand from the specification; this turns their JSON into what
 * the codec is expected to give: 64-bit integers stand as strings, bytes as {hex} or {text}, a DOUBLE that JSON
 * cannot say as a string, `78*255` as 255 times the byte (or `x*255` the character).
 */
import { readFileSync } from 'node:fs'
import type { CommandName } from '../../../protocol/monitor/commands.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Message } from '../../../protocol/monitor/message.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'

export interface CommandVector {
  readonly title: string
  readonly frame: Uint8Array
  /** Whether a writer gives exactly these bytes. */
  readonly canonical: boolean
  readonly command: CommandName
  readonly seq: number
  readonly fields: Record<string, unknown>
}
export interface MessageVector {
  readonly title: string
  readonly frame: Uint8Array
  readonly canonical: boolean
  readonly message: Message
}
export interface RefusedVector {
  readonly title: string
  readonly payload: Uint8Array
  readonly command: CommandName | undefined
  readonly code: string
  readonly offset: number
}

// biome-ignore lint/suspicious/noExplicitAny: the files are ours, and a wrong shape fails the tests that read it.
type Json = any

export function commandVectors(): CommandVector[] {
  return [...list('specification'), ...list('commands')]
    .filter((vector) => vector.command !== undefined)
    .map((vector) => ({
      title: vector.title,
      frame: fromHex(vector.hex),
      canonical: vector.canonical ?? true,
      command: vector.command,
      seq: vector.seq,
      fields: Object.fromEntries(Object.entries<Json>(vector.fields).map(([key, json]) => [key, fieldOf(key, json)])),
    }))
}

export function messageVectors(): MessageVector[] {
  const { header, values } = file('values')
  const typed = values.map((vector: Json) => ({
    title: `VALUE: ${vector.title}`,
    hex: `${vector.length} ${header} ${vector.hex}`,
    message: { kind: 'value', metric: 7, transaction: 12, time: 1700000000000000, value: vector.value },
  }))
  return [...list('specification'), ...list('messages'), ...typed, ...list('values')]
    .filter((vector) => vector.message !== undefined)
    .map((vector) => ({
      title: vector.title,
      frame: fromHex(vector.hex),
      canonical: vector.canonical ?? true,
      message: messageOf(vector.message),
    }))
}

export function refusedVectors(): RefusedVector[] {
  return list('refused').map(({ hex, ...rest }) => ({ ...rest, payload: fromHex(hex) }))
}

/** Bytes of hex digits; blanks are free, `00*8` repeats a byte. */
export function fromHex(hex: string): Uint8Array {
  const parts = hex.split(' ').map((part) => {
    const [digits = '', times] = part.split('*')
    return times === undefined ? Buffer.from(digits, 'hex') : Buffer.alloc(Number(times), Number.parseInt(digits, 16))
  })
  return new Uint8Array(Buffer.concat(parts))
}

function file(name: string): Json {
  return JSON.parse(readFileSync(new URL(`../../vectors/monitor/${name}.json`, import.meta.url), 'utf8'))
}

function list(name: string): Json[] {
  return file(name).vectors
}

function fieldOf(key: string, json: Json): unknown {
  if (key === 'args') return json.map((field: Json) => namedOf(field))
  return typeof json === 'string' ? textOf(json) : bytesOr(json)
}

function messageOf(json: Json): Message {
  if (json.kind === 'value') return { ...json, value: typedOf(json.value) }
  if (json.kind === 'auth') return { ...json, data: bytesOr(json.data) }
  return json
}

function namedOf(json: Json): Field {
  return { name: json.name, ...typedOf(json) }
}

function typedOf(json: Json): Value {
  const type = BasicType[json.type as keyof typeof BasicType]
  return { type, value: bareOf(type, json.value) } as Value
}

function bareOf(type: number, json: Json): unknown {
  switch (type) {
    case BasicType.INT64:
    case BasicType.UINT64:
      return BigInt(json)
    case BasicType.DOUBLE:
      return Number(json)
    case BasicType.REC:
      return json.map(namedOf)
    case BasicType.ARRAY: {
      const element = BasicType[json.element as keyof typeof BasicType]
      return { element, items: json.items.map((item: Json) => bareOf(element, item)) }
    }
    default:
      return bytesOr(json)
  }
}

function bytesOr(json: Json): unknown {
  if (typeof json?.hex === 'string') return fromHex(json.hex)
  return typeof json?.text === 'string' ? new TextEncoder().encode(json.text) : json
}

function textOf(text: string): string {
  const repeated = /^(.)\*(\d+)$/.exec(text)
  return repeated === null ? text : repeated[1]!.repeat(Number(repeated[2]))
}
