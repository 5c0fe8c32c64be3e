/**
 * The same in JSON (OTLP specification, "JSON Protobuf Encoding"): keys in lowerCamelCase, integers of 64 bits as texts or
 * numbers, enumerations as numbers, unknown keys ignored. It is parsed as a whole: whoever reads bounds its length.
 */
import { fromBase64 } from '../bytes/base64.ts'
import { ProtocolError } from '../errors.ts'
import {
  type AnyValue,
  type Attribute,
  type Buckets,
  MAX_ANY_DEPTH,
  type MetricData,
  NO_RECORDED_VALUE,
  type OtlpLimits,
  type OtlpMetric,
  pointWeights,
  type ResourceMetrics,
} from './metrics.ts'

type JsonObject = Readonly<Record<string, unknown>>

/** What is converted in one step, in elements of lists. */
const ELEMENTS_PER_STEP = 256

/** Reads a request, with places to pause between. Throws ProtocolError. */
export function* metricsFromJson(text: string, limits: OtlpLimits): Generator<undefined, ResourceMetrics[]> {
  const converter = new Converter(limits.elements)
  const resources: ResourceMetrics[] = []
  for (const resource of converter.objects(parse(text), 'resourceMetrics')) {
    const scopes: ResourceMetrics['scopes'][number][] = []
    for (const scope of converter.objects(resource, 'scopeMetrics')) {
      const metrics: OtlpMetric[] = []
      for (const metric of converter.objects(scope, 'metrics')) {
        metrics.push(yield* converter.metric(metric))
        if (converter.isStepOver) yield
      }
      const about = converter.object(scope['scope'], 'scope')
      const [name, version] = [converter.text(about, 'name'), converter.text(about, 'version')]
      scopes.push({ name, version, attributes: converter.attributes(about), metrics })
      if (converter.isStepOver) yield
    }
    resources.push({ attributes: converter.attributes(converter.object(resource['resource'], 'resource')), scopes })
    if (converter.isStepOver) yield
  }
  return resources
}

function parse(text: string): JsonObject {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new ProtocolError('BAD_JSON', error instanceof Error ? error.message : String(error))
  }
  if (!isObject(value)) throw bad('the request', 'an object')
  return value
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function bad(what: string, expected: string): ProtocolError {
  return new ProtocolError('BAD_JSON', `${what}: ${expected} was expected`)
}

const NOTHING: JsonObject = {}
const NANOSECONDS = 1_000
const MAX_UINT32 = 2 ** 32 - 1

/** The keys of the kinds of data. */
const kinds = {
  gauge: 'gauge',
  sum: 'sum',
  histogram: 'histogram',
  exponentialHistogram: 'exponential-histogram',
  summary: 'summary',
} as const satisfies Record<string, MetricData['kind']>

class Converter {
  #left: number
  /** What was begun since the last step, list by list; the objects of one count when they are converted. */
  #sinceStep = 0

  constructor(mostElements: number) {
    this.#left = mostElements
  }

  /** True now and then, when enough was converted since the last time: a place to pause. */
  get isStepOver(): boolean {
    if (++this.#sinceStep < ELEMENTS_PER_STEP) return false
    this.#sinceStep = 0
    return true
  }

  /** An object that may be left out. */
  object(value: unknown, what: string): JsonObject {
    if (value === undefined || value === null) return NOTHING
    if (!isObject(value)) throw bad(what, 'an object')
    return value
  }

  list(of: JsonObject, key: string): readonly unknown[] {
    const value = of[key]
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) throw bad(key, 'a list')
    this.#weigh(value.length)
    this.#sinceStep += value.length
    return value
  }

  /** Counts elements before anything is made of them. */
  #weigh(elements: number): void {
    this.#left -= elements
    if (this.#left < 0) throw new ProtocolError('BAD_COUNT', 'too many elements in one request')
  }

  *objects(of: JsonObject, key: string): Generator<JsonObject> {
    for (const value of this.list(of, key)) {
      if (!isObject(value)) throw bad(key, 'a list of objects')
      yield value
    }
  }

  text(of: JsonObject, key: string): string {
    const value = of[key] ?? ''
    if (typeof value !== 'string' || !value.isWellFormed()) throw bad(key, 'a text')
    return value
  }

