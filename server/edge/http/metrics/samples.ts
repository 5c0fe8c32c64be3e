/**
 * Values as samples of Prometheus: a number is a sample, a text a label of a sample `_info`, a record as many as it has numbers.
 * What the values of OpenTelemetry and StatsD say of distributions becomes a histogram or a summary (docs/prometheus.md).
 */
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import type { ArrayValue, Field, Value } from '../../../../protocol/monitor/value.ts'
import {
  type Exposition,
  type FamilyMetadata,
  type FamilyType,
  labelsText,
  type Samples,
} from '../../../../protocol/prometheus/exposition.ts'
import { prometheusName } from '../../../../protocol/prometheus/names.ts'
import { distributionOf, numberOf } from '../../../kernel/metrics/distribution.ts'
import { ownLabels } from '../../../kernel/metrics/labels.ts'
import type { FieldExposition, Metric, RecordExposition } from '../../../kernel/metrics/metric.ts'
import type { Reading } from '../../../kernel/metrics/readings.ts'

type Label = readonly [name: string, text: string]
type Value_ = Value['value']

/** Deeper values are left out. */
const MAX_DEPTH = 4

const utf8 = new TextDecoder()

export interface SampleWriterOptions {
  readonly exposition: Exposition
  /** Whether values stand with their own time. */
  readonly hasTimes: boolean
  /** Microseconds since 1970. */
  readonly now: number
}

/** What is known of a metric, made once for all its series. */
interface Known {
  readonly metric: Metric
  readonly name: string
  readonly metadata: FamilyMetadata
  /** Where its numbers go. */
  samples: Samples | undefined
}

export class SampleWriter {
  readonly #options: SampleWriterOptions
  #known: Known | undefined

  constructor(options: SampleWriterOptions) {
    this.#options = options
  }

  add({ metric, labels, measured }: Reading): void {
    if (measured === undefined || measured.value.type === BasicType.VOID || metric.exposition === 'none') return
    const known = this.#known?.metric === metric ? this.#known : this.#learn(metric)
    const { value, time } = measured
    const at = this.#options.hasTimes ? time : undefined
    const own = ownLabels(labels)
    if (metric.exposition !== undefined) this.#addDeclared(known, metric.exposition, own, value, at)
    else this.#add(known.name, known, own, value, at, 0)
  }

