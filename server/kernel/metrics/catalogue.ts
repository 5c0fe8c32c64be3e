/**
 * The metrics of an open family that were seen so far, one for each name however many sources send it, and their series.
 * Sources may disagree about type, unit and description. Votes are counted as they change, because `metric` is called once
 * per series and consumer and must not look at every source.
 */
import type { BasicType } from '../../../protocol/monitor/constants.ts'
import { type Field, nameProblem } from '../../../protocol/monitor/value.ts'
import type { Metric, Parameter, Series } from './metric.ts'
import { SortedNames } from './sorted-names.ts'

/** What one series says about its metric. */
export interface MetricMetadata {
  readonly type: BasicType | undefined
  readonly unit: string | undefined
  readonly description: string | undefined
  /** As `isCounter` of `Metric`. */
  readonly isCounter?: boolean | undefined
  /** As `distribution` of `Metric`. */
  readonly distribution?: Metric['distribution']
}

/** A series with the metadata that the catalogue has counted for it, `NO_METADATA` at first. */
export interface CataloguedSeries extends Series {
  metadata: MetricMetadata
}

export const NO_METADATA: MetricMetadata = { type: undefined, unit: undefined, description: undefined }

/** Characters of a unit and of a description. They are kept as long as their series, and shown to everybody who may read it. */
const MAX_UNIT = 64
const MAX_DESCRIPTION = 1_000

/** The texts of metadata without what is beyond the bounds, in copies: a text of a request would keep the whole of it. */
export function boundedMetadata<M extends Pick<MetricMetadata, 'unit' | 'description'>>(metadata: M): M {
  const { unit, description } = metadata
  return { ...metadata, unit: copied(unit, MAX_UNIT), description: copied(description, MAX_DESCRIPTION) }
}

function copied(text: string | undefined, most: number): string | undefined {
  return text && Buffer.from(text.slice(0, most).toWellFormed()).toString()
}

/** Whether what is kept of a text is all of it, or the bounded beginning of it. */
function isKept(kept: string | undefined, text: string | undefined, most: number): boolean {
  if (text === undefined || text.length <= most) return kept === text
  return kept === text.slice(0, most).toWellFormed()
}

type Details<S> = (series: S) => readonly Field[]

export class Catalogue<S extends CataloguedSeries> {
  readonly #family: string
  readonly #parameters: readonly Parameter[]
  readonly #details: Details<S> | undefined
  readonly #entries = new SortedNames<Entry<S>>()
  /** Grows whenever a metric is new, is there no more, or is described in another way. */
  changes = 0

  /**
   * `family` is the prefix of all names, with the dot; `parameters` belong to every metric; `details` gives those of one
   * series.
   */
  constructor(family: string, parameters: readonly Parameter[], details?: Details<S>) {
    this.#family = family
    this.#parameters = parameters
    this.#details = details
  }

  add(series: S): void {
    let entry = this.#entries.get(series.name)
    if (!entry) {
      entry = new Entry(series.name, this.#parameters, this.#details)
      this.#entries.set(series.name, entry)
      this.changes++
    }
    entry.series.add(series)
  }

  remove(series: S): void {
    const entry = this.#entries.get(series.name)
    if (!entry?.series.delete(series)) return
    if (entry.count(series, NO_METADATA) || entry.series.size === 0) this.changes++
    if (entry.series.size === 0) this.#entries.delete(series.name)
  }

  /** To be called whenever the metadata of a series changes. */
  update(series: S, metadata: MetricMetadata): void {
    const { type, unit, description, isCounter, distribution } = series.metadata
    const isSame = type === metadata.type && isCounter === metadata.isCounter && distribution === metadata.distribution
    if (isSame && isKept(unit, metadata.unit, MAX_UNIT) && isKept(description, metadata.description, MAX_DESCRIPTION)) {
      return
    }
    if (this.#entries.get(series.name)?.count(series, boundedMetadata(metadata)) === true) this.changes++
  }

  /** Those whose names begin with `prefix` and come after `after`, ascending. */
  *metrics(prefix = '', after = ''): Generator<Metric> {
    for (const entry of this.#entries.values(prefix, after)) yield entry.metric
  }

  /** The metric of any well-formed name. One that no source has sent yet has no type. */
  metric(name: string): Metric | undefined {
    const entry = this.#entries.get(name)
    if (entry) return entry.metric
    const isOurs = name.startsWith(this.#family) && name.length > this.#family.length
    return isOurs && nameProblem(name) === undefined ? new Entry(name, this.#parameters).metric : undefined
  }

  /** Those of one name, or of all names with a prefix. Of names that are not wanted it gives one each, so that the reader can pause. */
  *series(name?: string, prefix = '', isWanted: (name: string) => boolean = () => true): Generator<S> {
    if (name !== undefined) {
      yield* this.#entries.get(name)?.series ?? []
      return
    }
    for (const { name, series } of this.#entries.values(prefix)) {
      if (isWanted(name)) yield* series
      else yield series.values().next().value as S
    }
  }
}

class Entry<S extends CataloguedSeries> {
  readonly series = new Set<S>()
  readonly name: string
  readonly #parameters: readonly Parameter[]
  readonly #types = new MetadataVotes<BasicType>()
  readonly #units = new MetadataVotes<string>()
  readonly #descriptions = new MetadataVotes<string>()
  readonly #counters = new MetadataVotes<boolean>()
  readonly #distributions = new MetadataVotes<'histogram' | 'summary'>()
  readonly #details: Details<S> | undefined
  #metric: Metric | undefined

  constructor(name: string, parameters: readonly Parameter[], details?: Details<S>) {
    this.name = name
    this.#parameters = parameters
    this.#details = details
  }

  /** Returns whether the metric is described in another way now. */
  count(series: S, metadata: MetricMetadata): boolean {
    const before = this.metric
    this.#types.change(series.metadata.type, metadata.type)
    this.#units.change(series.metadata.unit, metadata.unit)
    this.#descriptions.change(series.metadata.description, metadata.description)
    this.#counters.change(series.metadata.isCounter, metadata.isCounter)
    this.#distributions.change(series.metadata.distribution, metadata.distribution)
    series.metadata = metadata
    this.#metric = undefined
    const { type, unit, description, isCounter } = this.metric
    if (before.type !== type || before.unit !== unit) return true
    return before.description !== description || before.isCounter !== isCounter
  }

  get metric(): Metric {
    this.#metric ??= {
      name: this.name,
      kind: 'continuous',
      type: this.#types.consensus,
      unit: this.#units.consensus ?? '',
      description: this.#descriptions.first ?? '',
      parameters: this.#parameters,
      isCounter: this.#counters.consensus,
      ...(this.#distributions.consensus && { distribution: this.#distributions.consensus }),
      ...(this.#details && { details: () => this.#seriesDetails() }),
    }
    return this.#metric
  }

  /** The details of the oldest series that has any. */
  #seriesDetails(): readonly Field[] {
    for (const series of this.series) {
      const details = this.#details?.(series) ?? []
      if (details.length > 0) return details
    }
    return []
  }
}

/** Counts how many series say the same. */
class MetadataVotes<T> {
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

  /** What all series with an opinion agree on; undefined if they do not. */
  get consensus(): T | undefined {
    return this.#counts.size === 1 ? this.first : undefined
  }
}
