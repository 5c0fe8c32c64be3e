/**
 * ExportMetricsServiceRequest and its answer in protocol buffers (opentelemetry-proto 1.x: collector/metrics/v1, metrics/v1,
 * common/v1, resource/v1). Requests are read in steps, because one may have a hundred thousand points.
 */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { BYTES, FIXED64, MessageReader, Unfit, VARINT } from '../protobuf.ts'
import {
  type AnyValue,
  type Attribute,
  type Buckets,
  type ExponentialPoint,
  type HistogramPoint,
  MAX_ANY_DEPTH,
  MAX_POINT_ELEMENTS,
  type MetricData,
  NO_RECORDED_VALUE,
  type NumberPoint,
  type OtlpLimits,
  type OtlpMetric,
  POINT_TOO_LARGE,
  pointWeights,
  type ResourceMetrics,
  type ScopeMetrics,
  type SummaryPoint,
  VALUE_TOO_DEEP,
  withoutPoints,
} from './metrics.ts'

const TOO_LARGE = new Unfit(POINT_TOO_LARGE)
const TOO_DEEP = new Unfit(VALUE_TOO_DEEP)

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Reads a request, with places to pause between. Throws ProtocolError. */
export function* decodeMetrics(bytes: Uint8Array, limits: OtlpLimits): Generator<undefined, ResourceMetrics[]> {
  const reader = new MessageReader(bytes, limits.elements)
  const resources: ResourceMetrics[] = []
  while (!reader.isAtEnd) {
    let end = -1
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (field !== 1 || wire !== BYTES) return false
        end = reader.messageEnd()
        return true
      }),
    )
    if (end >= 0) resources.push(yield* resourceMetrics(reader, end))
    if (reader.isStepOver) yield
  }
  return resources
}

/** Reads the fields of a message up to its end; those that `begin` answers with the end of a message are read by `read`. */
function* inSteps(
  reader: MessageReader,
  end: number,
  take: (field: number, wire: WireType) => boolean,
  nested: number,
  read: (end: number) => Generator<undefined, void>,
): Generator<undefined, void> {
  while (reader.offset < end) {
    let nestedEnd = -1
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (field === nested && wire === BYTES) {
          nestedEnd = reader.messageEnd()
          return true
        }
        return take(field, wire)
      }),
    )
    if (nestedEnd >= 0) yield* read(nestedEnd)
    if (reader.isStepOver) yield
  }
  reader.endedAt(end)
}

function* resourceMetrics(reader: MessageReader, end: number): Generator<undefined, ResourceMetrics> {
  const attributes: Attribute[] = []
  const scopes: ScopeMetrics[] = []
  let problem: string | undefined
  const resource = (field: number, wire: WireType): boolean => {
    if (field !== 1 || wire !== BYTES) return false
    const found = problemIn(reader, (field, wire) => field === 1 && attribute(reader, wire, attributes))
    problem ??= found
    return true
  }
  yield* inSteps(reader, end, resource, 2, function* (end) {
    scopes.push(yield* scopeMetrics(reader, end))
  })
  if (problem === undefined) return { attributes, scopes }
  return { attributes, scopes: scopes.map((each) => ({ ...each, metrics: withoutPoints(each.metrics, problem) })) }
}

/** Reads a message whose attributes are those of many points; gives what is wrong in them, and the rest is passed over. */
function problemIn(reader: MessageReader, take: (field: number, wire: WireType) => boolean): string | undefined {
  const read = reader.within(Number.POSITIVE_INFINITY, TOO_LARGE, () => reader.message(take))
  return read instanceof Unfit ? read.problem : undefined
}

function* scopeMetrics(reader: MessageReader, end: number): Generator<undefined, ScopeMetrics> {
  const attributes: Attribute[] = []
  const metrics: OtlpMetric[] = []
  let [name, version] = ['', '']
  let problem: string | undefined
  const scope = (field: number, wire: WireType): boolean => {
    if (field !== 1 || wire !== BYTES) return false
    const found = problemIn(reader, (field, wire) => {
      if (wire !== BYTES) return false
      if (field === 1) name = reader.text()
      else if (field === 2) version = reader.text()
      else return field === 3 && attribute(reader, wire, attributes)
      return true
    })
    problem ??= found
    return true
  }
  yield* inSteps(reader, end, scope, 2, function* (end) {
    metrics.push(yield* metric(reader, end))
  })
  return { name, version, attributes, metrics: withoutPoints(metrics, problem) }
}

/** The kinds of data by their fields in Metric. */
const kinds: Readonly<Record<number, MetricData['kind']>> = {
  5: 'gauge',
  7: 'sum',
  9: 'histogram',
  10: 'exponential-histogram',
  11: 'summary',
}

