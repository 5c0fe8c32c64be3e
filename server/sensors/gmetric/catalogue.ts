/**
 * The metrics seen so far, one per name however many hosts send it, and the series of each. Whatever the hosts say of a
 * metric is counted as it changes: `metric` is asked once per series and consumer, and must not look at every host.
 */
import type { Metadata } from '../../../protocol/gmetric/packet.ts'
import { METRIC_PREFIX } from '../../../protocol/gmetric/text.ts'
import { BasicType } from '../../../protocol/monitor/constants.ts'
import { nameProblem } from '../../../protocol/monitor/value.ts'
import type { Metric, Parameter } from '../../metrics/metric.ts'
import type { GmetricSeries } from './series.ts'

const PARAMETERS: readonly Parameter[] = [
  {
    name: 'host',
    type: BasicType.STRING,
    description: 'The host: its address or, where packets are spoofed, also the name they give it.',
    selects: 'any',
  },
]

export class Catalogue {
  readonly #entries = new Map<string, Entry>()

  add(series: GmetricSeries): void {
    let entry = this.#entries.get(series.name)
    if (!entry) {
      entry = new Entry(series.name)
      this.#entries.set(series.name, entry)
    }
    entry.series.add(series)
    this.update(series)
  }

  remove(series: GmetricSeries): void {
    const entry = this.#entries.get(series.name)
    if (!entry?.series.delete(series)) return
    entry.count(series, undefined, undefined, undefined)
    if (entry.series.size === 0) this.#entries.delete(series.name)
  }

  /** To be called whenever a series got a value or metadata. */
  update(series: GmetricSeries): void {
    const { latest, metadata } = series.received
    const type = latest?.value.type
    const unit = metadata?.units || undefined
    const description = metadata && describe(metadata)
    if (type === series.type && unit === series.unit && description === series.description) return
    this.#entries.get(series.name)?.count(series, type, unit, description)
  }

  *metrics(): Generator<Metric> {
    for (const entry of this.#entries.values()) yield entry.metric
  }

  /** Of every well-formed name: what nobody sends yet has no type. */
  metric(name: string): Metric | undefined {
    const entry = this.#entries.get(name)
    if (entry) return entry.metric
    const isOurs = name.startsWith(METRIC_PREFIX) && name.length > METRIC_PREFIX.length
    return isOurs && nameProblem(name) === undefined ? new Entry(name).metric : undefined
  }

  *series(name?: string): Generator<GmetricSeries> {
    if (name !== undefined) yield* this.#entries.get(name)?.series ?? []
    else for (const entry of this.#entries.values()) yield* entry.series
  }
}

class Entry {
  readonly series = new Set<GmetricSeries>()
  readonly #name: string
  readonly #types = new Opinions<BasicType>()
  readonly #units = new Opinions<string>()
  readonly #descriptions = new Opinions<string>()
  #metric: Metric | undefined

  constructor(name: string) {
    this.#name = name
  }

  count(
    series: GmetricSeries,
    type: BasicType | undefined,
    unit: string | undefined,
    description: string | undefined,
  ): void {
    this.#types.change(series.type, type)
    this.#units.change(series.unit, unit)
    this.#descriptions.change(series.description, description)
    series.type = type
    series.unit = unit
    series.description = description
    this.#metric = undefined
  }

  get metric(): Metric {
    this.#metric ??= {
      name: this.#name,
      kind: 'continuous',
      type: this.#types.agreed,
      unit: this.#units.agreed ?? '',
      description: this.#descriptions.first ?? '',
      parameters: PARAMETERS,
    }
    return this.#metric
  }
}

/** How many hosts say what. */
class Opinions<T> {
  readonly #counts = new Map<T, number>()

  change(before: T | undefined, after: T | undefined): void {
    if (before === after) return
    if (before !== undefined) {
      const left = this.#counts.get(before)! - 1
      if (left === 0) this.#counts.delete(before)
      else this.#counts.set(before, left)
    }
    if (after !== undefined) this.#counts.set(after, (this.#counts.get(after) ?? 0) + 1)
  }

  get first(): T | undefined {
    return this.#counts.keys().next().value
  }

  /** Of all that say something. */
  get agreed(): T | undefined {
    return this.#counts.size === 1 ? this.first : undefined
  }
}

function describe({ extra }: Metadata): string | undefined {
  const said = (key: string) => extra.find((element) => element.key === key)?.data
  return said('DESC') || said('TITLE') || undefined
}
