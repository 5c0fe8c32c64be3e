/**
 * The series of one target. Nearly all samples of a scrape belong to series that the scrape before had, and whose lines are
 * recognised. A scrape is taken as a whole, after all of it was read.
 */
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { distributionNamed } from '../../../../protocol/prometheus/distribution.ts'
import type { TextSink } from '../../../../protocol/prometheus/text.ts'
import {
  familyMetadata,
  readSeries,
  type TextMetadata,
  type TextSeries,
} from '../../../../protocol/prometheus/text-line.ts'
import type { LabelledSensor } from '../../../kit/labelled-sensor.ts'
import { LabelledSeries } from '../../../kit/labelled-series.ts'
import { fromForeign, type MetricMetadata, makesLate, StillClock } from '../../../kit/metrics.ts'
import type { Clock, Steps } from '../../../kit/running.ts'
import { PROMETHEUS_FAMILY } from '../metric-types.ts'
import type { TargetSpec } from './job.ts'
import { type MutableLabels, Relabelling } from './relabel.ts'

/** The label in which rules see the name of a series. */
const NAME = '__name__'
const SAMPLES_PER_STEP = 128
/** Times on the wire are exact up to here: the year 2255. */
const MAX_TIME = Number.MAX_SAFE_INTEGER

/** What every target has, besides what it says itself. */
const OWN = {
  up: 'Whether the last scrape of the target succeeded.',
  scrape_duration_seconds: 'How long the last scrape of the target took.',
  scrape_samples_scraped: 'The samples that the target had in its last scrape.',
} as const
export type OwnValues = { readonly [Name in keyof typeof OWN]: number }

/** A text that stands for a series, on its way or taken. */
export interface Known {
  readonly text: string
  /** Undefined before its first sample is taken; `dropped` if the rules drop the series. */
  entry: Entry | 'dropped' | undefined
  /** The round in which the text was there last. */
  round: number
  /** Whether it is the one that is found by its text: a line that stands twice may have two. */
  isListed: boolean
}
interface Entry {
  readonly series: LabelledSeries
  /** What the server says of the target: the target cannot say it, nor end it. */
  isOwn: boolean
  /** The round in which the series had a value last. */
  round: number
  /** The newest time that the target has given for a sample of it, microseconds since 1970; and when that came, monotonic milliseconds. */
  newest: number
  newestMs: number
}

interface TimedSample {
  readonly value: number
  /** Microseconds since 1970. */
  readonly time: number
}

const LEAST_SAMPLES = 64
/** Columns may have room for so many times as many samples as there are. */
const SPARE = 4
const NO_TIME = Number.NaN

/** The samples of a scrape, which wait until all of it is read: in columns, which serve for the next scrape too. */
export class Scrape implements TextSink<Known> {
  readonly known: Known[] = []
  values = new Float64Array(LEAST_SAMPLES)
  /** Microseconds since 1970; NaN where the target gives none. */
  times = new Float64Array(LEAST_SAMPLES)
  size = 0
  /** How many of these the rules keep, as far as that is known. */
  kept = 0
  readonly #scraped: ScrapedSeries
  readonly #limits: Pick<TargetSpec, 'maxSamples' | 'sampleLimit'>

  constructor(scraped: ScrapedSeries, limits: Pick<TargetSpec, 'maxSamples' | 'sampleLimit'>) {
    this.#scraped = scraped
    this.#limits = limits
  }

  /** Begins with the next scrape. */
  clear(): void {
    this.size = 0
    this.kept = 0
  }

  /** Gives back what a scrape needed that was much longer, and what it knew of series that are gone. */
  trim(): void {
    this.known.length = this.size
    if (this.values.length <= Math.max(LEAST_SAMPLES, SPARE * this.size)) return
    this.values = new Float64Array(LEAST_SAMPLES)
    this.times = new Float64Array(LEAST_SAMPLES)
  }

  isTimed(at: number): boolean {
    return !Number.isNaN(this.times[at])
  }

  series(text: string): Known {
    return this.#scraped.pend(text)
  }