function* metric(reader: MessageReader, end: number): Generator<undefined, OtlpMetric> {
  let [name, unit, description] = ['', '', '']
  let read: Pick<OtlpMetric, 'data' | 'unread'> = { data: undefined }
  while (reader.offset < end) {
    let kind: MetricData['kind'] | undefined
    let dataEnd = 0
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (wire !== BYTES) return false
        if (field === 1) name = reader.text()
        else if (field === 2) description = reader.text()
        else if (field === 3) unit = reader.text()
        else {
          kind = kinds[field]
          if (kind === undefined) return false
          dataEnd = reader.messageEnd()
        }
        return true
      }),
    )
    if (kind !== undefined) read = yield* dataOf(reader, kind, dataEnd)
    if (reader.isStepOver) yield
  }
  reader.endedAt(end)
  return { name, unit, description, ...read }
}

const pointReaders: Readonly<Record<MetricData['kind'], (reader: MessageReader) => object>> = {
  gauge: numberPoint,
  sum: numberPoint,
  histogram: histogramPoint,
  'exponential-histogram': exponentialPoint,
  summary: summaryPoint,
}

function* dataOf(
  reader: MessageReader,
  kind: MetricData['kind'],
  end: number,
): Generator<undefined, Pick<OtlpMetric, 'data' | 'unread'>> {
  const points: object[] = []
  let [temporality, isMonotonic] = [0, false]
  let unread: OtlpMetric['unread']
  const read = pointReaders[kind]
  while (reader.offset < end) {
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (field === 1 && wire === BYTES) {
          reader.weigh(pointWeights[kind])
          const point = reader.within(MAX_POINT_ELEMENTS, TOO_LARGE, () => read(reader))
          if (point instanceof Unfit)
            unread = { problem: unread?.problem ?? point.problem, points: (unread?.points ?? 0) + 1 }
          else points.push(point)
        } else if (field === 2 && wire === VARINT) temporality = reader.uint32()
        else if (field === 3 && wire === VARINT) isMonotonic = reader.bool()
        else return false
        return true
      }),
    )
    if (reader.isStepOver) yield
  }
  reader.endedAt(end)
  const extra = kind === 'sum' ? { isMonotonic } : {}
  const data = { kind, points, ...(kind !== 'gauge' && kind !== 'summary' && { temporality }), ...extra }
  return { data: data as unknown as MetricData, unread }
}

function numberPoint(reader: MessageReader): NumberPoint {
  const attributes: Attribute[] = []
  const point: Writable<NumberPoint> = { attributes, start: 0, time: 0, isEnd: false, value: undefined }
  reader.message((field, wire) => {
    if (wire === FIXED64) {
      if (field === 2) point.start = reader.microseconds()
      else if (field === 3) point.time = reader.microseconds()
      else if (field === 4) point.value = reader.double()
      else if (field === 6) point.value = reader.sfixed64()
      else return false
      return true
    }
    if (field === 7) return attribute(reader, wire, attributes)
    return field === 8 && flags(reader, wire, point)
  })
  return point
}

/*
 * Points of distributions are written out: an object that is spread into another one takes ten times as long, and a few bytes
 * make one of these.
 */
function histogramPoint(reader: MessageReader): HistogramPoint {
  const attributes: Attribute[] = []
  const counts: bigint[] = []
  const bounds: number[] = []
  const point: Writable<HistogramPoint> = {
    attributes,
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
    else if (field === 9) return attribute(reader, wire, attributes)
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

function exponentialPoint(reader: MessageReader): ExponentialPoint {
  const attributes: Attribute[] = []
  const point: Writable<ExponentialPoint> = {
    attributes,
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
    if (field === 1) return attribute(reader, wire, attributes)
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

function summaryPoint(reader: MessageReader): SummaryPoint {
  const attributes: Attribute[] = []
  const quantiles: { quantile: number; value: number }[] = []
  const point: Writable<SummaryPoint> = { attributes, start: 0, time: 0, isEnd: false, count: 0n, sum: 0, quantiles }
  reader.message((field, wire) => {
    if (field === 7) return attribute(reader, wire, attributes)
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

/** A KeyValue. */
function attribute(reader: MessageReader, wire: WireType, attributes: Attribute[], depth = 0): boolean {
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

/** ExportMetricsServiceResponse; with nothing rejected and nothing to say it is empty. */
export function encodeAnswer(rejected: number, message: string): Uint8Array {
  const writer = new BinaryWriter()
  if (rejected > 0 || message !== '') {
    writer.tag(1, WireType.LengthDelimited).fork()
    if (rejected > 0) writer.tag(1, WireType.Varint).int64(rejected)
    if (message !== '') writer.tag(2, WireType.LengthDelimited).string(message)
    writer.join()
  }
  return writer.finish()
}

/** google.rpc.Status: a code of gRPC, and a message for people. */
export function encodeStatus(code: number, message: string): Uint8Array {
  return new BinaryWriter()
    .tag(1, WireType.Varint)
    .int32(code)
    .tag(2, WireType.LengthDelimited)
    .string(message)
    .finish()
}
