/**
 * Writes the text formats that Prometheus scrapes: its own, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats),
 * and OpenMetrics 1.0 (github.com/prometheus/OpenMetrics). Samples may be added in any order; the text has them by family.
 */
import { prometheusLabel } from './names.ts'

export type ExpositionFormat = 'prometheus' | 'openmetrics'

export const contentTypes: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'unknown'

/** What is written above the samples of a family. */
export interface FamilyMetadata {
  readonly type: FamilyType
  readonly help: string
  /** As its source names it, such as `s`; empty if it has none. */
  readonly unit: string
}

/** Buckets are not cumulative here: `counts` has one more than `bounds`, those above the last. */
export interface Histogram {
  readonly bounds: readonly number[]
  readonly counts: readonly bigint[]
  readonly count: bigint
  readonly sum: number | undefined
}

export interface Summary {
  readonly quantiles: readonly number[]
  readonly values: readonly number[]
  readonly count: bigint
  readonly sum: number | undefined
}

/** The label that tells metrics apart whose names became one. */
const NAME_LABEL = 'cinnabar_name'
const TOTAL = '_total'
/** Text is kept in pieces of about this length. */
const PIECE = 1 << 15

const unitWords: Readonly<Record<string, string>> = {
  B: 'bytes',
  bytes: 'bytes',
  By: 'bytes',
  s: 'seconds',
  sec: 'seconds',
  ms: 'milliseconds',
  '%': 'percent',
}

/** The text of labels, for samples: `host="a",cpu="0"`. An empty text is no label; labels whose names become one share it. */
export function labelsText(labels: Iterable<readonly [name: string, text: string]>): string {
  const texts = new Map<string, string>()
  for (const [name, text] of labels) {
    if (text === '') continue
    const label = prometheusLabel(name)
    const before = texts.get(label)
    texts.set(label, before === undefined ? text : `${before};${text}`)
  }
  let joined = ''
  for (const [label, text] of texts) joined += `${joined === '' ? '' : ','}${label}="${escaped(text)}"`
  return joined
}

export class Exposition {
  readonly #format: ExpositionFormat
  readonly #maxLength: number
  readonly #families = new Set<Family>()
  /** Families by their own name and by that of their samples, which a counter has of its own. */
  readonly #byName = new Map<string, Family>()
  #length = 0
  #repeated = 0

  /** `maxLength`: characters of all samples together. */
  constructor(format: ExpositionFormat, maxLength = Number.POSITIVE_INFINITY) {
    this.#format = format
    this.#maxLength = maxLength
  }

  /** True once there was more text than may be: what is added then is not written. */
  get isFull(): boolean {
    return this.#length > this.#maxLength
  }

  /** Samples that were left out because their family had one with the same labels. */
  get repeated(): number {
    return this.#repeated
  }

  /** Where samples of a metric go. `name`: as `prometheusName` makes it; `metric`: what the name was made of. */
  samples(name: string, metadata: FamilyMetadata, metric: string): Samples {
    const isCounter = metadata.type === 'counter'
    const base = isCounter && name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : name
    const sampleName = isCounter ? base + TOTAL : base
    let family = this.#byName.get(base) ?? this.#byName.get(sampleName)
    if (family === undefined) {
      family = new Family(base)
      this.#families.add(family)
    }
    this.#byName.set(base, family)
    this.#byName.set(sampleName, family)
    return family.samples(sampleName, metadata, metric, this.#format, this.#count)
  }

  readonly #count = (length: number): boolean => {
    if (length === 0) this.#repeated++
    else this.#length += length
    return !this.isFull
  };

