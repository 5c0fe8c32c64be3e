/**
 * A command is declared as data: name, number, fields [MON 2]. Reading, writing, the JSON form and the documents
 * all come from that declaration.
 */
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import type { FieldKind } from './fields.ts'

export type Fields = Readonly<Record<string, FieldKind<unknown>>>
export type ArgumentsOf<F> = { readonly [K in keyof F]: F[K] extends FieldKind<infer T> ? T : never }

export interface Command<F = Fields> {
  readonly name: string
  readonly code: number
  readonly fields: F
  /** What `result` of the response is, for documents. */
  readonly result: string
}

export function command<const F>(declaration: Command<F>): Command<F> {
  return declaration
}

/** Reads the fields of a command; refuses what is left over. */
export function readCommand<F>(declared: Command<F>, reader: XdrReader): ArgumentsOf<F> {
  const read: Record<string, unknown> = {}
  for (const [key, field] of Object.entries(declared.fields as Fields)) {
    read[key] = field.optional !== undefined && reader.remaining === 0 ? field.optional : field.read(reader)
  }
  reader.finish()
  return read as ArgumentsOf<F>
}

/** Writes a whole frame: length, number, seq, fields. An optional field with its default is left out. */
export function writeCommand<F>(writer: XdrWriter, declared: Command<F>, seq: number, values: ArgumentsOf<F>): void {
  const frame = writer.beginFrame()
  writer.uint32(declared.code).uint32(seq)
  for (const [key, field] of Object.entries(declared.fields as Fields)) {
    const value = (values as Record<string, unknown>)[key]
    if (field.optional === undefined || value !== field.optional) field.write(writer, value)
  }
  writer.endFrame(frame)
}
