/** Series in memory: what unit tests of rules load, and the tests of the language. */
import type { LabelMatcher } from './label-matcher.ts'
import type { LabelSet } from './label-set.ts'
import { type SeriesSource, type SourceSeries, StaleMarkers, type Stream } from './series-source.ts'

/** A value, or a stale marker. */
export type MemoryValue = number | 'stale'

interface MemorySeries {
  readonly labels: LabelSet
  readonly samples: Map<number, MemoryValue>
  columns: { readonly times: Float64Array; readonly values: Float64Array } | undefined
}

export class MemorySource implements SeriesSource {
  readonly #series = new Map<string, MemorySeries>()

  /** Adds samples to a series; one with a time that is there replaces that sample. */
  add(labels: LabelSet, samples: Iterable<readonly [timeMs: number, value: MemoryValue]>): void {
    const series = this.#series.get(labels.key) ?? { labels, samples: new Map(), columns: undefined }
    this.#series.set(labels.key, series)
    for (const [timeMs, value] of samples) series.samples.set(timeMs, value)
    series.columns = undefined
  }

  *select(matchers: readonly LabelMatcher[], fromMs: number, toMs: number): Stream<SourceSeries> {
    for (const series of this.#series.values()) {
      if (!matchers.every((matcher) => matcher.matches(series.labels.get(matcher.label)))) continue
      series.columns ??= columnsOf(series.samples)
      const { times, values } = series.columns
      const from = firstFrom(times, fromMs)
      const to = firstFrom(times, toMs + 1)
      if (from < to) yield { labels: series.labels, times: times.subarray(from, to), values: values.subarray(from, to) }
      yield undefined
    }
  }
}

/** A query's steps to their end. */
export function finished<Result>(steps: Generator<undefined, Result, void>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

function columnsOf(samples: ReadonlyMap<number, MemoryValue>): { times: Float64Array; values: Float64Array } {
  const ordered = [...samples].sort(([left], [right]) => left - right)
  const times = Float64Array.from(ordered, ([timeMs]) => timeMs)
  const values = Float64Array.from(ordered, ([, value]) => (value === 'stale' ? Number.NaN : value))
  const markers = new StaleMarkers(values)
  for (const [index, [, value]] of ordered.entries()) if (value === 'stale') markers.set(index)
  return { times, values }
}

/** The first index with a time that is not before `ms`. */
export function firstFrom(times: Float64Array, ms: number): number {
  let [low, high] = [0, times.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] ?? 0) < ms) low = middle + 1
    else high = middle
  }
  return low
}
