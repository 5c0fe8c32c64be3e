/** PRODUCER_CAPS [MON 3]: the offer of the producer on this connection. Unlike elsewhere, names repeat in its arglist. */
import type { XdrReader } from '../bytes/reader.ts'
import type { XdrWriter } from '../bytes/writer.ts'
import { BasicType, MessageId } from './constants.ts'
import { type Field, readBareValue, readCount, readName, readType, writeTyped } from './value.ts'

export interface Capabilities {
  readonly major: number
  readonly minor: number
  readonly auth: readonly string[]
  readonly layer: readonly string[]
  readonly extension: readonly string[]
  readonly software: string
  /** The longest command frame that is accepted now, in bytes. */
  readonly maxFrameBytes: number
  /** The current channel, on a connection that begins without AUTH (extension `dialled`) [MON 14]. */
  readonly channel?: number
  /** Names the history of transaction ids, after AUTH: ids of another generation mean nothing here [MON 8 Restoring]. */
  readonly generation?: string
  /** Who the producer is, after AUTH; before it only where the producer announces itself [MON 9.13]. */
  readonly producer?: ProducerName
  /** The producers that it consumes, and those that these consume, with their paths there [MON 9.13]. */
  readonly below?: readonly ProducerName[]
}

/** A producer: what it is called, and the random id that its database has. */
export interface ProducerName {
  readonly id: string
  readonly name: string
}

export function writeCapabilities(writer: XdrWriter, caps: Capabilities): void {
  const texts = (name: string, values: readonly string[]): Field[] =>
    values.map((value) => ({ name, type: BasicType.STRING, value }))
  const list: Field[] = [
    ...texts('auth', caps.auth),
    ...texts('layer', caps.layer),
    ...texts('extension', caps.extension),
    ...texts('software', [caps.software]),
    { name: 'max_frame', type: BasicType.UINT32, value: caps.maxFrameBytes },
    ...(caps.channel === undefined ? [] : [{ name: 'channel', type: BasicType.UINT32, value: caps.channel } as const]),
    ...texts('generation', caps.generation === undefined ? [] : [caps.generation]),
    ...texts('producer', caps.producer === undefined ? [] : [producerText(caps.producer)]),
    ...texts('below', (caps.below ?? []).map(producerText)),
  ]
  const frame = writer.beginFrame()
  writer.uint32(MessageId.PRODUCER_CAPS).uint32(caps.major).uint32(caps.minor).uint32(list.length)
  for (const field of list) {
    writer.string(field.name)
    writeTyped(writer, field)
  }
  writer.endFrame(frame)
}

/** Reads what follows the message id. Entries that this version does not know are skipped. */
export function readCapabilities(reader: XdrReader): Capabilities {
  const major = reader.uint32()
  const minor = reader.uint32()
  const texts = { auth: [] as string[], layer: [] as string[], extension: [] as string[], software: [] as string[] }
  const generations: string[] = []
  const producers: string[] = []
  const below: string[] = []
  const others = { generation: generations, producer: producers, below }
  const lists = new Map<string, string[]>(Object.entries({ ...texts, ...others }))
  let maxFrameBytes = 0
  let channel: number | undefined
  const count = readCount(reader, 12)
  for (let i = 0; i < count; i++) {
    const name = readName(reader)
    const entry = readBareValue(reader, readType(reader))
    if (name === 'max_frame' && entry.type === BasicType.UINT32) maxFrameBytes = entry.value
    if (name === 'channel' && entry.type === BasicType.UINT32) channel = entry.value
    if (entry.type === BasicType.STRING && typeof entry.value === 'string') lists.get(name)?.push(entry.value)
  }
  const [[generation], [producer]] = [generations, producers]
  const known = {
    ...(channel !== undefined && { channel }),
    ...(generation !== undefined && { generation }),
    ...(producer !== undefined && { producer: nameOf(producer) }),
    ...(below.length > 0 && { below: below.map(nameOf) }),
  }
  return { major, minor, ...texts, software: texts.software[0] ?? '', maxFrameBytes, ...known }
}

/** The id, a blank, and the name, which may have blanks. */
export function producerText({ id, name }: ProducerName): string {
  return `${id} ${name}`
}

function nameOf(text: string): ProducerName {
  const blank = text.indexOf(' ')
  return { id: text.slice(0, Math.max(0, blank)), name: text.slice(blank + 1) }
}
