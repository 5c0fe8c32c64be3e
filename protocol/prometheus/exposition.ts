/**
 * Writes the text formats that Prometheus scrapes: its own, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats),
 * and OpenMetrics 1.0 (github.com/prometheus/OpenMetrics). Samples may be added in any order, with any names and labels; the
 * text is valid all the same, and has them by family.
 */
import {
  type DistributionPart,
  type DistributionType,
  distributionInOrder,
  distributionNames,
  OWN_LABEL,
  suffixOf,
} from './distribution.ts'
import { Family } from './family.ts'
import { labelsKey, prometheusLabels } from './labels.ts'
import { Lines } from './lines.ts'
import { type ExpositionFormat, type FamilyMetadata, type NameOrigin, type SampleLines, Samples } from './samples.ts'

export const contentTypes: Readonly<Record<ExpositionFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

const TOTAL = '_total'
/** Families that are put in order in one step. */
const PER_STEP = 256
/** What the samples of a metric take of memory besides their lines and labels, until they are written as a family. */
const SAMPLES_BYTES = 512
/** What a sample of a histogram or summary takes until these are put together. */
const PART_BYTES = 896
/** Stands before a name that a family of another shape has taken. */
const RENAMED = 'cinnabar_'

/** A histogram or summary of Prometheus itself, which comes sample by sample. */
interface Collected {
  readonly name: string
  readonly metadata: FamilyMetadata & { readonly type: DistributionType }
  /** By their labels without that of the bucket or quantile. */
  readonly groups: Map<string, DistributionPart[]>
  /** The suffixes and labels of all its samples. */
  readonly seen: Set<string>
  /** The metric of each suffix. */
  readonly metrics: Map<string, string>
}

export class Exposition {
  readonly #format: ExpositionFormat
  readonly #maxLength: number
  readonly #into: SampleLines
  /** By their name, or, if others have it, by their shape, name and metric. */
  readonly #samples = new Map<string, Samples>()
  readonly #collected = new Map<string, Collected>()
  #length = 0
  /** Those of histograms and summaries that came. */
  #parts = 0
  /** What was counted when it came is not counted again. */
  #isSettling = false
  #repeated = 0

  /** `maxLength`: characters of all samples together. */
  constructor(format: ExpositionFormat, maxLength = Number.POSITIVE_INFINITY) {
    this.#format = format
    this.#maxLength = maxLength
    this.#into = { format, lines: new Lines(), count: this.#count }
  }

  /** About what it takes of memory by now. */
  get bytes(): number {
    return this.#into.lines.bytes + this.#samples.size * SAMPLES_BYTES + this.#parts * PART_BYTES
  }

  /** True once there was more text than may be: what is added then is not written. */
  get isFull(): boolean {
    return this.#length > this.#maxLength
  }

  /** Samples that were left out because their family had one with the same labels. */
  get repeated(): number {
    return this.#repeated
  }

