/** Drains to Prometheus remote write 1.0: what GET /metrics shows as samples is sent as samples (docs/prometheus.md). */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { suffixOf } from '../../../protocol/prometheus/distribution.ts'
import { labelsKey, prometheusLabels } from '../../../protocol/prometheus/labels.ts'
import type { FamilyType } from '../../../protocol/prometheus/samples.ts'
import {
  encodeWriteRequest,
  type OutgoingFamily,
  type OutgoingSample,
  type OutgoingSeries,
} from '../../../protocol/prometheus/write-request.ts'
import type { Label } from '../../kit/delivered-values.ts'
import type { HistogramValue, Metric, SummaryValue } from '../../kit/metrics.ts'
import type { Steps } from '../../kit/running.ts'
import { finish } from '../../kit/running.ts'
import {
  type NameForPrometheus,
  nameForPrometheus,
  type SampleSink,
  samplesOf,
  samplesOfHistogram,
  samplesOfSummary,
} from '../../kit/samples.ts'
import { type DrainRequest, type DrainWire, type EncodedBatch, LOST_METRIC, type OutgoingValue } from './outgoing.ts'

const MICROSECONDS = 1_000
const VALUES_PER_STEP = 64

interface Series extends OutgoingSeries {
  readonly samples: OutgoingSample[]
}

/** What is known of a metric is sent with the first of its values, and then as often as Prometheus sends it. */
const DESCRIBED_MS = 60_000
/** With more metrics than this, those that were described longest ago are described again sooner. */
const MAX_DESCRIBED = 10_000

type KnownMetric = Pick<Metric, 'isCounter' | 'distribution' | 'description' | 'unit'>
type MetricOf = (name: string) => KnownMetric | undefined

const UNKNOWN: KnownMetric = { description: '', unit: '' }
const LOSSES: KnownMetric = {
  isCounter: true,
  description: 'Values that were lost before they could be sent.',
  unit: '',
}

/** `metricOf` gives what is known of a metric, `nowMs` monotonic milliseconds. */
export function remoteWrite(metricOf: MetricOf, nowMs: () => number): DrainWire {
  /** When a request that described each metric was taken, the earliest first. */
  const described = new Map<string, number>()
  const isDue = (name: string): boolean => nowMs() - (described.get(name) ?? Number.NEGATIVE_INFINITY) >= DESCRIBED_MS
  const remember = (names: Iterable<string>): void => {
    for (const name of names) {
      described.delete(name)
      described.set(name, nowMs())
    }
    for (const name of described.keys()) {
      if (described.size <= MAX_DESCRIBED) break
      described.delete(name)
    }
  }
  return {
    *encode(values): Steps<EncodedBatch> {
      const saying = new Set<string>()
      const batch = new Batch((name) => {
        if (saying.has(name) || !isDue(name)) return undefined
        saying.add(name)
        return name === LOST_METRIC ? LOSSES : (metricOf(name) ?? UNKNOWN)
      })
      for (const [at, value] of values.entries()) {
        batch.add(value)
        if (at % VALUES_PER_STEP === 0) yield
      }
      const request =
        batch.series.size === 0
          ? undefined
          : requestOf(yield* encodeWriteRequest(batch.inOrder(), batch.families.values()))
      const unsent = { unsupported: batch.unsupported, superseded: batch.superseded }
      const about = { taken: values.length, unsent }
      return request === undefined ? { request, ...about } : { request, ...about, accepted: () => remember(saying) }
    },

    empty: () => requestOf(finish(encodeWriteRequest([]))),

    judgesValues: true,

    partialRefusal: () => ({ rejected: 0, message: '' }),
  }
}

/** The whole of a request, at once. */
export function writeRequestOf(series: Iterable<OutgoingSeries>): DrainRequest {
  return requestOf(finish(encodeWriteRequest(series)))
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
  readonly families = new Map<string, OutgoingFamily>()
  unsupported = 0
  superseded = 0
  /** Of the value that is added now, milliseconds. */
  #timeMs = 0
  #name: NameForPrometheus = { name: '', isNative: false }
  /** What is to be said of it now. */
  #known: KnownMetric | undefined
  readonly #due: MetricOf

  /** `due` gives what is to be said of a metric now. */
  constructor(due: MetricOf) {
    this.#due = due
  }

  add({ name, labels, value, time }: OutgoingValue): void {
    this.#name = nameForPrometheus(name)
    // The end of a series has no type, so nothing is said with it.
    this.#known = value.type === BasicType.VOID ? undefined : this.#due(name)
    const base = this.#name.name
    this.#timeMs = Math.floor(time / MICROSECONDS)
    if (value.type === BasicType.VOID) this.#sample(base, prometheusLabels(labels), undefined)
    else if (!samplesOf(this, base, labels, value)) this.unsupported++
  }

  number(name: string, labels: readonly Label[], value: number | bigint | boolean): void {
    const known = prometheusLabels(labels)
    if (this.#known !== undefined && name === this.#name.name) this.#describeNumber(name, known, this.#known)
    this.#sample(name, known, Number(value))
  }

  /** A sample of a distribution that came from Prometheus has the family of the distribution. */
  #describeNumber(name: string, labels: readonly Label[], { isCounter, distribution }: KnownMetric): void {
    const suffix = this.#name.isNative && distribution !== undefined ? suffixOf(name, labels, distribution) : undefined
    if (suffix !== undefined) this.#describe(name.slice(0, name.length - suffix.length), distribution)
    else this.#describe(name, isCounter === undefined ? 'unknown' : isCounter ? 'counter' : 'gauge')
  }

  #describe(name: string, type: FamilyType = 'unknown'): void {
    const { description: help = '', unit = '' } = this.#known ?? {}
    const isSomething = type !== 'unknown' || help !== '' || unit !== ''
    if (this.#known !== undefined && isSomething && !this.families.has(name))
      this.families.set(name, { name, type, help, unit })
  }

  histogram(name: string, labels: readonly Label[], histogram: HistogramValue): void {
    this.#describe(name, 'histogram')
    samplesOfHistogram(name, labels, histogram, (...sample) => this.#sample(...sample))
  }

  summary(name: string, labels: readonly Label[], summary: SummaryValue): void {
    this.#describe(name, 'summary')
    samplesOfSummary(name, labels, summary, (...sample) => this.#sample(...sample))
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
