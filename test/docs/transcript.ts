/**
 * The transcripts of docs/protocol/monitoring.md: blocks `text hex`. A line that begins with `>` is the beginning of a frame of
 * the consumer, one with `<` of the producer; each line has a field, or a few, and says what it means. A line without words
 * continues the field before it. Angle brackets contain what differs from session to session. `#` begins a comment.
 */
import { XdrReader } from '../../protocol/bytes/reader.ts'
import { commandName, commands, readCommand } from '../../protocol/monitor/commands.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { FieldKind } from '../../protocol/monitor/fields.ts'
import { typeName } from '../../protocol/monitor/json.ts'
import { valueToJson } from '../../protocol/monitor/json-value.ts'
import { readMessage } from '../../protocol/monitor/message.ts'
import { statusName } from '../../protocol/monitor/status.ts'
import { readBareValue, readType } from '../../protocol/monitor/value.ts'
import type { Page } from './page.ts'

const ROW_BYTES = 24

/** A line of a frame: its bytes, and what the page, or the decoder, says of them. */
export interface Line {
  readonly hex: string
  readonly says: string
}

export interface Frame {
  readonly from: 'consumer' | 'producer'
  readonly lines: readonly Line[]
}

/** The frames of a block `text hex NAME`. */
export function transcript({ path, blocks }: Page, name: string): Frame[] {
  const block = blocks.find(({ words }) => words[0] === 'hex' && words[1] === name)
  if (block === undefined) throw new Error(`${path} has no block "text hex ${name}"`)
  return framesIn(block.lines)
}

/** The names of all transcripts of a page. */
export function transcriptNames({ blocks }: Page): string[] {
  return blocks.flatMap(({ words }) => (words[0] === 'hex' ? [words[1] ?? ''] : []))
}

function framesIn(lines: readonly string[]): Frame[] {
  const frames: { from: Frame['from']; lines: { hex: string; says: string }[] }[] = []
  for (const line of lines) {
    if (line === '' || line.startsWith('#')) continue
    const found = /^([<> ]) ((?:[0-9a-f]{2})+(?: (?:[0-9a-f]{2})+)*)(?: {2,}(\S.*))?$/.exec(line)
    if (found === null) throw new Error(`this is no line of a transcript: ${line}`)
    const [, mark, words = '', says] = found
    const hex = words.replaceAll(' ', '')
    if (mark !== ' ') frames.push({ from: mark === '>' ? 'consumer' : 'producer', lines: [] })
    const open = frames.at(-1)?.lines
    if (open === undefined) throw new Error(`this line belongs to no frame: ${line}`)
    const last = open.at(-1)
    if (says !== undefined) open.push({ hex, says })
    else if (last !== undefined) last.hex += hex
    else throw new Error(`the first line of a frame says nothing: ${line}`)
  }
  return frames
}

export function bytesOf({ lines }: Pick<Frame, 'lines'>): Buffer {
  return Buffer.from(lines.map(({ hex }) => hex).join(''), 'hex')
}

/** How a page shows a frame. */
export function shown({ from, lines }: Frame): string[] {
  return lines.flatMap(({ hex, says }, index) => {
    const words = hex.match(/.{1,8}/g) ?? []
    const rows: string[] = []
    while (words.length > 0) rows.push(words.splice(0, ROW_BYTES / 4).join(' '))
    return rows.map((row, at) => {
      const mark = index + at > 0 ? ' ' : from === 'consumer' ? '>' : '<'
      return at === 0 ? `${mark} ${row.padEnd(55)}${says}` : `${mark} ${row}`
    })
  })
}

/** What the decoder says of a whole frame, field by field. Throws if it does not decode. */
export function described(from: Frame['from'], bytes: Uint8Array): Line[] {
  const fields = new Fields(bytes)
  if (from === 'consumer') describeCommand(fields)
  else describeMessage(fields)
  return fields.lines
}

