/**
 * A record of the log is one or more messages of a stream, its parts. Headers say what a part is, so that they can be read with
 * the `nats` command too. A record is whole if its parts follow each other without a message between; every other part is void.
 * This is so for every reader, wherever it began: a leader that was deposed while its parts were on the way leaves such parts.
 */
import { headers, type MsgHdrs } from '@nats-io/transport-node'
import { checkFormat, MAX_RECORD_BYTES, unpackRecord } from './packing.ts'

export type RecordKind = 'epoch' | 'batch'

/** A record of the log. */
export interface LogEntry {
  readonly kind: RecordKind
  readonly epoch: number
  /** The node that has appended it. */
  readonly node: string
  /** The sequence of its last part in the stream. */
  readonly sequence: number
  readonly bytes: Uint8Array
}

export interface RecordPart {
  /** Of the headers, of how records are divided, and of how their bytes are packed (packing.ts). */
  readonly format: number
  readonly kind: RecordKind
  readonly epoch: number
  readonly node: string
  /** Random text, the same for all parts of a record and for no other record. */
  readonly record: string
  /** 1 .. count */
  readonly index: number
  readonly count: number
}

export function partHeaders({ format, kind, epoch, node, record, index, count }: RecordPart): MsgHdrs {
  const made = headers()
  made.set('Cin-Kind', kind)
  made.set('Cin-Epoch', String(epoch))
  made.set('Cin-Part', `${index}/${count}`)
  made.set('Cin-Node', node)
  made.set('Cin-Format', String(format))
  made.set('Cin-Record', record)
  return made
}

/** What a message of the stream is; undefined if it is no part of a record. */
export function partOf(found: Pick<MsgHdrs, 'get'> | undefined): RecordPart | undefined {
  const kind = found?.get('Cin-Kind')
  if (found === undefined || (kind !== 'epoch' && kind !== 'batch')) return undefined
  const [index, count] = found.get('Cin-Part').split('/')
  const part = {
    format: wholeNumber(found.get('Cin-Format')),
    kind,
    epoch: wholeNumber(found.get('Cin-Epoch')),
    node: found.get('Cin-Node'),
    record: found.get('Cin-Record'),
    index: wholeNumber(index),
    count: wholeNumber(count),
  } as const
  const isPart = !Number.isNaN(part.format + part.epoch) && part.index >= 1 && part.index <= part.count
  return isPart ? part : undefined
}

/** NaN for any other text. */
function wholeNumber(text = ''): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
}

/** Puts records together from the messages of a stream, which it takes in order. */
export class Assembler {
  #parts: Uint8Array[] = []
  #bytes = 0
  #last: (RecordPart & { readonly sequence: number }) | undefined

  /**
   * The record that ends with this message; undefined if none does. Throws StorageError: TOO_NEW if a newer version has written it,
   * BEHIND if it cannot be unpacked.
   */
  take(sequence: number, part: RecordPart | undefined, data: Uint8Array): LogEntry | undefined {
    if (part !== undefined) checkFormat(part.format, part.node)
    if (part === undefined || !this.#continues(sequence, part, data.length)) {
      this.#clear()
      if (part?.index !== 1) return undefined
    }
    this.#parts.push(data)
    this.#bytes += data.length
    this.#last = { ...part, sequence }
    if (part.index < part.count) return undefined
    const bytes = this.#parts.length === 1 ? data : Buffer.concat(this.#parts)
    this.#clear()
    const { kind, epoch, node, format } = part
    return { kind, epoch, node, sequence, bytes: unpackRecord({ format, bytes }, sequence) }
  }

  /** Of records that are larger than any that is written, nothing is kept. */
  #continues(sequence: number, part: RecordPart, length: number): boolean {
    const last = this.#last
    const isNext = last !== undefined && last.sequence + 1 === sequence && last.index + 1 === part.index
    return (
      isNext && last.record === part.record && last.format === part.format && this.#bytes + length <= MAX_RECORD_BYTES
    )
  }

  #clear(): void {
    this.#parts = []
    this.#bytes = 0
    this.#last = undefined
  }
}
