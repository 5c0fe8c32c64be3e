/**
 * Remote read of Prometheus 1.0: ReadRequest and ReadResponse in protocol buffers (`remote.proto`), each under Snappy's block format.
 * Of the two forms of an answer this is `SAMPLES`, which every reader takes: samples of a series one after the other.
 */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { snappyCompress } from 'hysnappy'
import { ByteWriter } from '../bytes/writer.ts'
import { BYTES, MessageReader, VARINT } from '../protobuf.ts'

/** By the numbers of LabelMatcher.Type. */
const OPERATORS = ['=', '!=', '=~', '!~'] as const

export interface ReadMatcher {
  readonly label: string
  readonly operator: (typeof OPERATORS)[number]
  readonly text: string
}

/** Times: milliseconds since 1970; both ends are included. */
export interface ReadQuery {
  readonly fromMs: number
  readonly toMs: number
  readonly matchers: readonly ReadMatcher[]
}

export interface ReadRequest {
  readonly queries: readonly ReadQuery[]
  /** Whether the reader takes `SAMPLES`; one that names no form does. */
  readonly takesSamples: boolean
}

/** A series of an answer. Times ascend; a stale marker is a value with its bits, which are copied as they are. */
export interface ReadSeries {
  readonly labels: Iterable<readonly [name: string, text: string]>
  readonly times: Float64Array
  readonly values: Float64Array
}

const SAMPLES = 0

/** Reads a request that is decompressed. Hints are passed over: what they say only saves work. Throws ProtocolError. */
export function decodeReadRequest(bytes: Uint8Array, limits: { readonly elements: number }): ReadRequest {
  const reader = new MessageReader(bytes, limits.elements)
  const queries: ReadQuery[] = []
  const forms: number[] = []
  while (!reader.isAtEnd) {
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (field === 1 && wire === BYTES) queries.push(readQuery(reader))
        else if (field === 2 && (wire === VARINT || wire === BYTES))
          reader.repeated(wire, () => forms.push(reader.uint32()))
        else return false
        return true
      }),
    )
  }
  return { queries, takesSamples: forms.length === 0 || forms.includes(SAMPLES) }
}

function readQuery(reader: MessageReader): ReadQuery {
  let [fromMs, toMs] = [0, 0]
  const matchers: ReadMatcher[] = []
  reader.message((field, wire) => {
    if (field === 1 && wire === VARINT) fromMs = reader.milliseconds()
    else if (field === 2 && wire === VARINT) toMs = reader.milliseconds()
    else if (field === 3 && wire === BYTES) matchers.push(readMatcher(reader))
    else return false
    return true
  })
  return { fromMs, toMs, matchers }
}

function readMatcher(reader: MessageReader): ReadMatcher {
  let [type, label, text] = [0, '', '']
  reader.message((field, wire) => {
    if (field === 1 && wire === VARINT) type = reader.uint32()
    else if (wire !== BYTES) return false
    else if (field === 2) label = reader.text()
    else if (field === 3) text = reader.text()
    else return false
    return true
  })
  const operator = OPERATORS[type]
  if (operator === undefined) throw reader.bad(`a matcher of the type ${type}, which does not exist`)
  return { label, operator, text }
}

/** Bytes that are compressed at once: about a millisecond's work. */
const PIECE_BYTES = 256 << 10
const SAMPLES_PER_PIECE = 8_192
const TAG = { LABELS: 0x0a, SAMPLES: 0x12, VALUE: 0x09, TIME: 0x10 } as const
const DOUBLE_BYTES = 8

/**
 * Writes an answer piece by piece, so that none of its steps takes long, and none of it is held uncompressed. A block of Snappy is
 * the length of the whole and then elements, of which each refers back to what came before at most; so the elements of blocks, one
 * after the other, are those of one block.
 */
export class ReadResponseWriter {
  readonly #results: { readonly bytes: number; readonly blocks: readonly Uint8Array[] }[] = []
  #blocks: Uint8Array[] = []
  #bytes = 0
  /** What waits to be compressed. */
  readonly #waiting = new ByteWriter(PIECE_BYTES)
  #heldBytes = 0

  /** Bytes that it holds. */
  get heldBytes(): number {
    return this.#heldBytes + this.#waiting.length
  }

