/** The history, and over it what the rules of a group have recorded at the time that is evaluated: it is not in the history yet. */
import { LabelSet } from '../../../../promql/label-set.ts'
import { MemorySource } from '../../../../promql/memory-source.ts'
import type { RollupSource, SeriesSource, SourceSeries, Stream } from '../../../../promql/series-source.ts'
import type { RuleSteps } from '../rules/evaluation.ts'
import type { RuleSample } from '../rules/group.ts'

export interface RecordedSource extends Pick<SeriesSource, 'select'> {
  readonly isEmpty: boolean
}

export class RecordedSamples implements RecordedSource {
  readonly #source = new MemorySource()
  isEmpty = true

  select(...asked: Parameters<MemorySource['select']>): Stream<SourceSeries> {
    return this.#source.select(...asked)
  }

  *add(samples: readonly RuleSample[], timeMs: number): RuleSteps<void> {
    for (const { labels, value } of samples) {
      this.#source.add(labels, [[timeMs, value]])
      this.isEmpty = false
      yield undefined
    }
  }
}

export class LayeredSource implements SeriesSource {
  readonly #below: SeriesSource
  readonly #recorded: RecordedSource

  constructor(below: SeriesSource, recorded: RecordedSource) {
    this.#below = below
    this.#recorded = recorded
  }

  /** Rollups know nothing of what was recorded just now. */
  get rollups(): RollupSource | undefined {
    return this.#recorded.isEmpty ? this.#below.rollups : undefined
  }

  select(...asked: Parameters<SeriesSource['select']>): Stream<SourceSeries> {
    return this.#recorded.isEmpty ? this.#below.select(...asked) : this.#layered(...asked)
  }

  *#layered(...asked: Parameters<SeriesSource['select']>): Stream<SourceSeries> {
    const recorded = new Map<string, SourceSeries>()
    for (const series of this.#recorded.select(...asked)) {
      if (series === undefined) yield undefined
      else recorded.set(LabelSet.of(series.labels).key, series)
    }
    for (const series of this.#below.select(...asked)) {
      if (series === undefined || recorded.size === 0) {
        yield series
        continue
      }
      const { key } = LabelSet.of(series.labels)
      const later = recorded.get(key)
      recorded.delete(key)
      yield later === undefined ? series : joined(series, later)
    }
    yield* recorded.values()
  }
}

/** What was recorded counts from its time on. Columns are copied as a whole: stale markers are no values of variables. */
function joined(series: SourceSeries, later: SourceSeries): SourceSeries {
  const firstMs = later.times[0] ?? Number.POSITIVE_INFINITY
  const found = series.times.findIndex((ms) => ms >= firstMs)
  const count = found < 0 ? series.times.length : found
  const column = (before: Float64Array, after: Float64Array): Float64Array => {
    const all = new Float64Array(count + after.length)
    all.set(before.subarray(0, count))
    all.set(after, count)
    return all
  }
  const { heldMs } = series
  return {
    ...series,
    times: column(series.times, later.times),
    values: column(series.values, later.values),
    heldMs: heldMs && column(heldMs, new Float64Array(later.times.length)),
  }
}
