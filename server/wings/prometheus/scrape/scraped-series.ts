/**
 * The series of one target. Nearly all samples of a scrape belong to series that the scrape before had, and whose text is
 * known: these cost a look into a map. A scrape is taken as a whole, after all of it was read.
 */
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { distributionNamed } from '../../../../protocol/prometheus/distribution.ts'
import {
  familyMetadata,
  readSeries,
  type TextMetadata,
  type TextSample,
  type TextSeries,
} from '../../../../protocol/prometheus/text.ts'
import type { LabelledSensor } from '../../../kit/labelled-sensor.ts'
import { LabelledSeries } from '../../../kit/labelled-series.ts'
import { fromForeign, type MetricMetadata, makesLate } from '../../../kit/metrics.ts'
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

/** A sample that waits until the whole scrape is read. */
export interface Pending extends Pick<TextSample, 'value' | 'time'> {
  /** Its series, or the text of one that is new: the others would keep the whole body in memory. */
  readonly of: Known | string
}

/** A text that stands for a series. */
interface Known {
  readonly text: string
  /** Undefined if the rules drop the series. */
  readonly entry: Entry | undefined
  /** The round in which the text was there last. */
  round: number
}
interface Entry {
  readonly series: LabelledSeries
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
  #round = 0

  constructor(options: ScrapedSeriesOptions) {
    this.#options = options
    this.#relabelling = new Relabelling(options.metricRelabel)
  }

  /** The number of series that it had in its last scrape, its own apart. */
  get size(): number {
    return this.#entries.size
  }

  /** Looks a sample up; throws ProtocolError if it is new and cannot be read. Nothing is taken yet. */
  pend(sample: TextSample): Pending {
    const { series, value, time } = sample
    const of = this.#texts.get(series) ?? this.#new(series)
    return { of, value, time }
  }

  /** Whether the rules drop a sample is known of new ones only where samples are limited. */
  #new(series: string): Known | string {
    const read = readSeries(series)
    if (this.#options.sampleLimit === undefined || this.#relabelled(read) !== undefined) return series
    return this.#keep({ text: alone(series), entry: undefined, round: 0 })
  }

  /** Takes a scrape: series that are not there any more end. `time`: microseconds since 1970. */
  *take(pending: readonly Pending[], families: ReadonlyMap<string, TextMetadata>, time: number): Steps<Taken> {
    const { sensor, honorsTimestamps } = this.#options
    const round = ++this.#round
    const own = new Set(Object.keys(OWN).map((name) => this.#own(name as keyof OwnValues)))
    const timed = new Map<Entry, TimedSample[]>()
    let [samples, duplicates, repeated, dropped, refused, seen] = [0, 0, 0, 0, 0, 0]
    for (const { of, value, time: given } of pending) {
      // A new series may have many rules and long labels.
      if (typeof of === 'string' || ++seen % SAMPLES_PER_STEP === 0) yield
      const known = this.#known(of, families)
      const at = honorsTimestamps && given !== undefined ? given : time
      if (known === undefined || !(at >= 0 && at <= MAX_TIME)) {
        refused++
        continue
      }
      known.round = round
      const { entry } = known
      if (entry === undefined) {
        dropped++
        continue
      }
      const isTimed = honorsTimestamps && given !== undefined
      if ((entry.round === round && !isTimed) || own.has(entry.series)) {
        duplicates++
        // What the server says of the target does not end with what the target says.
        if (own.has(entry.series)) this.#entries.delete(entry.series)
        continue
      }
      entry.round = round
      if (isTimed) {
        const others = timed.get(entry)
        if (others === undefined) timed.set(entry, [{ value, time: at }])
        else others.push({ value, time: at })
        continue
      }
      samples++
      sensor.meter.take()
      sensor.take(entry.series, { type: BasicType.DOUBLE, value }, at)
    }
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
    yield* this.#end(++this.#round)
  }

  /** What is known about the target itself. */
  takeOwn(values: OwnValues, time: number): void {
    const { sensor } = this.#options
    for (const name of Object.keys(OWN) as (keyof OwnValues)[]) {
      const series = this.#own(name)
      if (series === undefined) continue
      sensor.meter.take()
      sensor.take(series, { type: BasicType.DOUBLE, value: values[name] }, time)
    }
  }

  /** The target is scraped no more. */
  *close(): Steps<void> {
    yield* this.fail()
    for (const name of Object.keys(OWN) as (keyof OwnValues)[]) {
      const series = this.#own(name)
      if (series !== undefined) this.#options.sensor.end(series)
    }
  }

  *#end(round: number): Steps<void> {
    let seen = 0
    for (const [text, known] of this.#texts) {
      if (known.round !== round) this.#texts.delete(text)
      if (++seen % SAMPLES_PER_STEP === 0) yield
    }
    for (const [series, entry] of this.#entries) {
      if (entry.round !== round) {
        this.#entries.delete(series)
        this.#options.sensor.end(series)
      }
      if (++seen % SAMPLES_PER_STEP === 0) yield
    }
  }

  #own(name: keyof OwnValues): LabelledSeries | undefined {
    const { sensor, labels } = this.#options
    const series = sensor.of(PROMETHEUS_FAMILY + name, imported(Object.entries(labels)))
    if (!(series instanceof LabelledSeries)) return undefined
    const unit = name === 'scrape_duration_seconds' ? 's' : undefined
    sensor.describe(series, { type: BasicType.DOUBLE, unit, description: OWN[name], isCounter: false })
    return series
  }

  /** The series of a sample, which may be new or have ended; undefined if the tenant may not have it, which the sensor counts. */
  #known(of: Known | string, families: ReadonlyMap<string, TextMetadata>): Known | undefined {
    const { sensor } = this.#options
    if (typeof of !== 'string' && (of.entry === undefined || sensor.has(of.entry.series))) return of
    const text = typeof of === 'string' ? alone(of) : of.text
    const read = readSeries(text)
    const { name } = read
    const all = this.#relabelled(read)
    if (all === undefined) return this.#keep({ text, entry: undefined, round: 0 })
    const taken = all.get(NAME) ?? ''
    all.delete(NAME)
    const series = sensor.of(PROMETHEUS_FAMILY + taken, imported(all))
    if (!(series instanceof LabelledSeries)) return undefined
    sensor.describe(series, describedBy(name, familyMetadata(name, families)))
    const entry = this.#entries.get(series) ?? { series, round: 0, newest: Number.NEGATIVE_INFINITY, newestMs: 0 }
    this.#entries.set(series, entry)
    return this.#keep({ text, entry, round: 0 })
  }

  /** Its labels after the rules, with its name among them; undefined if they drop it. */
  #relabelled({ name, labels }: TextSeries): MutableLabels | undefined {
    const all = this.#labelsOf(labels).set(NAME, name)
    return this.#relabelling.apply(all) ? all : undefined
  }

  #keep(known: Known): Known {
    this.#texts.set(known.text, known)
    return known
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

/** Whether rules are known to drop its series: always, where samples are limited. */
export function isDropped({ of }: Pending): boolean {
  return typeof of !== 'string' && of.entry === undefined
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
