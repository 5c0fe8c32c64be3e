/**
 * Readings as the text of GET /metrics: which samples a value has is for all who speak with Prometheus the same
 * (server/kernel/metrics/prometheus-samples.ts); records whose fields are described stand here as they say.
 */
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { Field, Value } from '../../../../protocol/monitor/value.ts'
import type { Exposition } from '../../../../protocol/prometheus/exposition.ts'
import type { SampleLabel } from '../../../../protocol/prometheus/labels.ts'
import type { FamilyMetadata, FamilyType, Samples } from '../../../../protocol/prometheus/samples.ts'
import { type HistogramValue, numberOf, type SummaryValue } from '../../../kernel/metrics/distribution.ts'
import { ownLabels } from '../../../kernel/metrics/labels.ts'
import type { FieldExposition, Metric, RecordExposition } from '../../../kernel/metrics/metric.ts'
import {
  familyType,
  nameForPrometheus,
  type SampleSink,
  samplesOf,
  shownText,
} from '../../../kernel/metrics/prometheus-samples.ts'
import type { Reading } from '../../../kernel/metrics/readings.ts'

export interface SampleWriterOptions {
  readonly exposition: Exposition
  /** Whether values stand with their own time. */
  readonly hasTimes: boolean
  /** Whether what came from Prometheus keeps `prometheus_` in front of its names. */
  readonly isPrefixed: boolean
  /** Microseconds since 1970. */
  readonly now: number
}

/** What is known of a metric, made once for all its series. */
interface Known {
  readonly metric: Metric
  readonly name: string
  readonly isNative: boolean
  readonly metadata: FamilyMetadata
  /** Where its numbers go. */
  samples: Samples | undefined
}

export class SampleWriter implements SampleSink {
  readonly hasLists = true
  readonly #options: SampleWriterOptions
  #known: Known | undefined
  /** Of the value that is written now. */
  #time: number | undefined

  constructor(options: SampleWriterOptions) {
    this.#options = options
  }

  add({ metric, labels, measured }: Reading): void {
    if (measured === undefined || measured.value.type === BasicType.VOID || metric.exposition === 'none') return
    const known = this.#known?.metric === metric ? this.#known : this.#learn(metric)
    this.#known = known
    const { value, time } = measured
    this.#time = this.#options.hasTimes ? time : undefined
    const own = ownLabels(labels)
    if (metric.exposition !== undefined) this.#addDeclared(known, metric.exposition, own, value)
    else samplesOf(this, known.name, own, value)
  }

  #learn(metric: Metric): Known {
    const { name, unit, description, isCounter } = metric
    const metadata = { type: familyType(isCounter), help: description, unit }
    return { metric, ...nameForPrometheus(name, this.#options.isPrefixed), metadata, samples: undefined }
  }

  number(name: string, labels: readonly SampleLabel[], value: number | bigint | boolean): void {
    const known = this.#known as Known
    const { metric, metadata, isNative } = known
    if (name !== known.name) {
      this.#samples(name, 'unknown').number(labels, value, this.#time)
    } else if (isNative && metric.distribution !== undefined) {
      const type = metric.distribution
      this.#options.exposition.part(name, { ...metadata, type }, metric.name, { labels, value, time: this.#time })
    } else {
      known.samples ??= this.#samples(name, metadata.type)
      known.samples.number(labels, value, this.#time)
    }
  }

  histogram(name: string, labels: readonly SampleLabel[], histogram: HistogramValue): void {
    this.#samples(name, 'histogram').histogram(labels, histogram, this.#time)
  }

  summary(name: string, labels: readonly SampleLabel[], summary: SummaryValue): void {
    this.#samples(name, 'summary').summary(labels, summary, this.#time)
  }

  info(name: string, labels: readonly SampleLabel[]): void {
    this.#samples(name, 'gauge').number(labels, 1, this.#time)
  }

  /** Only the name of the metric itself is one that Prometheus had given. */
  #samples(name: string, type: FamilyType): Samples {
    const { metric, metadata, isNative, name: own } = this.#known as Known
    const origin = { metric: metric.name, isNative: isNative && name === own }
    return this.#options.exposition.samples(name, { ...metadata, type }, origin)
  }

  /** A record, or a list of them, whose fields are described. */
  #addDeclared(known: Known, exposition: RecordExposition, labels: readonly SampleLabel[], value: Value): void {
    if (value.type === BasicType.REC) {
      this.#addFields(known, exposition, labels, value.value)
    } else if (value.type === BasicType.ARRAY) {
      for (const record of value.value.items as readonly (readonly Field[])[]) {
        if (record[0]?.name === 'more') continue
        const ofRecord = Object.entries(exposition.labels ?? {}).map(([name, label]): SampleLabel => {
          return [label, shownText(record.find((field) => field.name === name)?.value ?? '')]
        })
        this.#addFields(known, exposition, [...labels, ...ofRecord], record)
      }
    }
  }

  #addFields(
    known: Known,
    { fields, lists = {}, info = [] }: RecordExposition,
    labels: readonly SampleLabel[],
    record: readonly Field[],
  ): void {
    const texts: SampleLabel[] = []
    for (const field of record) {
      if (info.includes(field.name)) texts.push([field.name, shownText(field.value)])
      const list = Object.hasOwn(lists, field.name) ? lists[field.name] : undefined
      if (list !== undefined) this.#addDeclared(known, list, labels, field)
      const declared = Object.hasOwn(fields, field.name) ? fields[field.name] : undefined
      if (declared === undefined) continue
      const { name, help, isCounter, label } = declared
      const metadata = { type: familyType(isCounter), help, unit: '' }
      const { metric } = known
      const samples = this.#options.exposition.samples(`${known.name}_${name}`, metadata, metric.name)
      const parts = label !== undefined && field.type === BasicType.REC ? field.value : [field]
      for (const part of parts) {
        const number = this.#converted(part, declared)
        if (number === undefined) continue
        samples.number(label === undefined ? labels : [...labels, [label, part.name]], number, this.#time)
      }
    }
    if (texts.length > 0) this.info(`${known.name}_info`, [...labels, ...texts])
  }

  #converted(field: Value, { convert, is }: FieldExposition): number | bigint | boolean | undefined {
    if (is !== undefined) return field.value === is
    const number = numberOf(field)
    if (number === undefined || convert === undefined) return number
    if (convert === 'milliseconds') return Number(number) / 1_000
    return Number(number) === 0 ? 0 : Math.max(0, (this.#options.now - Number(number)) / 1_000_000)
  }
}
