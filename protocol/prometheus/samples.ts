/** The samples of one metric in a family of the text formats. Times are microseconds since 1970; without one, the scraper gives its own. */
import {
  cumulative,
  type DistributionPart,
  type DistributionType,
  type Histogram,
  OWN_LABEL,
  prometheusNumber,
  type Summary,
} from './distribution.ts'
import { escaped, labelsKey, labelsText, prometheusLabels, readable, type SampleLabel } from './labels.ts'
import type { Lines } from './lines.ts'

export type ExpositionFormat = 'prometheus' | 'openmetrics'
export type FamilyType = 'counter' | 'gauge' | 'histogram' | 'summary' | 'unknown'

/** What is written above the samples of a family. */
export interface FamilyMetadata {
  readonly type: FamilyType
  readonly help: string
  /** As its source names it, such as `s`; empty if it has none. */
  readonly unit: string
}

/** What a name was made of. */
export interface NameOrigin {
  readonly metric: string
  /** It came from Prometheus, and goes back under its own name. */
  readonly isNative: boolean
}

/** The label that tells metrics apart whose names became one. */
export const NAME_LABEL = 'cinnabar_name'
const NONE: ReadonlySet<string> = new Set()

export interface SamplesOptions extends NameOrigin {
  readonly metadata: FamilyMetadata
  /** Without `_total`, if it is a counter that gets it. */
  readonly base: string
  readonly sampleName: string
  readonly shape: 'number' | DistributionType
  readonly into: SampleLines
}

/** What all samples of an exposition share. */
export interface SampleLines {
  readonly format: ExpositionFormat
  readonly lines: Lines
  /** Takes the length of each line, 0 for one that is left out; returns whether it is still to be written. */
  readonly count: (length: number) => boolean
}

export class Samples {
  readonly sampleName: string
  readonly metric: string
  readonly isNative: boolean
  readonly shape: SamplesOptions['shape']
  readonly help: string
  readonly unit: string
  /** Whether all its numbers can be those of a counter. */
  isCount = true
  readonly #base: string
  #type: FamilyType
  readonly #into: SampleLines
  /** The labels of its first sample, and of all once there are more: most have one, and there may be a hundred thousand of them. */
  #first: string | undefined
  #seen: Set<string> | undefined
  /** Where its first lines stand; and the others, places and lengths in turn, once there are some. */
  #place = 0
  #length = 0
  #others: number[] | undefined
  #nameLabels: Set<string> | undefined

  constructor(options: SamplesOptions) {
    this.sampleName = options.sampleName
    this.metric = options.metric
    this.isNative = options.isNative
    this.shape = options.shape
    this.help = options.metadata.help
    this.unit = options.metadata.unit
    this.#base = options.base
    this.#type = options.metadata.type
    this.#into = options.into
  }

  get type(): FamilyType {
    return this.#type
  }

  /** The name that it asks for. */
  get name(): string {
    return this.#type === 'counter' ? this.sampleName : this.#base
  }

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** The labels of its samples whose names begin as that which tells metrics apart. */
  get nameLabels(): ReadonlySet<string> {
    return this.#nameLabels ?? NONE
  }

