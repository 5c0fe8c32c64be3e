/**
 * The commands [MON 2], declared as data: number and fields. Reading, writing, the JSON form and the documents all come
 * from this table.
 */
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import { type FieldKind, fieldKinds } from './fields.ts'

export type CommandFields = Readonly<Record<string, FieldKind<unknown>>>
export type ArgumentsOf<F> = { readonly [K in keyof F]: F[K] extends FieldKind<infer T> ? T : never }

export interface CommandDeclaration<F = CommandFields> {
  readonly code: number
  readonly fields: F
  /** The meaning of `result` in the response, for documents. */
  readonly result: string
}

const { argumentList, channel, flag, method, name, opaque, transactionId, uint32, url } = fieldKinds

/** All commands, in the order of their numbers. */
export const commands = {
  /** Does nothing: a keep-alive. */
  NOP: { code: 0, fields: {}, result: '0' },
  /** Makes a metric instance; nothing is measured until somebody wants it. */
  COLLECT: { code: 1, fields: { metric: name, args: argumentList }, result: 'metric id' },
  /** Ends the values of this id on that channel; those that wait there are lost. */
  STOP: { code: 2, fields: { metric: uint32, channel }, result: '0' },
  /** Sends values of this id to that channel as they arrive. */
  SUBSCRIBE: { code: 3, fields: { metric: uint32, channel }, result: '0' },
  /** Lets values of this id wait on that channel until GET. */
  BUFFER: { code: 4, fields: { metric: uint32, channel }, result: '0' },
  /** Sends the values of an event-like metric that wait; measures a continuous one now. */
  GET: { code: 5, fields: { metric: uint32, channel }, result: '0' },
  /** Says who the consumer is. */
  AUTH: { code: 6, fields: { method, data: opaque }, result: 'channel id' },
  /** Defines a channel that outlives every connection. */
  DEF_CHANNEL: { code: 7, fields: { url, args: argumentList }, result: 'channel id' },
  /** Makes another channel of this identity the current one of this connection. */
  SET_CHANNEL: { code: 8, fields: { channel: uint32 }, result: '0' },
  /** Destroys a channel and everything that is queued on it. */
  DEL_CHANNEL: { code: 9, fields: { channel }, result: '0' },
  /** Acknowledges a value: it is processed and will not be sent again. */
  COMMIT: { code: 10, fields: { transaction: transactionId, through: flag }, result: '0' },
  /** Runs a control; its result comes as a value. */
  EXECUTE: { code: 11, fields: { control: name, args: argumentList }, result: 'result id' },
  /** COLLECT, GET and STOP in one, for a continuous metric. */
  QUERY: { code: 12, fields: { metric: name, args: argumentList }, result: 'metric id' },
  /** Puts a layer under the connection; nothing may be sent until it is answered. */
  WRAP: { code: 13, fields: { layer: name }, result: '0, or 4294967294 when capabilities change' },
} as const satisfies Readonly<Record<string, CommandDeclaration>>

export type CommandName = keyof typeof commands
export type CommandArguments<N extends CommandName> = ArgumentsOf<(typeof commands)[N]['fields']>

const names = Object.keys(commands) as CommandName[]
const byCode: readonly CommandName[] = names.sort((a, b) => commands[a].code - commands[b].code)

/** The name of a command number, or undefined. */
export function commandName(code: number): CommandName | undefined {
  return byCode[code]
}

/** Reads the fields of a command; refuses bytes after the last one. */
export function readCommand<F>(declared: CommandDeclaration<F>, reader: XdrReader): ArgumentsOf<F> {
  const read: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(declared.fields as CommandFields)) {
    read[key] = field.optional !== undefined && reader.remaining === 0 ? field.optional : field.read(reader)
  }
  reader.finish()
  return read as ArgumentsOf<F>
}

/** Writes a whole frame: length, number, seq, fields. An optional field with its default is left out. */
export function writeCommand<F>(
  writer: XdrWriter,
  declared: CommandDeclaration<F>,
  seq: number,
  values: ArgumentsOf<F>,
): void {
  const frame = writer.beginFrame()
  writer.uint32(declared.code).uint32(seq)
  for (const [key, field] of Object.entries(declared.fields as CommandFields)) {
    const value = (values as Record<string, unknown>)[key]
    if (field.optional === undefined || value !== field.optional) field.write(writer, value)
  }
  writer.endFrame(frame)
}