  #learn(metric: Metric): Known {
    const { name, unit, description, isCounter } = metric
    const type = typeOf(isCounter)
    this.#known = {
      metric,
      name: prometheusName(name),
      metadata: { type, help: description, unit },
      samples: undefined,
    }
    return this.#known
  }

  #samples(name: string, { metric, metadata }: Known, type = metadata.type): Samples {
    return this.#options.exposition.samples(name, { ...metadata, type }, metric.name)
  }

  #add(
    name: string,
    known: Known,
    labels: readonly Label[],
    value: Value,
    time: number | undefined,
    depth: number,
  ): void {
    const number = numberOf(value)
    if (number !== undefined) {
      const isOwn = name === known.name
      if (isOwn) known.samples ??= this.#samples(name, known)
      const samples = isOwn ? (known.samples as Samples) : this.#samples(name, known, 'unknown')
      samples.number(labelsText(labels), number, time)
    } else if (value.type === BasicType.STRING) {
      this.#info(name, known, [...labels, ['value', textOf(value.value)]], time)
    } else if (depth < MAX_DEPTH && value.type === BasicType.REC) {
      this.#addRecord(name, known, labels, value.value, time, depth + 1)
    } else if (depth < MAX_DEPTH && value.type === BasicType.ARRAY) {
      this.#addList(name, known, labels, value.value, time, depth + 1)
    }
  }

  #info(name: string, known: Known, labels: readonly Label[], time: number | undefined): void {
    this.#samples(`${name}_info`, known, 'gauge').number(labelsText(labels), 1, time)
  }

  #addRecord(
    name: string,
    known: Known,
    labels: readonly Label[],
    fields: readonly Field[],
    time: number | undefined,
    depth: number,
  ): void {
    const distribution = distributionOf(fields)
    if (distribution?.kind === 'histogram' && !distribution.isDelta) {
      this.#samples(name, known, 'histogram').histogram(labelsText(labels), distribution, time)
      return
    }
    if (distribution?.kind === 'summary') {
      this.#samples(name, known, 'summary').summary(labelsText(labels), distribution, time)
      return
    }
    const texts: Label[] = []
    for (const field of fields) {
      if (field.type === BasicType.STRING) texts.push([field.name, textOf(field.value)])
      else this.#add(`${name}_${prometheusName(field.name)}`, known, labels, field, time, depth)
    }
    if (texts.length > 0) this.#info(name, known, [...labels, ...texts], time)
  }

  #addList(
    name: string,
    known: Known,
    labels: readonly Label[],
    { element, items }: ArrayValue,
    time: number | undefined,
    depth: number,
  ): void {
    for (const [index, item] of items.entries()) {
      const value = { type: element, value: item } as Value
      this.#add(name, known, [...labels, ['index', String(index)]], value, time, depth)
    }
  }

  /** A record, or a list of them, whose fields are described. */
  #addDeclared(
    known: Known,
    exposition: RecordExposition,
    labels: readonly Label[],
    value: Value,
    time: number | undefined,
  ): void {
    if (value.type === BasicType.REC) {
      this.#addFields(known, exposition, labels, value.value, time)
    } else if (value.type === BasicType.ARRAY) {
      for (const record of value.value.items as readonly (readonly Field[])[]) {
        if (record[0]?.name === 'more') continue
        const ofRecord = Object.entries(exposition.labels ?? {}).map(([name, label]): Label => {
          return [label, textOf(record.find((field) => field.name === name)?.value ?? '')]
        })
        this.#addFields(known, exposition, [...labels, ...ofRecord], record, time)
      }
    }
  }

  #addFields(
    known: Known,
    { fields, lists = {}, info = [] }: RecordExposition,
    labels: readonly Label[],
    record: readonly Field[],
    time: number | undefined,
  ): void {
    const texts: Label[] = []
    for (const field of record) {
      if (info.includes(field.name)) texts.push([field.name, textOf(field.value)])
      const list = Object.hasOwn(lists, field.name) ? lists[field.name] : undefined
      if (list !== undefined) this.#addDeclared(known, list, labels, field, time)
      const declared = Object.hasOwn(fields, field.name) ? fields[field.name] : undefined
      if (declared === undefined) continue
      const { name, help, isCounter, label } = declared
      const metadata = { type: typeOf(isCounter), help, unit: '' }
      const { metric } = known
      const samples = this.#options.exposition.samples(`${known.name}_${name}`, metadata, metric.name)
      const parts = label !== undefined && field.type === BasicType.REC ? field.value : [field]
      for (const part of parts) {
        const number = this.#converted(part, declared)
        if (number === undefined) continue
        samples.number(labelsText(label === undefined ? labels : [...labels, [label, part.name]]), number, time)
      }
    }
    if (texts.length > 0) this.#info(known.name, known, [...labels, ...texts], time)
  }

  #converted(field: Value, { convert, is }: FieldExposition): number | bigint | boolean | undefined {
    if (is !== undefined) return field.value === is
    const number = numberOf(field)
    if (number === undefined || convert === undefined) return number
    if (convert === 'milliseconds') return Number(number) / 1_000
    return Number(number) === 0 ? 0 : Math.max(0, (this.#options.now - Number(number)) / 1_000_000)
  }
}

function typeOf(isCounter: boolean | undefined): FamilyType {
  if (isCounter === undefined) return 'unknown'
  return isCounter ? 'counter' : 'gauge'
}

function textOf(value: Value_): string {
  return value instanceof Uint8Array ? utf8.decode(value) : String(value)
}
