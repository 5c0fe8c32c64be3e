/**
 * The same in JSON (OTLP specification, "JSON Protobuf Encoding"): keys in lowerCamelCase, integers of 64 bits as texts or
 * numbers, enumerations as numbers, unknown keys ignored. As the Collector does, it also takes keys in snake_case, the names of
 * enumerations, and whatever else the JSON mapping of protocol buffers lets readers take. A point with something in it, or in the
 * attributes around it, that is not what it has to be, such as an integer out of its range or a value that nests too deep, is
 * left out; anywhere else that ends the request. It is parsed as a whole: whoever reads bounds its length.
 */
import { fromBase64 } from '../bytes/base64.ts'
import { ProtocolError } from '../errors.ts'
import {
  type AnyValue,
  type Attribute,
  type Buckets,
  MAX_ANY_DEPTH,
  MAX_POINT_ELEMENTS,
  type MetricData,
  NO_RECORDED_VALUE,
  type OtlpLimits,
  type OtlpMetric,
  POINT_TOO_LARGE,
  pointWeights,
  type ResourceMetrics,
  Temporality,
  type Unread,
  VALUE_TOO_DEEP,
  withoutPoints,
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
      const { attributes, problem } = converter.outerAttributes(about)
      scopes.push({ name, version, attributes, metrics: withoutPoints(metrics, problem) })
      if (converter.isStepOver) yield
    }
    const { attributes, problem } = converter.outerAttributes(converter.object(resource['resource'], 'resource'))
    resources.push({
      attributes,
      scopes: scopes.map((scope) => ({ ...scope, metrics: withoutPoints(scope.metrics, problem) })),
    })
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

/** The values that AnyValue has one of. */
const values = [
  'stringValue',
  'boolValue',
  'intValue',
  'doubleValue',
  'arrayValue',
  'kvlistValue',
  'bytesValue',
] as const

/** Keys of several words, which are called otherwise in the definitions. */
const longKeys = [
  ...values,
  'resourceMetrics',
  'scopeMetrics',
  'dataPoints',
  'aggregationTemporality',
  'isMonotonic',
  'exponentialHistogram',
  'bucketCounts',
  'explicitBounds',
  'zeroCount',
  'zeroThreshold',
  'quantileValues',
  'asInt',
  'asDouble',
  'startTimeUnixNano',
  'timeUnixNano',
] as const
const inSnakeCase: ReadonlyMap<string, string> = new Map(
  longKeys.map((key) => [key, key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)]),
)

/** What stands under a key; undefined if nothing does, or null, which is the same as nothing. */
function at(of: JsonObject, key: string): unknown {
  const value = of[key]
  if (value !== undefined && value !== null) return value
  const other = inSnakeCase.get(key)
  return (other === undefined ? undefined : of[other]) ?? undefined
}

/** What is wrong with a part of the request; what is wrong with all of it is thrown on. */
function problemOf(error: unknown): string {
  if (error instanceof ProtocolError && (error.code === 'BAD_JSON' || error.code === 'TOO_DEEP')) return error.message
  throw error
}

function bad(what: string, expected: string): ProtocolError {
  return new ProtocolError('BAD_JSON', `${what}: ${expected} was expected`)
}

const NOTHING: JsonObject = {}
const NANOSECONDS = 1_000
const MAX_UINT32 = 2 ** 32 - 1
/** Characters of a name that an error repeats. */
const MAX_SHOWN = 100

/** The keys of the kinds of data. */
const kinds = {
  gauge: 'gauge',
  sum: 'sum',
  histogram: 'histogram',
  exponentialHistogram: 'exponential-histogram',
  summary: 'summary',
} as const satisfies Record<string, MetricData['kind']>

/** Thrown at the first list that a point has no more room for. */
const TOO_MANY = Symbol('too many elements')

