/** Writes ExportMetricsServiceRequest in protocol buffers (opentelemetry-proto 1.x), and reads what its answer says. */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import { BYTES, MessageReader, nanoseconds, VARINT } from '../protobuf.ts'
import {
  type Buckets,
  type ExponentialPoint,
  type HistogramPoint,
  type MetricData,
  NO_RECORDED_VALUE,
  type NumberPoint,
  type Point,
  type SummaryPoint,
} from './metrics.ts'

/** A metric to be sent; the values of its attributes are texts. */
export interface OutgoingMetric {
  readonly name: string
  readonly unit: string
  readonly description: string
  readonly data: MetricData
}

const METRICS_PER_STEP = 64

/** A request with these metrics under one resource and one scope, both without a name; with places to pause. */
export function* encodeMetricsRequest(metrics: Iterable<OutgoingMetric>): Generator<undefined, Uint8Array> {
  const writer = new BinaryWriter()
  begin(begin(writer, 1), 2)
  let written = 0
  for (const metric of metrics) {
    writeMetric(writer, metric)
    if (++written % METRICS_PER_STEP === 0) yield
  }
  return writer.join().join().finish()
}

/** What an answer says was not taken. Throws ProtocolError if it cannot be read. */
export function decodeAnswer(body: Uint8Array): { readonly rejected: number; readonly message: string } {
  let [rejected, message] = [0, '']
  const reader = new MessageReader(body, 64)
  const partial = (): void =>
    reader.message((field, wire) => {
      if (field === 1 && wire === VARINT) rejected = Number(reader.int64())
      else if (field === 2 && wire === BYTES) message = reader.text()
      else return false
      return true
    })
  reader.attempt(() => {
    while (!reader.isAtEnd) {
      reader.field((field, wire) => {
        if (field !== 1 || wire !== BYTES) return false
        partial()
        return true
      })
    }
  })
  return { rejected, message }
}

function begin(writer: BinaryWriter, field: number): BinaryWriter {
  return writer.tag(field, WireType.LengthDelimited).fork()
}

function text(writer: BinaryWriter, field: number, value: string): void {
  if (value !== '') writer.tag(field, WireType.LengthDelimited).string(value)
}

function time(writer: BinaryWriter, field: number, microseconds: number): void {
  if (microseconds > 0) writer.tag(field, WireType.Bit64).fixed64(nanoseconds(microseconds))
}

function double(writer: BinaryWriter, field: number, value: number | undefined): void {
  if (value !== undefined) writer.tag(field, WireType.Bit64).double(value)
}

function count(writer: BinaryWriter, field: number, value: bigint): void {
  writer.tag(field, WireType.Bit64).fixed64(value)
}

function writeMetric(writer: BinaryWriter, { name, unit, description, data }: OutgoingMetric): void {
  begin(writer, 2)
  text(writer, 1, name)
  text(writer, 2, description)
  text(writer, 3, unit)
  begin(writer, fields[data.kind])
  writeData(writer, data)
  writer.join().join()
}

const fields = { gauge: 5, sum: 7, histogram: 9, 'exponential-histogram': 10, summary: 11 } as const

function writeData(writer: BinaryWriter, data: MetricData): void {
  switch (data.kind) {
    case 'gauge':
    case 'sum':
      for (const point of data.points) writeNumber(writer, point)
      break
    case 'histogram':
      for (const point of data.points) writeHistogram(writer, point)
      break
    case 'exponential-histogram':
      for (const point of data.points) writeExponential(writer, point)
      break
    case 'summary':
      for (const point of data.points) writeSummary(writer, point)
  }
  if ('temporality' in data) writer.tag(2, WireType.Varint).int32(data.temporality)
  if (data.kind === 'sum') writer.tag(3, WireType.Varint).bool(data.isMonotonic)
}

function writeAttributes(writer: BinaryWriter, field: number, { attributes }: Point): void {
  for (const { key, value } of attributes) {
    begin(writer, field)
    writer.tag(1, WireType.LengthDelimited).string(key)
    begin(writer, 2)
    writer.tag(1, WireType.LengthDelimited).string(String(value))
    writer.join().join()
  }
}

function flags(writer: BinaryWriter, field: number, { isEnd }: Point): void {
  if (isEnd) writer.tag(field, WireType.Varint).uint32(NO_RECORDED_VALUE)
}

function writeNumber(writer: BinaryWriter, point: NumberPoint): void {
  begin(writer, 1)
  time(writer, 2, point.start)
  time(writer, 3, point.time)
  const { value } = point
  if (typeof value === 'bigint') writer.tag(6, WireType.Bit64).sfixed64(value)
  else double(writer, 4, value)
  writeAttributes(writer, 7, point)
  flags(writer, 8, point)
  writer.join()
}

function writeHistogram(writer: BinaryWriter, point: HistogramPoint): void {
  begin(writer, 1)
  time(writer, 2, point.start)
  time(writer, 3, point.time)
  count(writer, 4, point.count)
  double(writer, 5, point.sum)
  begin(writer, 6)
  for (const each of point.counts) writer.fixed64(each)
  writer.join()
  begin(writer, 7)
  for (const bound of point.bounds) writer.double(bound)
  writer.join()
  writeAttributes(writer, 9, point)
  flags(writer, 10, point)
  double(writer, 11, point.min)
  double(writer, 12, point.max)
  writer.join()
}

function writeExponential(writer: BinaryWriter, point: ExponentialPoint): void {
  begin(writer, 1)
  writeAttributes(writer, 1, point)
  time(writer, 2, point.start)
  time(writer, 3, point.time)
  count(writer, 4, point.count)
  double(writer, 5, point.sum)
  writer.tag(6, WireType.Varint).sint32(point.scale)
  count(writer, 7, point.zeroCount)
  writeBuckets(writer, 8, point.positive)
  writeBuckets(writer, 9, point.negative)
  flags(writer, 10, point)
  double(writer, 12, point.min)
  double(writer, 13, point.max)
  double(writer, 14, point.zeroThreshold)
  writer.join()
}

function writeBuckets(writer: BinaryWriter, field: number, { offset, counts }: Buckets): void {
  begin(writer, field)
  writer.tag(1, WireType.Varint).sint32(offset)
  begin(writer, 2)
  for (const each of counts) writer.uint64(each)
  writer.join().join()
}

function writeSummary(writer: BinaryWriter, point: SummaryPoint): void {
  begin(writer, 1)
  time(writer, 2, point.start)
  time(writer, 3, point.time)
  count(writer, 4, point.count)
  double(writer, 5, point.sum)
  for (const { quantile, value } of point.quantiles) {
    begin(writer, 6)
    double(writer, 1, quantile)
    double(writer, 2, value)
    writer.join()
  }
  writeAttributes(writer, 7, point)
  flags(writer, 8, point)
  writer.join()
}
