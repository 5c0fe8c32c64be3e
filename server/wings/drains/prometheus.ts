/** Drains to Prometheus remote write 1.0: what GET /metrics shows as samples is sent as samples (docs/prometheus.md). */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { cumulative, OWN_LABEL, prometheusNumber } from '../../../protocol/prometheus/distribution.ts'
import { labelsKey, prometheusLabels } from '../../../protocol/prometheus/labels.ts'
import {
  encodeWriteRequest,
  type OutgoingSample,
  type OutgoingSeries,
} from '../../../protocol/prometheus/write-request.ts'
import {
  type HistogramValue,
  nameForPrometheus,
  type SampleSink,
  type SummaryValue,
  samplesOf,
} from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import { finish } from '../../kit/running.ts'
import type { DrainRequest, DrainWire, EncodedBatch, Label, OutgoingValue } from './outgoing.ts'

const MICROSECONDS = 1_000
const VALUES_PER_STEP = 64

interface Series extends OutgoingSeries {
  readonly samples: OutgoingSample[]
}

export const remoteWrite: DrainWire = {
  *encode(values): Steps<EncodedBatch> {
    const batch = new Batch()
    for (const [at, value] of values.entries()) {
      batch.add(value)
      if (at % VALUES_PER_STEP === 0) yield
    }
    const request = batch.series.size === 0 ? undefined : requestOf(yield* encodeWriteRequest(batch.inOrder()))
    const unsent = { unsupported: batch.unsupported, superseded: batch.superseded }
    return { request, taken: values.length, unsent }
  },

  empty: () => requestOf(finish(encodeWriteRequest([]))),

  judgesValues: true,

  partialRefusal: () => ({ rejected: 0, message: '' }),
}

function requestOf(body: Uint8Array): DrainRequest {
  const headers = {
    'content-type': 'application/x-protobuf',
    'content-encoding': 'snappy',
    'x-prometheus-remote-write-version': '0.1.0',
  }
  return { body, headers }
}

class Batch implements SampleSink {
  readonly hasLists = false
  readonly series = new Map<string, Series>()
  unsupported = 0
  superseded = 0
  /** Of the value that is added now, milliseconds. */
  #timeMs = 0

  add({ name, labels, value, time }: OutgoingValue): void {
    const base = nameForPrometheus(name).name
    this.#timeMs = Math.floor(time / MICROSECONDS)
    if (value.type === BasicType.VOID) this.#sample(base, prometheusLabels(labels), undefined)
    else if (!samplesOf(this, base, labels, value)) this.unsupported++
  }

  number(name: string, labels: readonly Label[], value: number | bigint | boolean): void {
    this.#sample(name, prometheusLabels(labels), Number(value))
  }

  histogram(name: string, given: readonly Label[], histogram: HistogramValue): void {
    const labels = prometheusLabels(given, OWN_LABEL.histogram)
    const { buckets, count } = cumulative(histogram)
    for (const [place, bucket] of buckets.entries()) {
      const bound = prometheusNumber(histogram.bounds[place] ?? Number.POSITIVE_INFINITY)
      this.#sample(`${name}_bucket`, [...labels, [OWN_LABEL.histogram, bound]], Number(bucket))
    }
    this.#totals(name, labels, count, histogram.sum)
  }

  summary(name: string, given: readonly Label[], { quantiles, values, count, sum }: SummaryValue): void {
    const labels = prometheusLabels(given, OWN_LABEL.summary)
    for (const [place, quantile] of quantiles.entries()) {
      const own = [OWN_LABEL.summary, prometheusNumber(quantile)] as const
      this.#sample(name, [...labels, own], values[place] ?? Number.NaN)
    }
    this.#totals(name, labels, count, sum)
  }

  #totals(name: string, labels: readonly Label[], count: bigint, sum: number | undefined): void {
    this.#sample(`${name}_count`, labels, Number(count))
    if (sum !== undefined) this.#sample(`${name}_sum`, labels, sum)
  }

  /** Of the samples of a series in one millisecond the last one counts. */
  #sample(name: string, labels: readonly Label[], value: number | undefined): void {
    const timeMs = this.#timeMs
    const key = `${name}\0${labelsKey(labels)}`
    let series = this.series.get(key)
    if (series === undefined) {
      series = { name, labels: [...labels].sort(([one], [other]) => (one < other ? -1 : 1)), samples: [] }
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
