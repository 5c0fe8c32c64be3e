/**
 * Requests of Prometheus remote write: WriteRequest of version 1.0 and io.prometheus.write.v2.Request of version 2.0, both
 * in protocol buffers under Snappy's block format. They are read in steps.
 */
import type { WireType } from '@bufbuild/protobuf/wire'
import { snappyUncompressor } from 'hysnappy'
import type { ByteMemory } from '../bytes/byte-memory.ts'
import { ProtocolError } from '../errors.ts'
import { BYTES, FIXED64, MAX_MESSAGE_ELEMENTS, MessageReader, VARINT } from '../protobuf.ts'
import { STALE_NAN } from './stale-marker.ts'

export const METRIC_NAME = '__name__'
const MILLISECOND = 1_000
/** Series with more labels are not remembered: none of them is taken. */
const MOST_REMEMBERED = 256
/** Series whose labels are looked up in one step. */
const SERIES_PER_STEP = 64

/** A sample: its value, undefined for a stale marker, and its time in microseconds since 1970. */
export interface WrittenSample {
  readonly value: number | undefined
  readonly time: number
}

export interface WrittenLabels {
  /** The label `__name__`, or the first of several; empty if there is none. */
  readonly name: string
  /** All others, as they were given. */
  readonly labels: readonly (readonly [name: string, text: string])[]
}

export interface WrittenSeries extends WrittenLabels {
  /** Name and labels: the same object as in an earlier request, if their bytes are the same and are remembered. */
  readonly shared?: ReadLabels | undefined
  readonly samples: readonly WrittenSample[]
  /** The number of its native histograms, which are not read. */
  readonly histograms: number
  /** What version 2.0 says of its metric. */
  readonly metadata: WrittenMetadata | undefined
  /** Why its labels cannot be read; the others of the request can. */
  readonly problem?: string
}

export interface WrittenMetadata {
  /** By the numbers of MetricType. */
  readonly type: number
  readonly help: string
  readonly unit: string
}

export interface WriteRequest {
  readonly series: readonly WrittenSeries[]
  /** What version 1.0 says of metrics, by their family names. */
  readonly families: ReadonlyMap<string, WrittenMetadata>
}

export interface WriteLimits {
  /** Fields and packed numbers together. */
  readonly elements: number
}

/** It runs in memory of its own, as WebAssembly: bytes that are not Snappy's reach nothing else. */
const uncompress = snappyUncompressor()