  /** A second source of the same metric: what they do not agree on is unknown. */
  alsoOf({ type }: FamilyMetadata): void {
    if (type !== this.#type) this.#type = 'unknown'
  }

  /** A second sample with the same labels is left out. */
  number(given: Iterable<SampleLabel>, value: number | bigint | boolean, time?: number): void {
    const labels = this.#new(given)
    if (labels === undefined) return
    if (!(Number(value) >= 0)) this.isCount = false
    this.#line('', labelsText(labels), prometheusNumber(value), this.#timeText(time))
  }

  histogram(given: Iterable<SampleLabel>, histogram: Histogram, time?: number): void {
    const labels = this.#new(given, OWN_LABEL.histogram)
    if (labels === undefined) return
    const [text, at] = [labelsText(labels), this.#timeText(time)]
    const { buckets, count } = cumulative(histogram)
    for (const [place, bucket] of buckets.entries()) {
      const bound = histogram.bounds[place] ?? Number.POSITIVE_INFINITY
      this.#line('_bucket', withLabel(text, OWN_LABEL.histogram, this.#boundText(bound)), String(bucket), at)
    }
    this.#totals(text, count, histogram.sum, at)
  }

  summary(given: Iterable<SampleLabel>, { quantiles, values, count, sum }: Summary, time?: number): void {
    const labels = this.#new(given, OWN_LABEL.summary)
    if (labels === undefined) return
    const [text, at] = [labelsText(labels), this.#timeText(time)]
    for (const [place, quantile] of quantiles.entries()) {
      const value = prometheusNumber(values[place] ?? Number.NaN)
      this.#line('', withLabel(text, OWN_LABEL.summary, this.#boundText(quantile)), value, at)
    }
    this.#totals(text, count, sum, at)
  }

  /** The samples of one histogram or summary as Prometheus had them, in order. */
  parts(parts: readonly DistributionPart[]): void {
    for (const { suffix, labels, value, time } of parts) {
      this.#notice(labels)
      this.#line(suffix, labelsText(labels), prometheusNumber(value), this.#timeText(time))
    }
  }

  #totals(labels: string, count: bigint, sum: number | undefined, at: string): void {
    this.#line('_count', labels, String(count), at)
    if (sum !== undefined) this.#line('_sum', labels, prometheusNumber(sum), at)
  }

  /** The text in which its name is this one, and in which a label names its metric, if one is given. */
  *text(name: string, label: string | undefined): Generator<string> {
    if (name === this.sampleName && label === undefined) {
      yield* this.#texts()
      return
    }
    const mark = label === undefined ? '' : `${label}="${escaped(readable(this.metric))}"`
    // Nothing but a sample begins a line; \r and the like in a label begin none.
    const start = new RegExp(`(?<![^\\n])${this.sampleName}([a-z_]*)(\\{?)`, 'g')
    for (const text of this.#texts()) {
      yield text.replace(start, (_, suffix: string, brace: string) => {
        if (mark === '') return name + suffix + brace
        return `${name}${suffix}{${mark}${brace === '' ? '}' : ','}`
      })
    }
  }

  /** Labels as they are written; undefined if there was a sample with the same. */
  #new(given: Iterable<SampleLabel>, own?: string): readonly SampleLabel[] | undefined {
    const labels = prometheusLabels(given, own)
    const key = this.#into.lines.labels(labelsKey(labels))
    if (key === this.#first || this.#seen?.has(key) === true) {
      this.#into.count(0)
      return undefined
    }
    if (this.#first === undefined) this.#first = key
    else {
      this.#seen ??= new Set()
      this.#seen.add(key)
    }
    this.#notice(labels)
    return labels
  }

  #notice(labels: readonly SampleLabel[]): void {
    for (const [name] of labels) {
      if (!name.startsWith(NAME_LABEL)) continue
      this.#nameLabels ??= new Set()
      this.#nameLabels.add(name)
    }
  }

  #line(suffix: string, labels: string, value: string, time: string): void {
    const { sampleName } = this
    const line =
      labels === '' ? `${sampleName}${suffix} ${value}${time}\n` : `${sampleName}${suffix}{${labels}} ${value}${time}\n`
    if (this.#into.count(line.length)) this.#keep(this.#into.lines.add(line), line.length)
  }

  #keep(place: number, length: number): void {
    const { lines } = this.#into
    if (this.#length === 0) [this.#place, this.#length] = [place, length]
    else if (this.#others === undefined) {
      if (lines.follow(this.#place, this.#length, place)) this.#length += length
      else this.#others = [place, length]
    } else {
      const last = this.#others.length - 1
      const before = this.#others[last] as number
      if (lines.follow(this.#others[last - 1] as number, before, place)) this.#others[last] = before + length
      else this.#others.push(place, length)
    }
  }

  *#texts(): Generator<string> {
    const { lines } = this.#into
    yield lines.text(this.#place, this.#length)
    const others = this.#others ?? []
    for (let at = 0; at < others.length; at += 2) yield lines.text(others[at] as number, others[at + 1] as number)
  }

  #timeText(time: number | undefined): string {
    if (time === undefined) return ''
    return this.#into.format === 'openmetrics' ? ` ${(time / 1_000_000).toFixed(6)}` : ` ${Math.floor(time / 1_000)}`
  }

  /** OpenMetrics has bounds as floating-point numbers: `1.0`. */
  #boundText(bound: number): string {
    const text = prometheusNumber(bound)
    return this.#into.format === 'openmetrics' && /^-?\d+$/.test(text) ? `${text}.0` : text
  }
}

function withLabel(labels: string, name: string, text: string): string {
  return `${labels}${labels === '' ? '' : ','}${name}="${text}"`
}
