/**
 * The `monitoring.json` subprotocol [MON 13]: commands from JSON and messages to JSON, through the same declarations
 * as the binary form. A text message is one object or an array of up to 1,024.
 */

import { toBase64 } from '../bytes/base64.ts'
import { XdrWriter } from '../bytes/writer.ts'
import { ProtocolError } from '../errors.ts'
import { producerText } from './capabilities.ts'
import type { CommandFields } from './commands.ts'
import { type CommandName, commands } from './commands.ts'
import { BasicType, gapReasonName, noticeName } from './constants.ts'
import { badJson } from './fields.ts'
import { valueToJson } from './json-value.ts'
import type { Message } from './message.ts'
import { statusName } from './status.ts'
import type { Value } from './value.ts'

export const MAX_JSON_COMMANDS = 1024

/** One command of a text message. Its fields are read later, once it is known that the command is accepted at all. */
export interface JsonCommand {
  readonly seq: number
  readonly cmd: unknown
  readonly object: Readonly<Record<string, unknown>>
}

/** Splits a text message into commands. Throws ProtocolError BAD_JSON, for close code 1007, if it does not parse or has no seq. */
export function parseJsonCommands(text: string): JsonCommand[] {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new ProtocolError('BAD_JSON', 'the text message is not JSON')
  }
  const list: unknown[] = Array.isArray(json) ? json : [json]
  if (list.length > MAX_JSON_COMMANDS) {
    throw new ProtocolError(
      'BAD_JSON',
      `${list.length} commands in one text message; the limit is ${MAX_JSON_COMMANDS}`,
    )
  }
  return list.map((entry) => {
    if (typeof entry !== 'object' || entry === null)
      throw new ProtocolError('BAD_JSON', 'a command has to be an object')
    const object = entry as Record<string, unknown>
    const seq = object['seq']
    if (typeof seq !== 'number' || !Number.isInteger(seq) || seq < 0 || seq > 0xffffffff) {
      throw new ProtocolError('BAD_JSON', 'a command needs a whole number "seq" from 0 to 4294967295')
    }
    return { seq, cmd: object['cmd'], object }
  })
}

/** The command that a JSON object names, or undefined. */
export function jsonCommandName(cmd: unknown): CommandName | undefined {
  return typeof cmd === 'string' && Object.hasOwn(commands, cmd) ? (cmd as CommandName) : undefined
}

/** The fields of a JSON command. Throws ProtocolError for an unknown key or a value that does not fit. */
export function jsonCommandArguments(
  name: CommandName,
  object: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const source = name === 'AUTH' ? authData(object) : object
  const fields: CommandFields = commands[name].fields
  for (const key of Object.keys(source)) {
    if (key !== 'cmd' && key !== 'seq' && !Object.hasOwn(fields, key)) {
      throw new ProtocolError('BAD_JSON', `${name} has no key "${key}"`)
    }
  }
  const values: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(fields)) {
    const json = source[key]
    values[key] = json === undefined && field.optional !== undefined ? field.optional : field.fromJson(json, key)
  }
  return values
}

/** AUTH password may give `identity` and `password` instead of `data`. */
function authData(object: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (!('identity' in object) && !('password' in object)) return object
  const { identity, password, ...rest } = object
  if (object['method'] !== 'password' || 'data' in object) {
    throw new ProtocolError('BAD_JSON', '"identity" and "password" go with method "password" and without "data"')
  }
  if (typeof identity !== 'string') throw badJson('identity', 'a string')
  if (typeof password !== 'string') throw badJson('password', 'a string')
  return { ...rest, data: toBase64(new XdrWriter().string(identity).string(password).copy()) }
}

const typeNames = new Map<number, string>(Object.entries(BasicType).map(([name, code]) => [code, name.toLowerCase()]))

/** The lower-case word for a basic type, as in `valueType`. */
export function typeName(type: number): string {
  return typeNames.get(type) ?? String(type)
}

/** The basic type of such a word; undefined if there is none. */
export function typeNamed(word: string): BasicType | undefined {
  return Object.entries(BasicType).find(([name]) => name.toLowerCase() === word)?.[1]
}

/** The JSON object of a message. */
export function messageToJson(message: Message): Record<string, unknown> {
  switch (message.kind) {
    case 'response': {
      const { seq, status, result, detail } = message
      const json = { type: 'response', seq, status: statusName(status) ?? status, result }
      return detail === '' ? json : { ...json, detail }
    }
    case 'caps': {
      const { maxFrameBytes, producer, below = [], ...caps } = message.caps
      const self = producer === undefined ? {} : { producer: producerText(producer), below: below.map(producerText) }
      return { type: 'caps', ...caps, max_frame: maxFrameBytes, ...self }
    }
    case 'auth':
      return { type: 'auth', data: toBase64(message.data) }
    case 'gap': {
      const { kind, reason, ...gap } = message
      return { type: kind, ...gap, reason: gapReasonName(reason) ?? reason }
    }
    case 'notice': {
      const { kind, code, ...notice } = message
      return { type: kind, code: noticeName(code) ?? code, ...notice }
    }
    case 'value': {
      const { metric, transaction, time, value } = message
      return { type: 'value', metric, transaction, time, valueType: typeName(value.type), value: valueToJson(value) }
    }
  }
}

/** The JSON text of a message, with a `yield` between the items of a list. */
export function* messageText(message: Message): Generator<void, string, void> {
  if (message.kind !== 'value' || message.value.type !== BasicType.ARRAY) return JSON.stringify(messageToJson(message))
  const { element, items } = message.value.value
  const texts: string[] = []
  for (const value of items) {
    texts.push(JSON.stringify(valueToJson({ type: element, value } as Value)))
    yield
  }
  const empty = { ...message, value: { type: BasicType.ARRAY, value: { element, items: [] } } } as const
  // Its last key is `value`: the text ends with `[]}`.
  return `${JSON.stringify(messageToJson(empty)).slice(0, -2)}${texts.join(',')}]}`
}