class Converter {
  #left: number
  /** Where that number ends for the point that is converted. */
  #least = Number.NEGATIVE_INFINITY
  /** What was begun since the last step, list by list; the objects of one count when they are converted. */
  #sinceStep = 0
  /** Of the metric that is being converted. */
  #unread: Unread | undefined

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
    const value = at(of, key)
    if (value === undefined) return []
    if (!Array.isArray(value)) throw bad(key, 'a list')
    this.#weigh(value.length)
    this.#sinceStep += value.length
    return value
  }

  /** Counts elements before anything is made of them. */
  #weigh(elements: number): void {
    this.#left -= elements
    if (this.#left < 0) throw new ProtocolError('BAD_COUNT', 'too many elements in one request')
    if (this.#left < this.#least) throw TOO_MANY
  }

  *objects(of: JsonObject, key: string): Generator<JsonObject> {
    for (const value of this.list(of, key)) {
      if (value === null) continue
      if (!isObject(value)) throw bad(key, 'a list of objects')
      yield value
    }
  }

  text(of: JsonObject, key: string): string {
    const value = of[key] ?? ''
    // Half of a pair costs the series that has it, and not the request.
    if (typeof value !== 'string') throw bad(key, 'a text')
    return value
  }

  *metric(of: JsonObject): Generator<undefined, OtlpMetric> {
    const [name, unit, description] = [this.text(of, 'name'), this.text(of, 'unit'), this.text(of, 'description')]
    const key = (Object.keys(kinds) as (keyof typeof kinds)[]).find((each) => isObject(at(of, each)))
    this.#unread = undefined
    try {
      const data = key && (yield* this.#data(kinds[key], at(of, key) as JsonObject))
      return { name, unit, description, data, unread: this.#unread }
    } catch (error) {
      if (!(error instanceof ProtocolError) || error.code !== 'BAD_JSON') throw error
      throw new ProtocolError('BAD_JSON', `metric ${name.slice(0, MAX_SHOWN).toWellFormed()}: ${error.message}`)
    }
  }

  *#data(kind: MetricData['kind'], of: JsonObject): Generator<undefined, MetricData> {
    const temporality = this.#temporality(of)
    switch (kind) {
      case 'gauge':
        return { kind, points: yield* this.#points(kind, of, (point) => this.#number(point)) }
      case 'sum': {
        const isMonotonic = at(of, 'isMonotonic') === true
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
      if (point === null) continue
      if (!isObject(point)) throw bad('dataPoints', 'a list of objects')
      const read = this.#point(point, convert)
      if ('converted' in read) points.push(read.converted)
      else this.#unread = { ...(this.#unread ?? read), points: (this.#unread?.points ?? 0) + 1 }
      this.#sinceStep += weight
      if (this.isStepOver) yield
    }
    return points
  }

  /** What has at most so many elements; undefined if it has more. */
  #within<T>(most: number, convert: () => T): T | undefined {
    const before = this.#left
    this.#least = before - most
    try {
      return convert()
    } catch (error) {
      if (error !== TOO_MANY) throw error
      this.#left = before
      return undefined
    } finally {
      this.#least = Number.NEGATIVE_INFINITY
    }
  }

  /** A point, or what is wrong in it. */
  #point<P>(
    point: JsonObject,
    convert: (point: JsonObject) => P,
  ): { readonly converted: P } | { readonly problem: string } {
    try {
      const converted = this.#within(MAX_POINT_ELEMENTS, () => convert(point))
      return converted === undefined ? { problem: POINT_TOO_LARGE } : { converted }
    } catch (error) {
      return { problem: problemOf(error) }
    }
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
      zeroCount: uint64Of(at(point, 'zeroCount') ?? 0, 'zeroCount'),
      zeroThreshold: doubleOf(at(point, 'zeroThreshold') ?? 0, 'zeroThreshold'),
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
    const asInt = at(of, 'asInt')
    const value = asInt !== undefined ? int64Of(asInt, 'asInt') : optionalDouble(at(of, 'asDouble'), 'asDouble')
    return { ...this.#common(of), value }
  }

  #distribution(of: JsonObject) {
    return {
      ...this.#common(of),
      count: uint64Of(of['count'] ?? 0, 'count'),
      sum: optionalDouble(of['sum'], 'sum'),
      min: optionalDouble(of['min'], 'min'),
      max: optionalDouble(of['max'], 'max'),
    }
  }

  /** What all points have. */
  #common(of: JsonObject) {
    return {
      attributes: this.#attributes(of),
      start: timeOf(at(of, 'startTimeUnixNano') ?? 0, 'startTimeUnixNano'),
      time: timeOf(at(of, 'timeUnixNano') ?? 0, 'timeUnixNano'),
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
    const value = Number(bigintOf(of[key] ?? 0, key))
    if (value < least || value > most) throw bad(key, `an integer from ${least} to ${most}`)
    return value
  }

  #temporality(of: JsonObject): number {
    const value = at(of, 'aggregationTemporality') ?? 0
    const named = typeof value === 'string' ? /^AGGREGATION_TEMPORALITY_(\w+)$/.exec(value)?.[1] : undefined
    if (named !== undefined && Object.hasOwn(Temporality, named)) return Temporality[named as keyof typeof Temporality]
    return this.#integer({ aggregationTemporality: value }, 'aggregationTemporality', -(2 ** 31), 2 ** 31 - 1)
  }

  /** Those of a resource or scope. If something in them is wrong, that costs all points that would have them. */
  outerAttributes(of: JsonObject): { readonly attributes: Attribute[]; readonly problem?: string } {
    try {
      return { attributes: this.#attributes(of) }
    } catch (error) {
      return { attributes: [], problem: problemOf(error) }
    }
  }

  #attributes(of: JsonObject): Attribute[] {
    return this.#entries(of, 'attributes', 0)
  }

  #entries(of: JsonObject, key: string, depth: number): Attribute[] {
    return [...this.objects(of, key)].map((entry) => {
      return { key: this.text(entry, 'key'), value: this.#any(this.object(entry['value'], 'value'), depth) }
    })
  }

  #any(of: JsonObject, depth: number): AnyValue {
    if (depth >= MAX_ANY_DEPTH) throw new ProtocolError('TOO_DEEP', VALUE_TOO_DEEP)
    const [key, value] = valueIn(of)
    switch (key) {
      case 'stringValue':
        return this.text({ [key]: value }, key)
      case 'boolValue':
        return value === true
      case 'intValue':
        return int64Of(value, key)
      case 'doubleValue':
        return doubleOf(value, key)
      case 'arrayValue':
        return this.list(this.object(value, key), 'values').map((each) =>
          this.#any(this.object(each, 'values'), depth + 1),
        )
      case 'kvlistValue':
        return { entries: this.#entries(this.object(value, key), 'values', depth + 1) }
      case 'bytesValue': {
        const bytes = typeof value === 'string' ? fromBase64(inStandardAlphabet(value)) : undefined
        if (bytes === undefined) throw bad(key, 'base64')
        return bytes
      }
      default:
        return undefined
    }
  }
}