  *metric(of: JsonObject): Generator<undefined, OtlpMetric> {
    const [name, unit, description] = [this.text(of, 'name'), this.text(of, 'unit'), this.text(of, 'description')]
    const key = (Object.keys(kinds) as (keyof typeof kinds)[]).find((each) => isObject(of[each]))
    return { name, unit, description, data: key && (yield* this.#data(kinds[key], of[key] as JsonObject)) }
  }

  *#data(kind: MetricData['kind'], of: JsonObject): Generator<undefined, MetricData> {
    const temporality = this.#int32(of, 'aggregationTemporality')
    switch (kind) {
      case 'gauge':
        return { kind, points: yield* this.#points(kind, of, (point) => this.#number(point)) }
      case 'sum': {
        const isMonotonic = of['isMonotonic'] === true
        return { kind, temporality, isMonotonic, points: yield* this.#points(kind, of, (point) => this.#number(point)) }
      }
      case 'histogram':
        return { kind, temporality, points: yield* this.#points(kind, of, (point) => this.#histogram(point)) }
      case 'exponential-histogram':
        return { kind, temporality, points: yield* this.#points(kind, of, (point) => this.#exponential(point)) }
      case 'summary':
        return { kind, points: yield* this.#points(kind, of, (point) => this.#summary(point)) }
    }
  }

  *#points<P>(
    kind: MetricData['kind'],
    of: JsonObject,
    convert: (point: JsonObject) => P,
  ): Generator<undefined, readonly P[]> {
    const points: P[] = []
    const weight = pointWeights[kind]
    const given = this.list(of, 'dataPoints')
    this.#weigh(weight * given.length)
    // None of them has been converted yet.
    this.#sinceStep -= given.length
    for (const point of given) {
      if (!isObject(point)) throw bad('dataPoints', 'a list of objects')
      points.push(convert(point))
      this.#sinceStep += weight
      if (this.isStepOver) yield
    }
    return points
  }

  #histogram(point: JsonObject) {
    return {
      ...this.#distribution(point),
      counts: this.#counts(point, 'bucketCounts'),
      bounds: this.list(point, 'explicitBounds').map((bound) => doubleOf(bound, 'explicitBounds')),
    }
  }

  #exponential(point: JsonObject) {
    return {
      ...this.#distribution(point),
      scale: this.#int32(point, 'scale'),
      zeroCount: uint64Of(point['zeroCount'] ?? 0, 'zeroCount'),
      zeroThreshold: doubleOf(point['zeroThreshold'] ?? 0, 'zeroThreshold'),
      positive: this.#buckets(point, 'positive'),
      negative: this.#buckets(point, 'negative'),
    }
  }

  #summary(point: JsonObject) {
    const { min: _, max: __, sum, ...rest } = this.#distribution(point)
    const quantiles = [...this.objects(point, 'quantileValues')].map((entry) => ({
      quantile: doubleOf(entry['quantile'] ?? 0, 'quantile'),
      value: doubleOf(entry['value'] ?? 0, 'value'),
    }))
    return { ...rest, sum: sum ?? 0, quantiles }
  }

  #number(of: JsonObject) {
    const { asInt, asDouble } = of
    const value = asInt !== undefined ? int64Of(asInt, 'asInt') : optionalDouble(asDouble, 'asDouble')
    return { ...this.#point(of), value }
  }

  #distribution(of: JsonObject) {
    return {
      ...this.#point(of),
      count: uint64Of(of['count'] ?? 0, 'count'),
      sum: optionalDouble(of['sum'], 'sum'),
      min: optionalDouble(of['min'], 'min'),
      max: optionalDouble(of['max'], 'max'),
    }
  }

  #point(of: JsonObject) {
    return {
      attributes: this.attributes(of),
      start: timeOf(of['startTimeUnixNano'] ?? 0, 'startTimeUnixNano'),
      time: timeOf(of['timeUnixNano'] ?? 0, 'timeUnixNano'),
      isEnd: (this.#integer(of, 'flags', 0, MAX_UINT32) & NO_RECORDED_VALUE) !== 0,
    }
  }

  #buckets(of: JsonObject, key: string): Buckets {
    const buckets = this.object(of[key], key)
    return { offset: this.#int32(buckets, 'offset'), counts: this.#counts(buckets, 'bucketCounts') }
  }

  #counts(of: JsonObject, key: string): bigint[] {
    return this.list(of, key).map((count) => uint64Of(count, key))
  }