class Fields {
  readonly lines: Line[] = []
  readonly reader: XdrReader
  readonly #bytes: Uint8Array
  #from = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
    this.reader = new XdrReader(bytes)
  }

  /** Everything that was read since the last line. */
  line(says: string): void {
    const { offset } = this.reader
    this.lines.push({ hex: Buffer.from(this.#bytes.subarray(this.#from, offset)).toString('hex'), says })
    this.#from = offset
  }

  /** A reader of the whole payload. */
  payload(): XdrReader {
    return new XdrReader(this.#bytes, 4)
  }
}

function describeCommand(fields: Fields): void {
  const { reader } = fields
  const length = reader.uint32()
  const name = commandName(reader.uint32())
  if (name === undefined) throw new Error('there is no such command')
  const declared = commands[name]
  fields.line(`length ${length}, ${name}, seq ${reader.uint32()}`)
  let method = ''
  for (const [key, kind] of Object.entries<FieldKind<unknown>>(declared.fields)) {
    if (key === 'args') describeArguments(fields)
    else if (key === 'data') describeData(fields, method)
    else if (kind.optional === undefined || reader.remaining > 0) {
      const value = kind.read(reader)
      if (key === 'method') method = String(value)
      fields.line(`${key} ${typeof value === 'string' ? JSON.stringify(value) : value}`)
    }
  }
  reader.finish()
  const payload = fields.payload()
  payload.offset += 8
  readCommand(declared, payload)
}

function describeArguments(fields: Fields): void {
  const count = fields.reader.uint32()
  fields.line(`${count} argument${count === 1 ? '' : 's'}`)
  for (let left = count; left > 0; left--) {
    fields.line(`argument ${JSON.stringify(fields.reader.string())}`)
    describeValue(fields)
  }
}

function describeValue(fields: Fields): void {
  const type = readType(fields.reader)
  fields.line(typeName(type).toUpperCase())
  describeBare(fields, type)
}

/** A value without its type. */
function describeBare(fields: Fields, type: BasicType): void {
  const { reader } = fields
  if (type === BasicType.REC) {
    const count = reader.uint32()
    fields.line(`${count} field${count === 1 ? '' : 's'}`)
    for (let left = count; left > 0; left--) {
      fields.line(`field ${JSON.stringify(reader.string())}`)
      describeValue(fields)
    }
  } else if (type === BasicType.ARRAY) {
    const element = readType(reader)
    const count = reader.uint32()
    fields.line(`${count} of ${typeName(element).toUpperCase()}`)
    for (let left = count; left > 0; left--) describeBare(fields, element)
  } else if (type !== BasicType.VOID) {
    const value = readBareValue(reader, type)
    const plain = value.type === BasicType.OPAQUE ? Buffer.from(value.value).toString() : valueToJson(value)
    fields.line(`value ${JSON.stringify(plain)}`)
  }
}

/** The data of AUTH: text, row by row, the two strings of `password`, or nothing. */
function describeData(fields: Fields, method: string): void {
  const { reader } = fields
  const end = reader.uint32()
  fields.line(end === 0 ? 'no data' : `data, ${end} bytes`)
  if (end === 0) return
  if (method === 'password') {
    for (const name of ['identity', 'password']) fields.line(`${name} ${JSON.stringify(reader.string())}`)
    return
  }
  reader.offset -= 4
  const data = reader.opaque()
  const after = reader.offset
  reader.offset -= (data.length + 3) & ~3
  for (let at = 0; at < end; at += ROW_BYTES) {
    reader.offset = Math.min(reader.offset + ROW_BYTES, after)
    fields.line(Buffer.from(data.subarray(at, at + ROW_BYTES)).toString())
  }
}

function describeMessage(fields: Fields): void {
  const { reader } = fields
  const length = reader.uint32()
  const message = readMessage(fields.payload())
  reader.uint32()
  const head = `length ${length}, `
  switch (message.kind) {
    case 'response':
      fields.line(`${head}RESPONSE to seq ${reader.uint32()}`)
      fields.line(`status ${statusName(reader.uint32())}`)
      fields.line(`result ${reader.uint32()}`)
      if (reader.remaining > 0) fields.line(`detail ${JSON.stringify(reader.string())}`)
      break
    case 'caps':
      fields.line(`${head}PRODUCER_CAPS, version ${reader.uint32()}.${reader.uint32()}`)
      fields.line(`${reader.uint32()} entries`)
      while (reader.remaining > 0) {
        const name = reader.string()
        const value = valueToJson(readBareValue(reader, readType(reader)))
        fields.line(`${name} ${JSON.stringify(value)}`)
      }
      break
    case 'auth':
      fields.line(`${head}AUTH`)
      describeData(fields, '')
      break
    case 'value':
      reader.offset -= 4
      fields.line(`${head}VALUE`)
      fields.line(`id ${reader.uint32()}`)
      fields.line(`transaction id ${reader.uint64()}`)
      fields.line(`time ${reader.uint64()}`)
      describeValue(fields)
      break
    case 'gap':
      throw new Error('no transcript has a GAP')
    case 'notice':
      fields.line(`${head}NOTICE ${reader.uint32()}`)
      fields.line(`channel ${reader.uint32()}`)
      fields.line(`detail ${JSON.stringify(reader.string())}`)
      break
  }
  reader.finish()
}