/** Which value there is: the first that is not null. */
function valueIn(of: JsonObject): readonly [key: (typeof values)[number] | undefined, value: unknown] {
  for (const key of values) {
    const value = at(of, key)
    if (value !== undefined) return [key, value]
  }
  return [undefined, undefined]
}

/** Readers take either alphabet of base64, with padding or without. */
function inStandardAlphabet(text: string): string {
  const plain = text.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '')
  return plain.padEnd(plain.length + (-plain.length & 3), '=')
}

/** An integer as a text, perhaps with zeros after the point and with an exponent, such as 10.0 and 1e3. */
const INTEGER = /^(-?\d{1,20})(?:\.(\d{1,20}))?(?:[eE]([+-]?\d{1,3}))?$/

const NUMBER = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/

/** Beyond 2^53 a number of JSON is no longer exact; its sender should have written a text, all of whose digits count. */
function bigintOf(value: unknown, what: string): bigint {
  if (typeof value === 'number' && Number.isInteger(value)) return BigInt(value)
  const [, whole, fraction = '', exponent = '0'] = (typeof value === 'string' && INTEGER.exec(value)) || []
  if (whole === undefined) throw bad(what, 'an integer')
  const digits = BigInt(whole + fraction)
  const zeros = Number(exponent) - fraction.length
  if (zeros >= 0) return digits * 10n ** BigInt(zeros)
  const divisor = 10n ** BigInt(-zeros)
  if (digits % divisor !== 0n) throw bad(what, 'an integer')
  return digits / divisor
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

/** An infinity is a text that says so; digits for more than the largest double are no number. */
function doubleOf(value: unknown, what: string): number {
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value)
  const isNumber = typeof value === 'number' || (typeof value === 'string' && NUMBER.test(value))
  const double = Number(value)
  if (!isNumber || !Number.isFinite(double)) throw bad(what, 'a number')
  return double
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