  take(series: Known, value: number, time: number | undefined): void {
    const { maxSamples, sampleLimit = maxSamples } = this.#limits
    if (this.size >= maxSamples) throw new Error(`the target has more than \`max_samples\` (${maxSamples})`)
    if (series.entry !== 'dropped' && ++this.kept > sampleLimit)
      throw new Error(`the target has more samples than \`sample_limit\` (${sampleLimit})`)
    if (this.size === this.values.length) this.#grow()
    this.known[this.size] = series
    this.values[this.size] = value
    this.times[this.size++] = time ?? NO_TIME
  }

  #grow(): void {
    const [values, times] = [this.values, this.times]
    this.values = new Float64Array(2 * values.length)
    this.times = new Float64Array(2 * times.length)
    this.values.set(values)
    this.times.set(times)
  }
}

/** What was taken of a scrape. */
export interface Taken {
  readonly samples: number
  /** Samples of series that had one already, with the same time. */
  readonly duplicates: number
  /** Samples whose times the target gives, which a scrape before had. */
  readonly repeated: number
  /** Samples of series that the rules drop. */
  readonly dropped: number
  /** Samples beyond the bounds of labels, times or the tenant's quota of series. */
  readonly refused: number
}

export interface ScrapedSeriesOptions
  extends Pick<TargetSpec, 'labels' | 'honorsLabels' | 'honorsTimestamps' | 'metricRelabel' | 'sampleLimit'> {
  readonly sensor: LabelledSensor
  readonly clock: Pick<Clock, 'monotonicMs' | 'microseconds'>
}

export class ScrapedSeries {
  readonly #options: ScrapedSeriesOptions
  readonly #relabelling: Relabelling
  /** By name and labels as the target writes them. */
  readonly #texts = new Map<string, Known>()
  readonly #entries = new Map<LabelledSeries, Entry>()
  readonly #own = new Map<keyof OwnValues, LabelledSeries>()
  #round = 0
  /** Of the texts and entries, those that are there in this round. */
  #liveTexts = 0
  #liveEntries = 0

  constructor(options: ScrapedSeriesOptions) {
    this.#options = options
    this.#relabelling = new Relabelling(options.metricRelabel)
  }

  /** The number of series that it had in its last scrape, its own apart. */
  get size(): number {
    return this.#entries.size
  }

  /** Looks a series up; throws ProtocolError if it is new and cannot be read. Nothing is taken yet. */
  pend(text: string): Known {
    return this.#texts.get(text) ?? this.#new(text)
  }