  /** Where samples of a metric go. `name`: as `prometheusName` makes it. That of a counter gets `_total`, unless it `isNative`. */
  samples(name: string, metadata: FamilyMetadata, origin: string | NameOrigin): Samples {
    const { metric, isNative } = typeof origin === 'string' ? { metric: origin, isNative: false } : origin
    const { type } = metadata
    const isTotal = type === 'counter' && !isNative
    const base = isTotal && name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : name
    const shape = type === 'histogram' || type === 'summary' ? type : 'number'
    let key = base
    let samples = this.#samples.get(key)
    if (samples !== undefined && (samples.shape !== shape || samples.metric !== metric)) {
      key = `${shape}\0${base}\0${metric}`
      samples = this.#samples.get(key)
    }
    if (samples === undefined) {
      const sampleName = isTotal ? base + TOTAL : base
      samples = new Samples({ base, sampleName, shape, metadata, metric, isNative, into: this.#into })
      this.#samples.set(key, samples)
    } else samples.alsoOf(metadata)
    return samples
  }

  /** A sample of Prometheus that belongs to a histogram or summary. Its family is one if all its samples make one; a second one with the same labels is left out. */
  part(
    name: string,
    metadata: FamilyMetadata & { readonly type: DistributionType },
    metric: string,
    sample: Omit<DistributionPart, 'suffix'>,
  ): void {
    const { type } = metadata
    const labels = prometheusLabels(sample.labels)
    const suffix = suffixOf(name, labels, type)
    if (suffix === undefined) {
      const unknown = this.samples(name, { ...metadata, type: 'unknown' }, { metric, isNative: true })
      unknown.number(labels, sample.value, sample.time)
      return
    }
    const base = name.slice(0, name.length - suffix.length)
    const key = `${type}\0${base}`
    const collected = this.#collected.get(key) ?? newlyCollected(base, metadata)
    this.#collected.set(key, collected)
    const ofSample = `${suffix}\0${labelsKey(labels)}`
    if (collected.seen.has(ofSample)) {
      this.#count(0)
      return
    }
    collected.seen.add(ofSample)
    this.#parts++
    collected.metrics.set(suffix, metric)
    const group = labelsKey(labels.filter(([label]) => label !== OWN_LABEL[type]))
    const parts = collected.groups.get(group) ?? []
    collected.groups.set(group, parts)
    if (this.#count(name.length + group.length)) parts.push({ ...sample, labels, suffix })
  }

  readonly #count = (length: number): boolean => {
    if (length === 0) this.#repeated++
    else if (!this.#isSettling) this.#length += length
    return this.#isSettling || !this.isFull
  };

  /** The whole text, in pieces; undefined is a place to pause, as there may be a hundred thousand families. */
  *text(): Generator<string | undefined> {
    yield* this.settle()
    const taken = new Map<string, Family>()
    const families = yield* inOrder(yield* this.#families(taken), byName)
    for (const family of families) yield* family.text(this.#format, taken)
    if (this.#format === 'openmetrics') yield '# EOF\n'
  }

  /**
   * To be run when everything was added: what came sample by sample becomes histograms and summaries, or else samples whose type
   * is unknown. There may be a million of them: each step does those of a few lines.
   */
  *settle(): Generator<undefined, void> {
    this.#isSettling = true
    const taken = new Set<string>()
    let sinceStep = 0
    for (const { isNative, sampleName } of this.#samples.values()) {
      if (isNative) taken.add(sampleName)
      if (++sinceStep % PER_STEP === 0) yield
    }
    const collected = yield* inOrder(this.#collected.values(), byName)
    this.#collected.clear()
    for (const { name, metadata, groups, metrics } of collected) {
      const names = distributionNames(name, metadata.type)
      const isFree = !names.some((name) => taken.has(name))
      const ordered: DistributionPart[][] = []
      for (const parts of isFree ? groups.values() : []) {
        const inOrder = distributionInOrder(parts, metadata.type)
        if (inOrder === undefined) break
        ordered.push(inOrder)
        yield
      }
      if (ordered.length === groups.size) {
        for (const name of names) taken.add(name)
        const metric = metrics.get('') ?? metrics.values().next().value ?? name
        const samples = this.samples(name, metadata, { metric, isNative: true })
        for (const parts of ordered) {
          samples.parts(parts)
          yield
        }
        continue
      }
      for (const parts of groups.values()) {
        for (const { suffix, labels, value, time } of parts) {
          const metric = metrics.get(suffix) ?? name
          const unknown = { ...metadata, type: 'unknown' } as const
          this.samples(name + suffix, unknown, { metric, isNative: true }).number(labels, value, time)
          taken.add(name + suffix)
        }
        yield
      }
    }
    this.#isSettling = false
  }

  /**
   * Every name belongs to one family: that of Prometheus itself first, then that of the metric whose name comes first. Others of
   * the same shape stand in it with a label that names their metric; those of another shape get another name besides. `taken`
   * gets the family of each name.
   */
  *#families(taken: Map<string, Family>): Generator<undefined, Family[]> {
    const families: Family[] = []
    let sinceStep = 0
    for (const samples of yield* inOrder(this.#samples.values(), byPrecedence)) {
      if (++sinceStep % PER_STEP === 0) yield
      if (samples.isEmpty) continue
      for (let { name } = samples; ; name = RENAMED + name) {
        const there = taken.get(name)
        if (there?.name === name && there.takes(samples)) {
          there.add(samples)
          break
        }
        const family = new Family(name, samples)
        if (family.names.some((name) => taken.has(name))) continue
        for (const name of family.names) taken.set(name, family)
        families.push(family)
        break
      }
    }
    return families
  }
}

type Order<T> = (one: T, other: T) => number

/** Sorts in steps, so that equal ones stay as they were: short runs first, then two runs to one, again and again. */
function* inOrder<T>(all: Iterable<T>, order: Order<T>): Generator<undefined, T[]> {
  let runs: T[][] = []
  let run: T[] = []
  for (const one of all) {
    if (run.length === 0) runs.push(run)
    run.push(one)
    if (run.length < PER_STEP) continue
    run.sort(order)
    run = []
    yield
  }
  run.sort(order)
  while (runs.length > 1) {
    const longer: T[][] = []
    for (let at = 0; at < runs.length; at += 2) {
      longer.push(yield* merged(runs[at] as T[], runs[at + 1] ?? [], order))
    }
    runs = longer
  }
  return runs[0] ?? []
}

function* merged<T>(ones: readonly T[], others: readonly T[], order: Order<T>): Generator<undefined, T[]> {
  const both: T[] = []
  let other = 0
  for (const one of ones) {
    for (; other < others.length && order(others[other] as T, one) < 0; other++) both.push(others[other] as T)
    both.push(one)
    if (both.length % PER_STEP === 0) yield
  }
  return both.concat(others.slice(other))
}

function byName({ name: one }: { readonly name: string }, { name: other }: { readonly name: string }): number {
  return one < other ? -1 : Number(one > other)
}

function newlyCollected(name: string, metadata: Collected['metadata']): Collected {
  return { name, metadata, groups: new Map(), seen: new Set(), metrics: new Map() }
}

function byPrecedence(one: Samples, other: Samples): number {
  if (one.isNative !== other.isNative) return one.isNative ? -1 : 1
  if (one.metric !== other.metric) return one.metric < other.metric ? -1 : 1
  if (one.shape !== other.shape) return one.shape < other.shape ? -1 : 1
  return one.name < other.name ? -1 : Number(one.name > other.name)
}
