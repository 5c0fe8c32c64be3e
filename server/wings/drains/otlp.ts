/** Drains to OTLP/HTTP: numbers as gauges and sums, distributions as they came (docs/opentelemetry.md). */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { decodeAnswer, encodeMetricsRequest, type OutgoingMetric } from '../../../protocol/otlp/encode.ts'
import { type MetricData, type NumberPoint, Temporality } from '../../../protocol/otlp/metrics.ts'
import type { Metric } from '../../kit/metrics.ts'
import { distributionOf, numberOf } from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import { finish } from '../../kit/running.ts'
import type { DrainRequest, DrainWire, EncodedBatch, OutgoingValue } from './outgoing.ts'

const VALUES_PER_STEP = 64
/** Metrics of OpenTelemetry go back under their own names. */
const FAMILY = 'otlp.'

/** `metricOf` gives what is known of a metric: unit, description, and whether it only grows. */
export function otlpWire(metricOf: (name: string) => Metric | undefined): DrainWire {
  return {
    *encode(values): Steps<EncodedBatch> {
      const batch = new Batch(metricOf)
      for (const [at, value] of values.entries()) {
        batch.add(value)
        if (at % VALUES_PER_STEP === 0) yield
      }
      const about = { taken: values.length, unsent: { unsupported: batch.unsupported, superseded: 0 } }
      if (batch.metrics.length === 0) return { request: undefined, ...about }
      return { request: requestOf(yield* encodeMetricsRequest(batch.metrics)), ...about }
    },
    empty: () => requestOf(finish(encodeMetricsRequest([]))),
    judgesValues: true,
    partialRefusal: decodeAnswer,
  }
}

function requestOf(body: Uint8Array): DrainRequest {
  return { body, headers: { 'content-type': 'application/x-protobuf' } }
}

class Batch {
  readonly metrics: OutgoingMetric[] = []
  unsupported = 0
  readonly #metricOf: (name: string) => Metric | undefined
  /** Points of numbers, by the name of their metric. */
  readonly #numbers = new Map<string, NumberPoint[]>()

  constructor(metricOf: (name: string) => Metric | undefined) {
    this.#metricOf = metricOf
  }

  add(outgoing: OutgoingValue): void {
    const { name, labels, time } = outgoing
    const attributes = labels.map(([key, value]) => ({ key, value }))
    const point = { attributes, start: 0, time, isEnd: false }
    if (!this.#add(name, outgoing.value, point)) this.unsupported++
  }

  /** Returns false if there is no number in it. */
  #add(name: string, value: Value, point: Omit<NumberPoint, 'value'>): boolean {
    if (value.type === BasicType.VOID) this.#addNumber(name, { ...point, isEnd: true, value: undefined })
    else {
      const number = numberOf(value)
      if (number !== undefined) this.#addNumber(name, { ...point, value: pointValue(number) })
      else return value.type === BasicType.REC && this.#addRecord(name, value.value, point)
    }
    return true
  }

  #addRecord(name: string, fields: readonly Field[], point: Omit<NumberPoint, 'value'>): boolean {
    const distribution = distributionOf(fields)
    if (distribution === undefined) {
      let isSome = false
      for (const field of fields) if (this.#add(`${name}.${field.name}`, field, point)) isSome = true
      return isSome
    }
    const { count, sum, min, max, start } = distribution
    if (distribution.kind === 'histogram') {
      const { bounds, counts, isDelta } = distribution
      const temporality = isDelta ? Temporality.DELTA : Temporality.CUMULATIVE
      const points = [{ ...point, start, count, sum, min, max, bounds, counts }]
      this.#push(name, { kind: 'histogram', temporality, points })
    } else if (distribution.kind === 'exponential-histogram') {
      const { isDelta, scale, zeroCount, zeroThreshold, positive, negative } = distribution
      const temporality = isDelta ? Temporality.DELTA : Temporality.CUMULATIVE
      const own = { scale, zeroCount, zeroThreshold, positive, negative }
      this.#push(name, {
        kind: 'exponential-histogram',
        temporality,
        points: [{ ...point, start, count, sum, min, max, ...own }],
      })
    } else {
      const quantiles = distribution.quantiles.map((quantile, at) => {
        return { quantile, value: distribution.values[at] ?? Number.NaN }
      })
      this.#push(name, { kind: 'summary', points: [{ ...point, start, count, sum: sum ?? 0, quantiles }] })
    }
    return true
  }

  #addNumber(name: string, point: NumberPoint): void {
    const known = this.#numbers.get(name)
    if (known !== undefined) {
      known.push(point)
      return
    }
    const points = [point]
    this.#numbers.set(name, points)
    const isCounter = this.#metricOf(name)?.isCounter === true
    const sum = { kind: 'sum', temporality: Temporality.CUMULATIVE, isMonotonic: true, points } as const
    this.#push(name, isCounter ? sum : { kind: 'gauge', points })
  }

  #push(name: string, data: MetricData): void {
    const { unit = '', description = '' } = this.#metricOf(name) ?? {}
    this.metrics.push({ name: name.startsWith(FAMILY) ? name.slice(FAMILY.length) : name, unit, description, data })
  }
}

/** Integers are those of 64 bits with a sign; larger ones lose their last digits. */
function pointValue(number: number | bigint | boolean): number | bigint {
  if (typeof number === 'boolean') return number ? 1n : 0n
  return typeof number === 'bigint' && number >= 2n ** 63n ? Number(number) : number
}