/** Decompresses the body of a request. Throws ProtocolError TOO_LONG before it takes the room, or BAD_PROTOBUF. */
export function decompress(body: Uint8Array, { bytes }: { readonly bytes: number }): Uint8Array {
  const length = snappyLength(body)
  if (length > bytes) throw new ProtocolError('TOO_LONG', `${length} bytes when decompressed; there may be ${bytes}`)
  try {
    return uncompress(body, length)
  } catch (error) {
    throw new ProtocolError('BAD_PROTOBUF', `Snappy: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** The length before compression: the varint at the beginning of Snappy's block format. Throws ProtocolError BAD_PROTOBUF. */
export function snappyLength(body: Uint8Array): number {
  let length = 0
  for (let at = 0; at < 5 && at < body.length; at++) {
    const byte = body[at] as number
    length += (byte & 0x7f) * 2 ** (7 * at)
    if (byte < 0x80) return length
  }
  throw new ProtocolError('BAD_PROTOBUF', 'Snappy: no length at the beginning')
}

/** Name and labels as they were read. */
export interface ReadLabels {
  readonly name: string
  /** Whoever keeps what they need of them may let them go. */
  labels: WrittenLabels['labels']
  /** As which they count. */
  readonly elements: number
}

/** Names and labels by the bytes that they have in requests of version 1.0. */
export type LabelMemory = ByteMemory<ReadLabels>

/** Reads a request of version 1.0, with places to pause between. Throws ProtocolError. */
export function* decodeWriteRequest(
  bytes: Uint8Array,
  limits: WriteLimits,
  memory?: LabelMemory,
): Generator<undefined, WriteRequest> {
  const reader = new MessageReader(bytes, limits.elements)
  const series: WrittenSeries[] = []
  const families = new Map<string, WrittenMetadata>()
  while (!reader.isAtEnd) {
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (wire !== BYTES) return false
        if (field === 1) series.push(readSeries(reader, memory))
        else if (field === 3) readFamily(reader, families)
        else if (field === 4 || field === 5)
          throw reader.bad('a field of version 2.0, which the content type does not name')
        else return false
        return true
      }),
    )
    if (reader.isStepOver) yield
  }
  return { series, families }
}

function readSeries(reader: MessageReader, memory: LabelMemory | undefined): WrittenSeries {
  const end = reader.messageEnd()
  const start = reader.offset
  const labelsEnd = memory === undefined ? start : reader.endOfRun(1, end)
  const known = labelsEnd > start ? memory?.find(reader.view, start, labelsEnd) : undefined
  if (known !== undefined) {
    const usual = usualSamples(reader, labelsEnd, end, known.elements)
    if (usual !== undefined) return seriesOf(known, known, usual, 0)
    const before = reader.left
    reader.skip(labelsEnd, known.elements)
    const rest = readRest(reader, end, before - reader.left)
    // Labels after the samples, which nobody sends, belong to the others.
    if (rest.labels.length > 0 || rest.name !== undefined) {
      reader.back(start)
      const { name = '', labels, samples, histograms } = readRest(reader, end)
      return seriesOf({ name, labels }, undefined, samples, histograms)
    }
    return seriesOf(known, known, rest.samples, rest.histograms)
  }
  const { name = '', labels, samples, histograms, labelsRead, elements } = readRest(reader, end)
  const read = { name, labels, elements }
  const isAlike = labelsEnd > start && labelsRead === labelsEnd && labels.length <= MOST_REMEMBERED
  const isRemembered = isAlike && memory?.add(reader.view, start, labelsEnd, read) === true
  return seriesOf(read, isRemembered ? read : undefined, samples, histograms)
}

/** What stands in a series from here to its end. */
interface Rest {
  /** Undefined if there is none. */
  name: string | undefined
  readonly labels: [string, string][]
  readonly samples: WrittenSample[]
  histograms: number
  /** Where the last label ends, and the elements that were read until then. */
  labelsRead: number
  elements: number
}

/** `before`: elements of the series that are read already. */
function readRest(reader: MessageReader, end: number, before = 0): Rest {
  const rest: Rest = { name: undefined, labels: [], samples: [], histograms: 0, labelsRead: 0, elements: 0 }
  const first = reader.left
  reader.restOfMessage(
    end,
    (field, wire) => {
      if (wire !== BYTES) return false
      if (field === 1) {
        const label = readLabel(reader)
        if (label[0] === METRIC_NAME && rest.name === undefined) rest.name = label[1]
        else rest.labels.push(label)
        rest.labelsRead = reader.offset
        rest.elements = first - reader.left
      } else if (field === 2) rest.samples.push(readSample(reader))
      else {
        if (field === 4) rest.histograms++
        return false
      }
      return true
    },
    before,
  )
  return rest
}

function seriesOf(
  { name, labels }: WrittenLabels,
  shared: ReadLabels | undefined,
  samples: readonly WrittenSample[],
  histograms: number,
): WrittenSeries {
  return { name, labels, shared, samples, histograms, metadata: undefined }
}

function readLabel(reader: MessageReader): [string, string] {
  const label: [string, string] = ['', '']
  reader.message((field, wire) => {
    if (wire !== BYTES || field < 1 || field > 2) return false
    label[field - 1] = reader.text()
    return true
  })
  return label
}

function readSample(reader: MessageReader): WrittenSample {
  let [value, time]: [number | undefined, number] = [0, 0]
  reader.message((field, wire) => {
    if (field === 1 && wire === FIXED64) value = readValue(reader)
    else if (field === 2 && wire === VARINT) time = reader.milliseconds() * MILLISECOND
    else return false
    return true
  })
  return { value, time }
}

function readValue(reader: MessageReader): number | undefined {
  return valueIn(reader.view, reader.eight())
}

function valueIn(view: DataView, at: number): number | undefined {
  const isStale = view.getUint32(at + 4, true) === STALE_NAN.high && view.getUint32(at, true) === STALE_NAN.low
  return isStale ? undefined : view.getFloat64(at, true)
}

/** Tags of a sample, of its value and of its time. */
const USUAL = { SAMPLE: 0x12, VALUE: 0x09, TIME: 0x10 } as const
const VALUE_BYTES = 8
const MORE = 0x80
/** Times of so many bytes need no BigInt. */
const TIME_BYTES = 7

/**
 * The samples from there to the end of a series, as all senders write them, read where they stand; so many elements of the series are
 * known. Undefined, and nothing is read, if there is anything else: `readRest` reads all there is.
 */
function usualSamples(reader: MessageReader, start: number, end: number, known: number): WrittenSample[] | undefined {
  const { view } = reader
  const samples: WrittenSample[] = []
  let elements = known
  let at = start
  while (at < end) {
    if (at + 2 > end || view.getUint8(at) !== USUAL.SAMPLE) return undefined
    const sampleEnd = at + 2 + view.getUint8(at + 1)
    if (view.getUint8(at + 1) >= MORE || sampleEnd > end) return undefined
    at += 2
    elements++
    let [value, time]: [number | undefined, number] = [0, 0]
    while (at < sampleEnd) {
      const tag = view.getUint8(at++)
      elements++
      if (tag === USUAL.VALUE && at + VALUE_BYTES <= sampleEnd) {
        value = valueIn(view, at)
        at += VALUE_BYTES
      } else if (tag === USUAL.TIME) {
        const first = at
        let [milliseconds, scale] = [0, 1]
        let byte = MORE
        for (; byte >= MORE && at < sampleEnd && at < first + TIME_BYTES; scale *= MORE) {
          byte = view.getUint8(at++)
          milliseconds += (byte & 0x7f) * scale
        }
        if (byte >= MORE) return undefined
        time = milliseconds * MILLISECOND
      } else return undefined
    }
    samples.push({ value, time })
  }
  if (elements > MAX_MESSAGE_ELEMENTS || elements > reader.left) return undefined
  reader.skip(end, elements)
  return samples
}

function readFamily(reader: MessageReader, families: Map<string, WrittenMetadata>): void {
  let [type, name, help, unit] = [0, '', '', '']
  reader.message((field, wire) => {
    if (field === 1 && wire === VARINT) type = reader.uint32()
    else if (wire !== BYTES) return false
    else if (field === 2) name = reader.text()
    else if (field === 4) help = reader.text()
    else if (field === 5) unit = reader.text()
    else return false
    return true
  })
  families.set(name, { type, help, unit })
}

/** A series whose labels are still references. */
interface ReferringSeries {
  readonly references: readonly number[]
  readonly samples: readonly WrittenSample[]
  readonly histograms: number
  readonly metadata: { readonly type: number; readonly help: number; readonly unit: number } | undefined
}

/** Reads a request of version 2.0, with places to pause between. Throws ProtocolError. */
export function* decodeWriteRequest2(bytes: Uint8Array, limits: WriteLimits): Generator<undefined, WriteRequest> {
  const reader = new MessageReader(bytes, limits.elements)
  const symbols: string[] = []
  const referring: ReferringSeries[] = []
  while (!reader.isAtEnd) {
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (wire !== BYTES) return false
        if (field === 4) symbols.push(reader.text())
        else if (field === 5) referring.push(readReferring(reader))
        else if (field === 1 || field === 3)
          throw reader.bad('a field of version 1.0, which the content type does not name')
        else return false
        return true
      }),
    )
    if (reader.isStepOver) yield
  }
  if (symbols.length > 0 && symbols[0] !== '') throw new ProtocolError('BAD_PROTOBUF', 'the first symbol is not empty')
  const series: WrittenSeries[] = []
  for (const each of referring) {
    series.push(resolve(each, symbols))
    if (series.length % SERIES_PER_STEP === 0) yield
  }
  return { series, families: new Map() }
}

function readReferring(reader: MessageReader): ReferringSeries {
  const references: number[] = []
  const samples: WrittenSample[] = []
  let histograms = 0
  let metadata: ReferringSeries['metadata']
  reader.message((field, wire) => {
    if (field === 1) {
      reader.repeated(wire, () => references.push(reader.uint32()))
      return true
    }
    if (wire !== BYTES) return false
    if (field === 2) samples.push(readSample(reader))
    else if (field === 5) metadata = readMetadata(reader)
    else {
      if (field === 3) histograms++
      return false
    }
    return true
  })
  return { references, samples, histograms, metadata }
}

function readMetadata(reader: MessageReader): NonNullable<ReferringSeries['metadata']> {
  const metadata = { type: 0, help: 0, unit: 0 }
  reader.message((field, wire: WireType) => {
    if (wire !== VARINT) return false
    if (field === 1) metadata.type = reader.uint32()
    else if (field === 3) metadata.help = reader.uint32()
    else if (field === 4) metadata.unit = reader.uint32()
    else return false
    return true
  })
  return metadata
}

function resolve(
  { references, samples, histograms, metadata }: ReferringSeries,
  symbols: readonly string[],
): WrittenSeries {
  let problem = references.length % 2 === 1 ? 'a label without its text' : undefined
  const symbol = (reference: number): string => {
    const text = symbols[reference] ?? (reference === 0 ? '' : undefined)
    if (text === undefined) problem ??= `there is no symbol ${reference}`
    return text ?? ''
  }
  const labels: [string, string][] = []
  let name: string | undefined
  for (let at = 0; at + 1 < references.length; at += 2) {
    const [label, text] = [symbol(references[at] as number), symbol(references[at + 1] as number)]
    if (label === METRIC_NAME && name === undefined) name = text
    else labels.push([label, text])
  }
  const described = metadata && { type: metadata.type, help: symbol(metadata.help), unit: symbol(metadata.unit) }
  const series = { name: name ?? '', labels, samples, histograms, metadata: described }
  return problem === undefined ? series : { ...series, problem }
}