  /** The whole text, in pieces. */
  *text(): Generator<string> {
    const families = [...this.#families].sort((one, other) => (one.name < other.name ? -1 : 1))
    for (const family of families) yield* family.text(this.#format)
    if (this.#format === 'openmetrics') yield '# EOF\n'
  }
}

class Family {
  readonly name: string
  readonly #parts: Samples[] = []
  /** The labels of the samples of each metric. */
  readonly #seen = new Map<string, Set<string>>()

  constructor(name: string) {
    this.name = name
  }

  samples(
    sampleName: string,
    metadata: FamilyMetadata,
    metric: string,
    format: ExpositionFormat,
    count: (length: number) => boolean,
  ): Samples {
    const known = this.#parts.find((part) => part.metric === metric && part.sampleName === sampleName)
    if (known !== undefined) {
      known.alsoOf(metadata)
      return known
    }
    const seen = this.#seen.get(metric) ?? new Set()
    this.#seen.set(metric, seen)
    const made = new Samples(sampleName, metadata, metric, format, seen, count)
    this.#parts.push(made)
    return made
  }

  *text(format: ExpositionFormat): Generator<string> {
    const [first] = this.#parts
    if (first === undefined || this.#parts.every(({ isEmpty }) => isEmpty)) return
    const isOneType = this.#parts.every(({ type }) => type === first.type)
    const type = isOneType ? first.type : 'unknown'
    const isOneMetric = this.#seen.size === 1
    yield this.#head(format, type, first)
    for (const part of this.#parts) {
      // Different types have different names of samples; one family has one.
      const name = isOneType ? undefined : this.name
      yield* isOneMetric && isOneType ? part.pieces() : part.renamed(name, isOneMetric ? undefined : part.metric)
    }
  }

  #head(format: ExpositionFormat, type: FamilyType, { help, unit }: Samples): string {
    const isOpen = format === 'openmetrics'
    const name = !isOpen && type === 'counter' ? this.name + TOTAL : this.name
    const text = help.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
    const word = unitWords[unit] ?? unit
    return [
      help === '' ? '' : `# HELP ${name} ${isOpen ? text.replace(/"/g, '\\"') : text}\n`,
      `# TYPE ${name} ${type === 'unknown' && !isOpen ? 'untyped' : type}\n`,
      isOpen && word !== '' && this.name.endsWith(`_${word}`) ? `# UNIT ${name} ${word}\n` : '',
    ].join('')
  }
}

/** The samples of one metric in a family. Times are microseconds since 1970; without one, the scraper gives its own. */
export class Samples {
  readonly sampleName: string
  readonly metric: string
  readonly help: string
  readonly unit: string
  #type: FamilyType
  readonly #format: ExpositionFormat
  readonly #seen: Set<string>
  readonly #count: (length: number) => boolean
  readonly #pieces: string[] = []
  #text = ''

  constructor(
    sampleName: string,
    { type, help, unit }: FamilyMetadata,
    metric: string,
    format: ExpositionFormat,
    seen: Set<string>,
    count: (length: number) => boolean,
  ) {
    this.sampleName = sampleName
    this.metric = metric
    this.help = help
    this.unit = unit
    this.#type = type
    this.#format = format
    this.#seen = seen
    this.#count = count
  }

  get type(): FamilyType {
    return this.#type
  }

  get isEmpty(): boolean {
    return this.#text === '' && this.#pieces.length === 0
  }

  /** A second source of the same metric: what they do not agree on is unknown. */
  alsoOf({ type }: FamilyMetadata): void {
    if (type !== this.#type) this.#type = 'unknown'
  }

  /** `labels`: from `labelsText`. A second sample with the same labels is left out. */
  number(labels: string, value: number | bigint | boolean, time?: number): void {
    if (!this.#isNew(labels)) return
    this.#line('', labels, prometheusNumber(value), this.#timeText(time))
    this.#flush()
  }

  histogram(labels: string, { bounds, counts, count, sum }: Histogram, time?: number): void {
    if (!this.#isNew(labels)) return
    const at = this.#timeText(time)
    let below = 0n
    for (const [place, bound] of bounds.entries()) {
      below += counts[place] ?? 0n
      this.#line('_bucket', withLabel(labels, 'le', this.#boundText(bound)), String(below), at)
    }
    this.#line('_bucket', withLabel(labels, 'le', '+Inf'), String(count), at)
    this.#rest(labels, count, sum, at)
  }

  summary(labels: string, { quantiles, values, count, sum }: Summary, time?: number): void {
    if (!this.#isNew(labels)) return
    const at = this.#timeText(time)
    for (const [place, quantile] of quantiles.entries()) {
      const value = prometheusNumber(values[place] ?? Number.NaN)
      this.#line('', withLabel(labels, 'quantile', this.#boundText(quantile)), value, at)
    }
    this.#rest(labels, count, sum, at)
  }

  #rest(labels: string, count: bigint, sum: number | undefined, at: string): void {
    this.#line('_count', labels, String(count), at)
    if (sum !== undefined) this.#line('_sum', labels, prometheusNumber(sum), at)
    this.#flush()
  }

  *pieces(): Generator<string> {
    yield* this.#pieces
    yield this.#text
  }

  /** The same with another name of the samples, and with a label for their metric: no line but a sample begins one. */
  *renamed(name = this.sampleName, metric?: string): Generator<string> {
    const label = metric === undefined ? '' : `${NAME_LABEL}="${escaped(metric)}"`
    const start = new RegExp(`^${this.sampleName}(\\w*)(\\{)?`, 'gm')
    for (const piece of this.pieces()) {
      yield piece.replace(start, (_, suffix: string, brace = '') => {
        if (label === '') return name + suffix + brace
        return `${name}${suffix}{${label}${brace === '' ? '}' : ','}`
      })
    }
  }

  #isNew(labels: string): boolean {
    if (!this.#seen.has(labels)) {
      this.#seen.add(labels)
      return true
    }
    this.#count(0)
    return false
  }

  #line(suffix: string, labels: string, value: string, time: string): void {
    const { sampleName } = this
    const line =
      labels === '' ? `${sampleName}${suffix} ${value}${time}\n` : `${sampleName}${suffix}{${labels}} ${value}${time}\n`
    if (this.#count(line.length)) this.#text += line
  }

  #flush(): void {
    if (this.#text.length < PIECE) return
    this.#pieces.push(this.#text)
    this.#text = ''
  }

  #timeText(time: number | undefined): string {
    if (time === undefined) return ''
    return this.#format === 'openmetrics' ? ` ${(time / 1_000_000).toFixed(6)}` : ` ${Math.floor(time / 1_000)}`
  }

  /** OpenMetrics has bounds as floating-point numbers: `1.0`. */
  #boundText(bound: number): string {
    const text = prometheusNumber(bound)
    return this.#format === 'openmetrics' && /^-?\d+$/.test(text) ? `${text}.0` : text
  }
}

function withLabel(labels: string, name: string, text: string): string {
  return `${labels}${labels === '' ? '' : ','}${name}="${text}"`
}

function escaped(text: string): string {
  return /[\\\n"]/.test(text) ? text.replace(/[\\\n"]/g, (one) => (one === '\n' ? '\\n' : `\\${one}`)) : text
}

/** A number as Prometheus writes it: `NaN`, `+Inf` and `-Inf` are numbers. */
export function prometheusNumber(value: number | bigint | boolean): string {
  if (typeof value === 'boolean') return value ? '1' : '0'
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return value === Number.NEGATIVE_INFINITY ? '-Inf' : String(value)
}
