/** Points and their attributes in protocol buffers (opentelemetry-proto 1.x: metrics/v1, common/v1). */
import type { WireType } from '@bufbuild/protobuf/wire'
import type { ByteMemory, Context } from '../bytes/byte-memory.ts'
import { BYTES, FIXED64, type MessageReader, Unfit, VARINT } from '../protobuf.ts'
import {
  type AnyValue,
  type Attribute,
  type Buckets,
  type ExponentialPoint,
  type HistogramPoint,
  MAX_ANY_DEPTH,
  type MetricData,
  NO_RECORDED_VALUE,
  type NumberPoint,
  type ReadAttributes,
  type SummaryPoint,
  VALUE_TOO_DEEP,
} from './metrics.ts'

/** Attributes of points by the bytes that they have, in the context of their resource, scope and metric. */
export type AttributeMemory = ByteMemory<ReadAttributes>

/** What is remembered of one metric. */
export interface KnownAttributes {
  readonly memory: AttributeMemory
  readonly context: Context
}

const TOO_DEEP = new Unfit(VALUE_TOO_DEEP)

type Writable<T> = { -readonly [K in keyof T]: T[K] } & { attributes: Attribute[] }

type ReadPoint = (reader: MessageReader, known: KnownAttributes | undefined) => object

export const pointReaders: Readonly<Record<MetricData['kind'], ReadPoint>> = {
  gauge: numberPoint,
  sum: numberPoint,
  histogram: histogramPoint,
  'exponential-histogram': exponentialPoint,
  summary: summaryPoint,
}

function numberPoint(reader: MessageReader, known: KnownAttributes | undefined): NumberPoint {
  const point: Writable<NumberPoint> = {
    attributes: [],
    shared: undefined,
    start: 0,
    time: 0,
    isEnd: false,
    value: undefined,
  }
  reader.message((field, wire) => {
    if (wire === FIXED64) {
      if (field === 2) point.start = reader.microseconds()
      else if (field === 3) point.time = reader.microseconds()
      else if (field === 4) point.value = reader.double()
      else if (field === 6) point.value = reader.sfixed64()
      else return false
      return true
    }
    if (field === 7) return attributesOf(reader, 7, wire, point, known)
    return field === 8 && flags(reader, wire, point)
  })
  return point
}

/*
 * Points of distributions are written out: an object that is spread into another one takes ten times as long, and a few bytes
 * make one of these.
 */
function histogramPoint(reader: MessageReader, known: KnownAttributes | undefined): HistogramPoint {
  const counts: bigint[] = []
  const bounds: number[] = []
  const point: Writable<HistogramPoint> = {
    attributes: [],
    shared: undefined,
    start: 0,
    time: 0,
    isEnd: false,
    count: 0n,
    sum: undefined,
    min: undefined,
    max: undefined,
    counts,
    bounds,
  }
  reader.message((field, wire) => {
    if (field === 6) reader.repeated(wire, () => counts.push(reader.fixed64()))
    else if (field === 7) reader.repeated(wire, () => bounds.push(reader.double()))
    else if (field === 9) return attributesOf(reader, 9, wire, point, known)
    else if (field === 10) return flags(reader, wire, point)
    else if (wire !== FIXED64) return false
    else if (field === 11) point.min = reader.double()
    else if (field === 12) point.max = reader.double()
    else return distribution(reader, field, point)
    return true
  })
  return point
}

const NO_BUCKETS: Buckets = { offset: 0, counts: [] }

function exponentialPoint(reader: MessageReader, known: KnownAttributes | undefined): ExponentialPoint {
  const point: Writable<ExponentialPoint> = {
    attributes: [],
    shared: undefined,
    start: 0,
    time: 0,
    isEnd: false,
    count: 0n,
    sum: undefined,
    min: undefined,
    max: undefined,
    scale: 0,
    zeroCount: 0n,
    zeroThreshold: 0,
    positive: NO_BUCKETS,
    negative: NO_BUCKETS,
  }
  reader.message((field, wire) => {
    if (field === 1) return attributesOf(reader, 1, wire, point, known)
    if (field === 10) return flags(reader, wire, point)
    if (field === 6 && wire === VARINT) point.scale = reader.sint32()
    else if (field === 8 && wire === BYTES) point.positive = buckets(reader)
    else if (field === 9 && wire === BYTES) point.negative = buckets(reader)
    else if (wire !== FIXED64) return false
    else if (field === 7) point.zeroCount = reader.fixed64()
    else if (field === 12) point.min = reader.double()
    else if (field === 13) point.max = reader.double()
    else if (field === 14) point.zeroThreshold = reader.double()
    else return distribution(reader, field, point)
    return true
  })
  return point
}

function buckets(reader: MessageReader): Buckets {
  const counts: bigint[] = []
  let offset = 0
  reader.message((field, wire) => {
    if (field === 1 && wire === VARINT) offset = reader.sint32()
    else if (field === 2) reader.repeated(wire, () => counts.push(reader.uint64()))
    else return false
    return true
  })
  return { offset, counts }
}

