/**
 * What a series is for Prometheus: its name and the samples of its values. The text of GET /metrics and drains have it from here
 * (docs/prometheus.md).
 */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'
import { cumulative, OWN_LABEL, prometheusNumber } from '../../../protocol/prometheus/distribution.ts'
import { prometheusLabels, type SampleLabel } from '../../../protocol/prometheus/labels.ts'
import { prometheusName } from '../../../protocol/prometheus/names.ts'
import type { FamilyType } from '../../../protocol/prometheus/samples.ts'
import { distributionOf, type HistogramValue, numberOf, type SummaryValue } from './distribution.ts'

/** What came from Prometheus goes back under its own name, and rules name what they record as Prometheus does. */
const FAMILIES = ['prometheus.', 'rules.']
/** Deeper values are left out. */
const MAX_DEPTH = 4

const utf8 = new TextDecoder()

export interface NameForPrometheus {
  readonly name: string
  /** It is the name that it had in Prometheus, to the letter. */
  readonly isNative: boolean
}

/** `isPrefixed`: what came from Prometheus keeps the name of its family in front, like everything else. */
export function nameForPrometheus(metric: string, isPrefixed = false): NameForPrometheus {
  const family = isPrefixed ? undefined : FAMILIES.find((one) => metric.startsWith(one))
  if (family === undefined) return { name: prometheusName(metric), isNative: false }
  const own = metric.slice(family.length)
  const name = prometheusName(own)
  return { name, isNative: name === own }
}

/** Whether its values only grow, in Prometheus' words. */
export function familyType(isCounter: boolean | undefined): FamilyType {
  if (isCounter === undefined) return 'unknown'
  return isCounter ? 'counter' : 'gauge'
}

/** What takes the samples of values. Labels are those of the source: several may become one. */
export interface SampleSink {
  number(name: string, labels: readonly SampleLabel[], value: number | bigint | boolean): void
  histogram(name: string, labels: readonly SampleLabel[], histogram: HistogramValue): void
  summary(name: string, labels: readonly SampleLabel[], summary: SummaryValue): void
  /** Texts, the last of the labels. Without it they are left out. */
  info?(name: string, labels: readonly SampleLabel[]): void
  /** Whether it takes each element of a list, with the label `index`. */
  readonly hasLists: boolean
}

/**
 * A number is a sample, a text a label of a sample `_info`, a record as many as it has numbers. Returns whether there was
 * anything. What the values of OpenTelemetry and StatsD say of distributions becomes a histogram or a summary.
 */
export function samplesOf(
  sink: SampleSink,
  name: string,
  labels: readonly SampleLabel[],
  value: Value,
  depth = 0,
): boolean {
  const number = numberOf(value)
  if (number !== undefined) {
    sink.number(name, labels, number)
    return true
  }
  if (value.type === BasicType.STRING) {
    sink.info?.(`${name}_info`, [...labels, ['value', shownText(value.value)]])
    return sink.info !== undefined
  }
  if (depth >= MAX_DEPTH) return false
  if (value.type === BasicType.REC) return samplesOfRecord(sink, name, labels, value.value, depth + 1)
  if (value.type !== BasicType.ARRAY || !sink.hasLists) return false
  const { element, items } = value.value
  let isSome = false
  for (const [index, item] of items.entries()) {
    const one = { type: element, value: item } as Value
    if (samplesOf(sink, name, [...labels, ['index', String(index)]], one, depth + 1)) isSome = true
  }
  return isSome
}

function samplesOfRecord(
  sink: SampleSink,
  name: string,
  labels: readonly SampleLabel[],
  fields: readonly Field[],
  depth: number,
): boolean {
  const distribution = distributionOf(fields)
  if (distribution?.kind === 'histogram' && !distribution.isDelta) {
    sink.histogram(name, labels, distribution)
    return true
  }
  if (distribution?.kind === 'summary') {
    sink.summary(name, labels, distribution)
    return true
  }
  let isSome = false
  const texts: SampleLabel[] = []
  for (const field of fields) {
    if (field.type === BasicType.STRING) texts.push([field.name, shownText(field.value)])
    else if (samplesOf(sink, `${name}_${prometheusName(field.name)}`, labels, field, depth)) isSome = true
  }
  if (texts.length === 0 || sink.info === undefined) return isSome
  sink.info(`${name}_info`, [...labels, ...texts])
  return true
}

/** Takes a sample under the name and labels that it has in Prometheus. */
export type TakeSample = (name: string, labels: readonly SampleLabel[], value: number) => void

/** The samples of a histogram: its buckets, its count, and its sum if that is known. */
export function samplesOfHistogram(
  name: string,
  given: readonly SampleLabel[],
  histogram: HistogramValue,
  take: TakeSample,
): void {
  const labels = prometheusLabels(given, OWN_LABEL.histogram)
  const { buckets, count } = cumulative(histogram)
  for (const [place, bucket] of buckets.entries()) {
    const bound = prometheusNumber(histogram.bounds[place] ?? Number.POSITIVE_INFINITY)
    take(`${name}_bucket`, [...labels, [OWN_LABEL.histogram, bound]], Number(bucket))
  }
  samplesOfTotals(name, labels, count, histogram.sum, take)
}

/** The samples of a summary: its quantiles, its count, and its sum if that is known. */
export function samplesOfSummary(
  name: string,
  given: readonly SampleLabel[],
  { quantiles, values, count, sum }: SummaryValue,
  take: TakeSample,
): void {
  const labels = prometheusLabels(given, OWN_LABEL.summary)
  for (const [place, quantile] of quantiles.entries()) {
    take(name, [...labels, [OWN_LABEL.summary, prometheusNumber(quantile)]], values[place] ?? Number.NaN)
  }
  samplesOfTotals(name, labels, count, sum, take)
}

function samplesOfTotals(
  name: string,
  labels: readonly SampleLabel[],
  count: bigint,
  sum: number | undefined,
  take: TakeSample,
): void {
  take(`${name}_count`, labels, Number(count))
  if (sum !== undefined) take(`${name}_sum`, labels, sum)
}

export function shownText(value: Value['value']): string {
  return value instanceof Uint8Array ? utf8.decode(value) : String(value)
}