  /** Whether the rules drop a sample is known of new ones only where samples are limited. */
  #new(series: string): Known {
    const read = readSeries(series)
    const isDropped = this.#options.sampleLimit !== undefined && this.#relabelled(read) === undefined
    const known: Known = { text: alone(series), entry: undefined, round: 0, isListed: false }
    if (!isDropped) return known
    known.entry = 'dropped'
    return this.#list(known)
  }

  /** From now on it is found by its text. */
  #list(known: Known): Known {
    const before = this.#texts.get(known.text)
    if (before !== undefined) before.isListed = false
    known.isListed = true
    this.#texts.set(known.text, known)
    return known
  }

  /** Takes a scrape: series that are not there any more end. `time`: microseconds since 1970. */
  *take(scrape: Scrape, families: ReadonlyMap<string, TextMetadata>, time: number): Steps<Taken> {
    const { sensor, honorsTimestamps, clock } = this.#options
    const round = this.#beginRound()
    this.#openOwn()
    const timed = new Map<Entry, TimedSample[]>()
    const now = new StillClock(clock)
    let [samples, duplicates, repeated, dropped, refused] = [0, 0, 0, 0, 0]
    let isNew = false
    for (let index = 0; index < scrape.size; index++) {
      // A new series may have many rules and long labels.
      if (isNew || (index > 0 && index % SAMPLES_PER_STEP === 0)) {
        yield
        now.read()
      }
      const known = scrape.known[index] as Known
      const value = scrape.values[index] as number
      const isTimed = honorsTimestamps && scrape.isTimed(index)
      const at = isTimed ? (scrape.times[index] as number) : time
      isNew = !this.#isLive(known)
      if ((isNew && !this.#begin(known, families)) || !(at >= 0 && at <= MAX_TIME)) {
        refused++
        continue
      }
      if (known.round !== round && known.isListed) this.#liveTexts++
      known.round = round
      const entry = known.entry as Entry | 'dropped'
      if (entry === 'dropped') {
        dropped++
        continue
      }
      if ((entry.round === round && !isTimed) || entry.isOwn) {
        duplicates++
        continue
      }
      if (entry.round !== round) this.#liveEntries++
      entry.round = round
      if (isTimed) {
        const others = timed.get(entry)
        if (others === undefined) timed.set(entry, [{ value, time: at }])
        else others.push({ value, time: at })
        continue
      }
      samples++
      sensor.meter.take()
      sensor.takeNumber(entry.series, value, at, now)
    }
    if (isNew) yield
    let seen = 0
    for (const [entry, all] of timed) {
      if (++seen % SAMPLES_PER_STEP === 0) yield
      const distinct = inOrder(all)
      const news = this.#newOf(entry, distinct)
      duplicates += all.length - distinct.length
      repeated += distinct.length - news.length
      for (const { value, time } of news) {
        samples++
        sensor.meter.take()
        sensor.take(entry.series, { type: BasicType.DOUBLE, value }, time)
        if (++seen % SAMPLES_PER_STEP === 0) yield
      }
    }
    yield* this.#end(round)
    return { samples, duplicates, repeated, dropped, refused }
  }

  /**
   * Those of the samples, ascending, that no scrape before had: the newer ones. If all are older, they are late, or the clock of
   * the target was set back; docs/sources/README.md#times says how these are told apart.
   */
  #newOf(entry: Entry, samples: readonly TimedSample[]): readonly TimedSample[] {
    const { clock } = this.#options
    const { newest } = entry
    const last = samples.at(-1)?.time ?? newest
    const isSetBack = last < newest && !makesLate(entry.newest, entry.newestMs, clock)
    if (last > newest || isSetBack) {
      entry.newest = last
      entry.newestMs = clock.monotonicMs()
    }
    return isSetBack ? samples : samples.filter(({ time }) => time > newest)
  }

  /** Ends everything that the target has said, after a scrape that failed. */
  *fail(): Steps<void> {
    yield* this.#end(this.#beginRound())
  }

  /** What is known about the target itself. */
  takeOwn(values: OwnValues, time: number): void {
    const { sensor } = this.#options
    this.#openOwn()
    for (const [name, series] of this.#own) {
      sensor.meter.take()
      sensor.take(series, { type: BasicType.DOUBLE, value: values[name] }, time)
    }
  }

  /** The target is scraped no more. */
  *close(): Steps<void> {
    yield* this.fail()
    for (const series of this.#own.values()) this.#options.sensor.end(series)
  }

  #beginRound(): number {
    this.#liveTexts = 0
    this.#liveEntries = 0
    return ++this.#round
  }

  *#end(round: number): Steps<void> {
    let seen = 0
    if (this.#liveTexts < this.#texts.size) {
      for (const [text, known] of this.#texts) {
        if (known.round !== round) {
          known.isListed = false
          this.#texts.delete(text)
        }
        if (++seen % SAMPLES_PER_STEP === 0) yield
      }
    }
    if (this.#liveEntries === this.#entries.size) return
    for (const [series, entry] of this.#entries) {
      if (entry.round !== round) {
        this.#entries.delete(series)
        this.#options.sensor.end(series)
      }
      if (++seen % SAMPLES_PER_STEP === 0) yield
    }
  }

  /** Makes what the server says of the target, as far as the tenant may have it. */
  #openOwn(): void {
    const { sensor, labels } = this.#options
    for (const name of Object.keys(OWN) as (keyof OwnValues)[]) {
      const known = this.#own.get(name)
      if (known !== undefined && sensor.has(known)) continue
      this.#own.delete(name)
      const series = sensor.of(PROMETHEUS_FAMILY + name, imported(Object.entries(labels)))
      if (!(series instanceof LabelledSeries)) continue
      const unit = name === 'scrape_duration_seconds' ? 's' : undefined
      sensor.describe(series, { type: BasicType.DOUBLE, unit, description: OWN[name], isCounter: false })
      this.#own.set(name, series)
      const entry = this.#entries.get(series)
      if (entry === undefined) continue
      // The target has said it while there was none.
      entry.isOwn = true
      this.#entries.delete(series)
    }
  }

  #isOwn(series: LabelledSeries): boolean {
    for (const own of this.#own.values()) if (own === series) return true
    return false
  }

  #isLive({ entry }: Known): boolean {
    return entry === 'dropped' || (entry !== undefined && this.#options.sensor.has(entry.series))
  }

  /** Begins a series that is new or has ended. Returns false if the tenant may not have it, which the sensor counts. */
  #begin(known: Known, families: ReadonlyMap<string, TextMetadata>): boolean {
    const { sensor } = this.#options
    // A line that stands twice in its first scrape was looked up twice.
    const same = this.#texts.get(known.text)
    if (same !== undefined && same !== known && this.#isLive(same)) {
      known.entry = same.entry
      return true
    }
    const read = readSeries(known.text)
    const { name } = read
    const all = this.#relabelled(read)
    if (all === undefined) known.entry = 'dropped'
    else {
      const taken = all.get(NAME) ?? ''
      all.delete(NAME)
      const series = sensor.of(PROMETHEUS_FAMILY + taken, imported(all))
      if (!(series instanceof LabelledSeries)) return false
      sensor.describe(series, describedBy(name, familyMetadata(name, families)))
      known.entry = this.#entries.get(series) ?? this.#newEntry(series)
    }
    this.#list(known)
    return true
  }

  #newEntry(series: LabelledSeries): Entry {
    const isOwn = this.#isOwn(series)
    const entry = { series, isOwn, round: 0, newest: Number.NEGATIVE_INFINITY, newestMs: 0 }
    if (!isOwn) this.#entries.set(series, entry)
    return entry
  }

  /** Its labels after the rules, with its name among them; undefined if they drop it. */
  #relabelled({ name, labels }: TextSeries): MutableLabels | undefined {
    const all = this.#labelsOf(labels).set(NAME, name)
    return this.#relabelling.apply(all) ? all : undefined
  }

  /** Its labels with those of the target, as their sources call them. */
  #labelsOf(given: readonly (readonly [name: string, text: string])[]): MutableLabels {
    const { labels, honorsLabels } = this.#options
    const all = new Map(given.filter(([, text]) => text !== ''))
    if (honorsLabels) {
      const named = new Set(given.map(([name]) => name))
      for (const [name, text] of Object.entries(labels)) if (!named.has(name)) all.set(name, text)
    } else {
      for (const [name, text] of [...all]) {
        if (!Object.hasOwn(labels, name)) continue
        let exported = `exported_${name}`
        while (all.has(exported) || Object.hasOwn(labels, exported)) exported = `exported_${exported}`
        all.delete(name)
        all.set(exported, text)
      }
      for (const [name, text] of Object.entries(labels)) all.set(name, text)
    }
    return all
  }
}