function summaryPoint(reader: MessageReader, known: KnownAttributes | undefined): SummaryPoint {
  const quantiles: { quantile: number; value: number }[] = []
  const point: Writable<SummaryPoint> = {
    attributes: [],
    shared: undefined,
    start: 0,
    time: 0,
    isEnd: false,
    count: 0n,
    sum: 0,
    quantiles,
  }
  reader.message((field, wire) => {
    if (field === 7) return attributesOf(reader, 7, wire, point, known)
    if (field === 8) return flags(reader, wire, point)
    if (field === 6 && wire === BYTES) {
      const entry = { quantile: 0, value: 0 }
      reader.message((field, wire) => {
        if (wire !== FIXED64 || field < 1 || field > 2) return false
        if (field === 1) entry.quantile = reader.double()
        else entry.value = reader.double()
        return true
      })
      quantiles.push(entry)
      return true
    }
    return wire === FIXED64 && distribution(reader, field, point)
  })
  return point
}

/** The fields that all distributions have under the same numbers. */
function distribution(
  reader: MessageReader,
  field: number,
  point: { start: number; time: number; count: bigint; sum: number | undefined },
): boolean {
  if (field === 2) point.start = reader.microseconds()
  else if (field === 3) point.time = reader.microseconds()
  else if (field === 4) point.count = reader.fixed64()
  else if (field === 5) point.sum = reader.double()
  else return false
  return true
}

function flags(reader: MessageReader, wire: WireType, point: { isEnd: boolean }): boolean {
  if (wire !== VARINT) return false
  point.isEnd = (reader.uint32() & NO_RECORDED_VALUE) !== 0
  return true
}

interface PointAttributes {
  attributes: Attribute[]
  shared?: ReadAttributes | undefined
}

/** The attributes of a point from one on, whose tag was read. They follow each other, unless somebody sends them otherwise. */
function attributesOf(
  reader: MessageReader,
  field: number,
  wire: WireType,
  point: PointAttributes,
  known: KnownAttributes | undefined,
): boolean {
  if (wire !== BYTES) return false
  const start = reader.offset
  const end = known === undefined || point.attributes.length > 0 ? start : reader.endOfRunBegun(field)
  if (known === undefined || end <= start) {
    if (point.shared !== undefined) point.attributes = [...point.attributes]
    point.shared = undefined
    return attribute(reader, wire, point.attributes)
  }
  const { memory, context } = known
  const found = memory.find(reader.view, start, end, context)
  if (found !== undefined) {
    reader.skip(end, found.elements)
    point.attributes = found.attributes as Attribute[]
    point.shared = found
    return true
  }
  const before = reader.left
  const attributes: Attribute[] = []
  attribute(reader, wire, attributes)
  while (reader.offset < end) reader.field((_, wire) => attribute(reader, wire, attributes))
  const shared = { attributes, elements: before - reader.left }
  // Their texts stay with them.
  const isKept = memory.add(reader.view, start, end, shared, { context, weight: 2 * (end - start) })
  point.attributes = attributes
  point.shared = isKept ? shared : undefined
  return true
}

/** A KeyValue. */
export function attribute(reader: MessageReader, wire: WireType, attributes: Attribute[], depth = 0): boolean {
  if (wire !== BYTES) return false
  let key = ''
  let value: AnyValue
  reader.message((field, wire) => {
    if (wire !== BYTES) return false
    if (field === 1) key = reader.text()
    else if (field === 2) value = anyValue(reader, depth)
    else return false
    return true
  })
  attributes.push({ key, value })
  return true
}

function anyValue(reader: MessageReader, depth: number): AnyValue {
  if (depth >= MAX_ANY_DEPTH) throw TOO_DEEP
  let value: AnyValue
  reader.message((field, wire) => {
    if (field === 1 && wire === BYTES) value = reader.text()
    else if (field === 2 && wire === VARINT) value = reader.bool()
    else if (field === 3 && wire === VARINT) value = reader.int64()
    else if (field === 4 && wire === FIXED64) value = reader.double()
    else if (field === 5 && wire === BYTES) value = arrayValue(reader, depth + 1)
    else if (field === 6 && wire === BYTES) value = { entries: entriesOf(reader, depth + 1) }
    else if (field === 7 && wire === BYTES) value = reader.bytes()
    else return false
    return true
  })
  return value
}

function arrayValue(reader: MessageReader, depth: number): AnyValue[] {
  const values: AnyValue[] = []
  reader.message((field, wire) => {
    if (field !== 1 || wire !== BYTES) return false
    values.push(anyValue(reader, depth))
    return true
  })
  return values
}

function entriesOf(reader: MessageReader, depth: number): Attribute[] {
  const entries: Attribute[] = []
  reader.message((field, wire) => field === 1 && attribute(reader, wire, entries, depth))
  return entries
}
