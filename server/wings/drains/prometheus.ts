/** Drains to Prometheus remote write 1.0: what GET /metrics shows as samples is sent as samples (docs/prometheus.md). */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { prometheusNumber } from '../../../protocol/prometheus/exposition.ts'
import { prometheusLabel, prometheusName } from '../../../protocol/prometheus/names.ts'
import {
  encodeWriteRequest,
  type OutgoingSample,
  type OutgoingSeries,
} from '../../../protocol/prometheus/write-request.ts'
import { distributionOf, type HistogramValue, numberOf, type SummaryValue } from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import { finish } from '../../kit/running.ts'
import type { DrainWire, EncodedBatch, Label, OutgoingValue } from './outgoing.ts'

const MICROSECONDS = 1_000
const VALUES_PER_STEP = 64
/** Series of Prometheus go back under their own names. */
const FAMILY = 'prometheus.'

interface Series extends OutgoingSeries {
  readonly samples: OutgoingSample[]
}

export const remoteWrite: DrainWire = {
  headers: {
    'content-type': 'application/x-protobuf',
    'content-encoding': 'snappy',
    'x-prometheus-remote-write-version': '0.1.0',
  },

  empty: finish(encodeWriteRequest([])),

  *encode(values): Steps<EncodedBatch> {
    const batch = new Batch()
    for (const [at, value] of values.entries()) {
      batch.add(value)
      if (at % VALUES_PER_STEP === 0) yield
    }
    const body = batch.series.size === 0 ? undefined : yield* encodeWriteRequest(batch.inOrder())
    return { body, unsent: { unsupported: batch.unsupported, superseded: batch.superseded } }
  },

  partialRefusal: () => ({ rejected: 0, message: '' }),
}

class Batch {
  readonly series = new Map<string, Series>()
  unsupported = 0
  superseded = 0

  add({ name, labels, value, time }: OutgoingValue): void {
    const base = prometheusName(name.startsWith(FAMILY) ? name.slice(FAMILY.length) : name)
    const own = labels.map(([label, text]): Label => [prometheusLabel(label), text])
    const timeMs = Math.floor(time / MICROSECONDS)
    if (value.type === BasicType.VOID) this.#sample(base, own, undefined, timeMs)
    else if (!this.#add(base, own, value, timeMs)) this.unsupported++
  }

  /** Returns false if there is no number in it. */
  #add(name: string, labels: readonly Label[], value: Value, timeMs: number): boolean {
    const number = numberOf(value)
    if (number !== undefined) {
      this.#sample(name, labels, Number(number), timeMs)
      return true
    }
    return value.type === BasicType.REC && this.#addRecord(name, labels, value.value, timeMs)
  }

  #addRecord(name: string, labels: readonly Label[], fields: readonly Field[], timeMs: number): boolean {
    const distribution = distributionOf(fields)
    if (distribution?.kind === 'summary') this.#addSummary(name, labels, distribution, timeMs)
    else if (distribution?.kind === 'histogram' && !distribution.isDelta) {
      this.#addHistogram(name, labels, distribution, timeMs)
    } else {
      let isSome = false
      for (const field of fields) {
        if (this.#add(`${name}_${prometheusName(field.name)}`, labels, field, timeMs)) isSome = true
      }
      return isSome
    }
    return true
  }

  #addHistogram(name: string, labels: readonly Label[], histogram: HistogramValue, timeMs: number): void {
    const { bounds, counts, count } = histogram
    let below = 0n
    for (const [place, bound] of bounds.entries()) {
      below += counts[place] ?? 0n
      this.#sample(`${name}_bucket`, [...labels, ['le', prometheusNumber(bound)]], Number(below), timeMs)
    }
    this.#sample(`${name}_bucket`, [...labels, ['le', '+Inf']], Number(count), timeMs)
    this.#addTotals(name, labels, histogram, timeMs)
  }

  #addSummary(name: string, labels: readonly Label[], summary: SummaryValue, timeMs: number): void {
    for (const [place, quantile] of summary.quantiles.entries()) {
      this.#sample(
        name,
        [...labels, ['quantile', prometheusNumber(quantile)]],
        summary.values[place] ?? Number.NaN,
        timeMs,
      )
    }
    this.#addTotals(name, labels, summary, timeMs)
  }

  #addTotals(
    name: string,
    labels: readonly Label[],
    { count, sum }: HistogramValue | SummaryValue,
    timeMs: number,
  ): void {
    this.#sample(`${name}_count`, labels, Number(count), timeMs)
    if (sum !== undefined) this.#sample(`${name}_sum`, labels, sum, timeMs)
  }

  /** Of the samples of a series in one millisecond the last one counts. */
  #sample(name: string, labels: readonly Label[], value: number | undefined, timeMs: number): void {
    const texts = merged(labels)
    let key = name
    for (const [label, text] of texts) key += `\0${label}\0${text}`
    let series = this.series.get(key)
    if (series === undefined) {
      series = { name, labels: texts, samples: [] }
      this.series.set(key, series)
    }
    const { samples } = series
    if (samples.at(-1)?.timeMs === timeMs) {
      samples.pop()
      this.superseded++
    }
    samples.push({ value, timeMs })
  }

  /** The samples of each series ascend by time; where times went back, values that came late may be in one millisecond. */
  *inOrder(): Generator<OutgoingSeries> {
    for (const series of this.series.values()) {
      const { samples } = series
      const isInOrder = samples.every(
        ({ timeMs }, at) => at === 0 || timeMs > (samples[at - 1] as OutgoingSample).timeMs,
      )
      if (isInOrder) {
        yield series
        continue
      }
      const byTime = new Map(samples.map((sample) => [sample.timeMs, sample]))
      this.superseded += samples.length - byTime.size
      yield { ...series, samples: [...byTime.values()].sort((one, other) => one.timeMs - other.timeMs) }
    }
  }
}

/** Labels whose names became one share it. */
function merged(labels: readonly Label[]): readonly Label[] {
  const texts = new Map<string, string>()
  for (const [label, text] of labels) {
    const before = texts.get(label)
    texts.set(label, before === undefined ? text : `${before};${text}`)
  }
  return [...texts].sort(([one], [other]) => (one < other ? -1 : 1))
}