function imported(labels: Iterable<readonly [name: string, text: string]>): [name: string, text: string][] {
  return Array.from(labels, ([name, text]) => [fromForeign(name), text])
}

/** Ascending by time; of those with the same time the first. */
function inOrder(samples: readonly TimedSample[]): readonly TimedSample[] {
  if (samples.length === 1) return samples
  const sorted = samples.toSorted((one, other) => one.time - other.time)
  return sorted.filter(({ time }, at) => at === 0 || time !== sorted[at - 1]?.time)
}

function describedBy(name: string, metadata: TextMetadata | undefined): MetricMetadata {
  return {
    type: BasicType.DOUBLE,
    unit: alone(metadata?.unit ?? '') || undefined,
    description: alone(metadata?.help ?? '') || undefined,
    isCounter: metadata && isCounter(name, metadata.type),
    distribution: metadata && distributionNamed(metadata.type),
  }
}

/** Whether a sample of a family only grows: those of a histogram or summary do, but for the quantiles. */
function isCounter(name: string, type: string): boolean | undefined {
  if (type === 'counter') return !name.endsWith('_created')
  if (type === 'gauge') return false
  if (type === 'histogram' || type === 'summary') return /_(?:bucket|sum|count)$/.test(name)
  return undefined
}

/** A copy, which does not keep the whole text that it was cut out of. */
function alone(text: string): string {
  return Buffer.from(text).toString()
}
