/** The reader's side of remote read: a request as Prometheus writes it, and the series of an answer with every bit of their values. */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { snappyCompress, snappyUncompress } from 'hysnappy'

export const READ_HEADERS = { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' } as const

const OPERATORS = ['=', '!=', '=~', '!~']
const MOST_BYTES = 64 << 20

export interface StoredSample {
  readonly timeMs: number
  readonly bits: bigint
}

/** A series by its labels, `__name__` among them. */
export interface StoredSeries {
  readonly labels: ReadonlyMap<string, string>
  readonly samples: readonly StoredSample[]
}

export interface AskedQuery {
  readonly fromMs: number
  readonly toMs: number
  readonly matchers: readonly (readonly [label: string, operator: string, text: string])[]
}

/** `forms`: the types of answers that are taken, by their numbers. An operator that does not exist is written as one. */
export function readRequest(queries: readonly AskedQuery[], forms: readonly number[] = []): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter()
  for (const { fromMs, toMs, matchers } of queries) {
    writer.tag(1, WireType.LengthDelimited).fork()
    writer.tag(1, WireType.Varint).int64(fromMs).tag(2, WireType.Varint).int64(toMs)
    for (const [label, operator, text] of matchers) {
      const type = OPERATORS.includes(operator) ? OPERATORS.indexOf(operator) : OPERATORS.length
      writer.tag(3, WireType.LengthDelimited).fork().tag(1, WireType.Varint).int32(type)
      writer.tag(2, WireType.LengthDelimited).string(label).tag(3, WireType.LengthDelimited).string(text).join()
    }
    // Hints: a step, a function, and the same times.
    writer.tag(4, WireType.LengthDelimited).fork().tag(1, WireType.Varint).int64(15_000)
    writer.tag(2, WireType.LengthDelimited).string('rate')
    writer.tag(3, WireType.Varint).int64(fromMs).tag(4, WireType.Varint).int64(toMs).join()
    writer.join()
  }
  for (const form of forms) writer.tag(2, WireType.Varint).int32(form)
  return Uint8Array.from(snappyCompress(writer.finish()))
}

/** The series of each query. */
export function readResponse(body: Uint8Array): StoredSeries[][] {
  return messagesOf(uncompressed(body), 1).map((result) => messagesOf(result, 1).map(seriesOf))
}

function uncompressed(bytes: Uint8Array): Uint8Array {
  const length = new BinaryReader(bytes).uint32()
  if (length > MOST_BYTES) throw new Error(`${length} bytes`)
  return snappyUncompress(bytes, length)
}

/** The messages that a field of a message has. */
function messagesOf(bytes: Uint8Array, field: number): Uint8Array[] {
  const reader = new BinaryReader(bytes)
  const all: Uint8Array[] = []
  while (reader.pos < reader.len) {
    const [found, wire] = reader.tag()
    if (found === field && wire === WireType.LengthDelimited) all.push(reader.bytes())
    else reader.skip(wire)
  }
  return all
}

function seriesOf(bytes: Uint8Array): StoredSeries {
  const labels = new Map(
    messagesOf(bytes, 1).map((label) => {
      const texts = [1, 2].map((field) => Buffer.from(messagesOf(label, field)[0] ?? []).toString())
      return [texts[0] ?? '', texts[1] ?? ''] as const
    }),
  )
  return { labels, samples: messagesOf(bytes, 2).map(sampleOf) }
}

function sampleOf(bytes: Uint8Array): StoredSample {
  const reader = new BinaryReader(bytes)
  let [timeMs, bits] = [0, 0n]
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag()
    if (field === 1 && wire === WireType.Bit64) bits = BigInt(reader.fixed64())
    else if (field === 2 && wire === WireType.Varint) timeMs = Number(reader.int64())
    else reader.skip(wire)
  }
  return { timeMs, bits }
}
