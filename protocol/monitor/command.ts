/**
 * A command is declared as data: name, number, fields [MON 2]. Reading, writing, the JSON form and the documents
 * all come from that declaration.
 */
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import type { FieldKind } from './fields.ts'

export type CommandFields = Readonly<Record<string, FieldKind<unknown>>>
export type ArgumentsOf<F> = { readonly [K in keyof F]: F[K] extends FieldKind<infer T> ? T : never }

export interface CommandDeclaration<F = CommandFields> {
  readonly name: string
  readonly code: number
  readonly fields: F
  /** What `result` of the response is, for documents. */
  readonly result: string
}

export function command<const F>(declaration: CommandDeclaration<F>): CommandDeclaration<F> {
  return declaration
}

/** Reads the fields of a command; refuses what is left over. */
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
