/**
 * Argument lists: uint32 count, then name, basic type 1 to 8, value [MON 2]. Only the server knows what a metric or
 * control declares, so nothing is converted here; an argument from JSON is marked, since JSON has fewer types.
 */
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import { ProtocolError } from '../errors.ts'
import { BasicType } from './constants.ts'
import { type Field, readBareValue, readCount, readName, readType, writeTyped } from './value.ts'

export type ArgumentList = readonly Argument[]
/** One argument. `json` marks one that came as plain JSON, where 64-bit numbers, NaN and opaque may be strings [MON 13]. */
export type Argument = Field & { readonly json?: true }

export function readArguments(reader: XdrReader): ArgumentList {
  const count = readCount(reader, 12)
  const list: Argument[] = []
  const seen = new Set<string>()
  for (let i = 0; i < count; i++) {
    const at = reader.offset
    const name = readName(reader)
    if (seen.has(name)) throw new ProtocolError('DUPLICATE_NAME', `the argument ${name} is there twice`, at)
    seen.add(name)
    const typeAt = reader.offset
    const type = readType(reader)
    if (type > BasicType.OPAQUE) throw new ProtocolError('BAD_TYPE', `an argument has type 1 to 8, not ${type}`, typeAt)
    list.push({ name, ...readBareValue(reader, type) } as Argument)
  }
  return list
}

export function writeArguments(writer: XdrWriter, list: ArgumentList): void {
  writer.uint32(list.length)
  for (const argument of list) {
    writer.string(argument.name)
    writeTyped(writer, argument)
  }
}