  /** Adds a series to the result of the query, with places to pause. */
  *series({ labels, times, values }: ReadSeries): Generator<undefined, void, void> {
    const head = labelBytes(labels)
    const length = head.length + samplesLength(times)
    this.#waiting.raw(new BinaryWriter().tag(1, WireType.LengthDelimited).uint32(length).raw(head).finish())
    for (let from = 0; from < times.length; from += SAMPLES_PER_PIECE) {
      const to = Math.min(times.length, from + SAMPLES_PER_PIECE)
      this.#waiting.raw(sampleBytes(times.subarray(from, to), values.subarray(from, to)))
      if (this.#waiting.length < PIECE_BYTES) continue
      this.#compress()
      yield
    }
  }

  /** Ends the result of a query. */
  endResult(): void {
    this.#compress()
    this.#results.push({ bytes: this.#bytes, blocks: this.#blocks })
    this.#blocks = []
    this.#bytes = 0
  }

  /** The body of the answer. Nothing can be added any more. */
  *body(): Generator<Uint8Array, void, void> {
    const heads = this.#results.map(({ bytes }) =>
      new BinaryWriter().tag(1, WireType.LengthDelimited).uint32(bytes).finish(),
    )
    let whole = 0
    for (const [index, { bytes }] of this.#results.entries()) whole += bytes + (heads[index]?.length ?? 0)
    yield new BinaryWriter().uint32(whole).finish()
    for (const [index, { blocks }] of this.#results.entries()) {
      yield elementsOf(snappyCompress(heads[index] ?? new Uint8Array(0)))
      yield* blocks
    }
  }

  #compress(): void {
    const { length } = this.#waiting
    if (length === 0) return
    const block = elementsOf(snappyCompress(this.#waiting.bytes()))
    this.#blocks.push(block)
    this.#bytes += length
    this.#heldBytes += block.length
    this.#waiting.length = 0
  }
}

/** What stands after the length in a block of Snappy. */
function elementsOf(block: Uint8Array): Uint8Array {
  let at = 0
  while ((block[at] as number) >= 0x80) at++
  return block.subarray(at + 1)
}

/** In the order of their names. */
function labelBytes(labels: ReadSeries['labels']): Uint8Array {
  const writer = new BinaryWriter()
  for (const [name, text] of [...labels].sort(([one], [other]) => (one < other ? -1 : 1))) {
    writer.raw(Uint8Array.of(TAG.LABELS)).fork()
    writer.tag(1, WireType.LengthDelimited).string(name)
    writer.tag(2, WireType.LengthDelimited).string(text)
    writer.join()
  }
  return writer.finish()
}

/** Of the message, without its tag and length; it is less than 128. */
function sampleLength(timeMs: number): number {
  return 1 + DOUBLE_BYTES + 1 + varintLength(timeMs)
}

function varintLength(number: number): number {
  let length = 1
  for (let rest = number; rest >= 128; rest = Math.floor(rest / 128)) length++
  return length
}

/** Of all samples, with their tags and lengths. Times ascend, so that mostly all of them are as long as the first. */
function samplesLength(times: Float64Array): number {
  const each = 2 + sampleLength(times[0] ?? 0)
  if (times.length === 0 || each === 2 + sampleLength(times[times.length - 1] as number)) return each * times.length
  const half = times.length >> 1
  return samplesLength(times.subarray(0, half)) + samplesLength(times.subarray(half))
}

function sampleBytes(times: Float64Array, values: Float64Array): Uint8Array {
  const bytes = new Uint8Array(samplesLength(times))
  // A NaN keeps its bits only as bytes, and the machine's are in the order of the protocol.
  const valueBytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  let to = 0
  for (let at = 0; at < times.length; at++) {
    let time = times[at] as number
    bytes[to++] = TAG.SAMPLES
    bytes[to++] = sampleLength(time)
    bytes[to++] = TAG.VALUE
    for (let byte = at * DOUBLE_BYTES; byte < (at + 1) * DOUBLE_BYTES; byte++) bytes[to++] = valueBytes[byte] as number
    bytes[to++] = TAG.TIME
    for (; time >= 128; time = Math.floor(time / 128)) bytes[to++] = (time % 128) | 0x80
    bytes[to++] = time
  }
  return bytes
}
