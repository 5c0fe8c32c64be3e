/**
 * ExportMetricsServiceRequest and its answer in protocol buffers (opentelemetry-proto 1.x: collector/metrics/v1, metrics/v1,
 * common/v1, resource/v1). Requests are read in steps, because one may have a hundred thousand points.
 */
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import type { Context } from '../bytes/byte-memory.ts'
import { BYTES, MessageReader, Unfit, VARINT } from '../protobuf.ts'
import {
  type Attribute,
  MAX_POINT_ELEMENTS,
  type MetricData,
  type OtlpLimits,
  type OtlpMetric,
  POINT_TOO_LARGE,
  type Point,
  pointWeights,
  type ResourceMetrics,
  type ScopeMetrics,
  withoutPoints,
} from './metrics.ts'
import { type AttributeMemory, attribute, type KnownAttributes, pointReaders } from './points.ts'
import { usualPoint } from './usual-points.ts'

/** Each byte is a character of its own. */
const oneByOne = new TextDecoder('latin1')
const TOO_LARGE = new Unfit(POINT_TOO_LARGE)

/** Reads a request, with places to pause between. Throws ProtocolError. */
export function* decodeMetrics(
  bytes: Uint8Array,
  limits: OtlpLimits,
  memory?: AttributeMemory,
): Generator<undefined, ResourceMetrics[]> {
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
    if (end >= 0) resources.push(yield* resourceMetrics(reader, end, memory))
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

function* resourceMetrics(
  reader: MessageReader,
  end: number,
  memory: AttributeMemory | undefined,
): Generator<undefined, ResourceMetrics> {
  const attributes: Attribute[] = []
  const scopes: ScopeMetrics[] = []
  let problem: string | undefined
  const outer = new Outer(reader, memory)
  const resource = (field: number, wire: WireType): boolean => {
    if (field !== 1 || wire !== BYTES) return false
    const start = reader.offset
    const found = problemIn(reader, (field, wire) => field === 1 && attribute(reader, wire, attributes))
    outer.resource(start)
    for (const scope of scopes) for (const { data } of scope.metrics) forgetShared(data)
    problem ??= found
    return true
  }
  yield* inSteps(reader, end, resource, 2, function* (end) {
    scopes.push(yield* scopeMetrics(reader, end, outer))
  })
  if (problem === undefined) return { attributes, scopes }
  return { attributes, scopes: scopes.map((each) => ({ ...each, metrics: withoutPoints(each.metrics, problem) })) }
}

/** Reads a message whose attributes are those of many points; gives what is wrong in them, and the rest is passed over. */
function problemIn(reader: MessageReader, take: (field: number, wire: WireType) => boolean): string | undefined {
  const read = reader.within(Number.POSITIVE_INFINITY, TOO_LARGE, () => reader.message(take))
  return read instanceof Unfit ? read.problem : undefined
}

/** Where attributes of points stand: their resource and scope, as far as these have been read, and their metric. */
class Outer {
  readonly #reader: MessageReader
  readonly #memory: AttributeMemory | undefined
  #resource = ''
  #scope = ''
  #context: Context | undefined

  constructor(reader: MessageReader, memory: AttributeMemory | undefined) {
    this.#reader = reader
    this.#memory = memory
  }

  /** What was read from `start` on belongs to the resource. */
  resource(start: number): void {
    this.#resource += this.#textFrom(start)
    this.#context = undefined
  }

  beginScope(): void {
    this.#scope = ''
    this.#context = undefined
  }

  scope(start: number): void {
    this.#scope += this.#textFrom(start)
    this.#context = undefined
  }

  metric(name: string): KnownAttributes | undefined {
    const memory = this.#memory
    if (memory === undefined) return undefined
    this.#context ??= memory.within(`${this.#resource.length} ${this.#resource}${this.#scope}`)
    return { memory, context: memory.within(name, this.#context) }
  }

  #textFrom(start: number): string {
    if (this.#memory === undefined) return ''
    const { buffer, byteOffset } = this.#reader.view
    return oneByOne.decode(new Uint8Array(buffer, byteOffset + start, this.#reader.offset - start))
  }
}

/** Points before which not all was read that their series depends on: what was found for them may be that of another. */
function forgetShared(data: MetricData | undefined): void {
  for (const point of data?.points ?? []) (point as { shared: Point['shared'] }).shared = undefined
}

function* scopeMetrics(reader: MessageReader, end: number, outer: Outer): Generator<undefined, ScopeMetrics> {
  const attributes: Attribute[] = []
  const metrics: OtlpMetric[] = []
  let [name, version] = ['', '']
  let problem: string | undefined
  outer.beginScope()
  const scope = (field: number, wire: WireType): boolean => {
    if (field !== 1 || wire !== BYTES) return false
    const start = reader.offset
    const found = problemIn(reader, (field, wire) => {
      if (wire !== BYTES) return false
      if (field === 1) name = reader.text()
      else if (field === 2) version = reader.text()
      else return field === 3 && attribute(reader, wire, attributes)
      return true
    })
    outer.scope(start)
    for (const { data } of metrics) forgetShared(data)
    problem ??= found
    return true
  }
  yield* inSteps(reader, end, scope, 2, function* (end) {
    metrics.push(yield* metric(reader, end, outer))
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

function* metric(reader: MessageReader, end: number, outer: Outer): Generator<undefined, OtlpMetric> {
  let [name, unit, description] = ['', '', '']
  let read: Pick<OtlpMetric, 'data' | 'unread'> = { data: undefined }
  while (reader.offset < end) {
    let kind: MetricData['kind'] | undefined
    let dataEnd = 0
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (wire !== BYTES) return false
        if (field === 1) {
          name = reader.text()
          forgetShared(read.data)
        } else if (field === 2) description = reader.text()
        else if (field === 3) unit = reader.text()
        else {
          kind = kinds[field]
          if (kind === undefined) return false
          dataEnd = reader.messageEnd()
        }
        return true
      }),
    )
    if (kind !== undefined) read = yield* dataOf(reader, kind, dataEnd, outer.metric(name))
    if (reader.isStepOver) yield
  }
  reader.endedAt(end)
  return { name, unit, description, ...read }
}

function* dataOf(
  reader: MessageReader,
  kind: MetricData['kind'],
  end: number,
  known: KnownAttributes | undefined,
): Generator<undefined, Pick<OtlpMetric, 'data' | 'unread'>> {
  const points: object[] = []
  let [temporality, isMonotonic] = [0, false]
  let unread: OtlpMetric['unread']
  const read = pointReaders[kind]
  while (reader.offset < end) {
    const usual = known && usualPoint(reader, kind, end, known)
    if (usual !== undefined) {
      points.push(usual)
      if (reader.isStepOver) yield
      continue
    }
    reader.attempt(() =>
      reader.field((field, wire) => {
        if (field === 1 && wire === BYTES) {
          reader.weigh(pointWeights[kind])
          const point = reader.within(MAX_POINT_ELEMENTS, TOO_LARGE, () => read(reader, known))
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