  #int32(of: JsonObject, key: string): number {
    return this.#integer(of, key, -(2 ** 31), 2 ** 31 - 1)
  }

  #integer(of: JsonObject, key: string, least: number, most: number): number {
    const value = of[key] ?? 0
    if (!Number.isInteger(value) || Number(value) < least || Number(value) > most) {
      throw bad(key, `an integer from ${least} to ${most}`)
    }
    return Number(value)
  }

  attributes(of: JsonObject): Attribute[] {
    return this.#entries(of, 'attributes', 0)
  }

  #entries(of: JsonObject, key: string, depth: number): Attribute[] {
    return [...this.objects(of, key)].map((entry) => {
      return { key: this.text(entry, 'key'), value: this.#any(this.object(entry['value'], 'value'), depth) }
    })
  }

  #any(of: JsonObject, depth: number): AnyValue {
    if (depth >= MAX_ANY_DEPTH) throw new ProtocolError('TOO_DEEP', `values nest deeper than ${MAX_ANY_DEPTH}`)
    if (of['stringValue'] !== undefined) return this.text(of, 'stringValue')
    if (of['boolValue'] !== undefined) return of['boolValue'] === true
    if (of['intValue'] !== undefined) return int64Of(of['intValue'], 'intValue')
    if (of['doubleValue'] !== undefined) return doubleOf(of['doubleValue'], 'doubleValue')
    if (of['arrayValue'] !== undefined) {
      return [...this.objects(this.object(of['arrayValue'], 'arrayValue'), 'values')].map((each) =>
        this.#any(each, depth + 1),
      )
    }
    if (of['kvlistValue'] !== undefined) {
      return { entries: this.#entries(this.object(of['kvlistValue'], 'kvlistValue'), 'values', depth + 1) }
    }
    if (of['bytesValue'] === undefined) return undefined
    const bytes = fromBase64(this.text(of, 'bytesValue'))
    if (bytes === undefined) throw bad('bytesValue', 'base64')
    return bytes
  }
}

/** Beyond 2^53 a number of JSON is no longer exact; its sender should have written a text. */
function bigintOf(value: unknown, what: string): bigint {
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value)
  if (typeof value === 'string' && /^-?\d{1,20}$/.test(value)) return BigInt(value)
  throw bad(what, 'an integer')
}

function int64Of(value: unknown, what: string): bigint {
  const integer = bigintOf(value, what)
  if (BigInt.asIntN(64, integer) !== integer) throw bad(what, 'an integer of 64 bits')
  return integer
}

function uint64Of(value: unknown, what: string): bigint {
  const integer = bigintOf(value, what)
  if (BigInt.asUintN(64, integer) !== integer) throw bad(what, 'an integer of 64 bits from 0 on')
  return integer
}

function timeOf(value: unknown, what: string): number {
  const nanoseconds = typeof value === 'number' && Number.isFinite(value) ? Math.floor(value) : value
  return Number(uint64Of(nanoseconds, what) / BigInt(NANOSECONDS))
}

function optionalDouble(value: unknown, what: string): number | undefined {
  return value === undefined || value === null ? undefined : doubleOf(value, what)
}

function doubleOf(value: unknown, what: string): number {
  if (typeof value === 'number') return value
  if (typeof value === 'string' && /^(NaN|-?Infinity|-?\d+(\.\d+)?([eE][+-]?\d+)?)$/.test(value)) return Number(value)
  throw bad(what, 'a number')
}

/** ExportMetricsServiceResponse; with nothing rejected and nothing to say it is empty. */
export function answerAsJson(rejected: number, message: string): string {
  if (rejected === 0 && message === '') return '{}'
  const partialSuccess = { ...(rejected > 0 && { rejectedDataPoints: String(rejected) }), errorMessage: message }
  return JSON.stringify({ partialSuccess })
}

/** google.rpc.Status. */
export function statusAsJson(code: number, message: string): string {
  return JSON.stringify({ code, message })
}
