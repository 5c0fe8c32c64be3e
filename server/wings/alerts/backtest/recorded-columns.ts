/** What rules have recorded so far in a backtest: series that only grow, in columns. */
import type { LabelMatcher } from '../../../../promql/label-matcher.ts'
import type { LabelSet } from '../../../../promql/label-set.ts'
import { type SourceSeries, StaleMarkers, type Stream } from '../../../../promql/series-source.ts'
import type { RecordedSource } from '../evaluation/layered-source.ts'
import type { RuleSample } from '../rules/group.ts'

const FIRST_SAMPLES = 16

interface Columns {
  readonly labels: LabelSet
  times: Float64Array
  values: Float64Array
  length: number
}

export class RecordedColumns implements RecordedSource {
  readonly #series = new Map<string, Columns>()
  #samples = 0

  get samples(): number {
    return this.#samples
  }

  get isEmpty(): boolean {
    return this.#samples === 0
  }

  /** Times ascend. */
  add({ labels, value }: RuleSample, timeMs: number): void {
    let columns = this.#series.get(labels.key)
    if (columns === undefined) {
      columns = { labels, times: new Float64Array(FIRST_SAMPLES), values: new Float64Array(FIRST_SAMPLES), length: 0 }
      this.#series.set(labels.key, columns)
    } else if (columns.length === columns.times.length) {
      columns.times = wider(columns.times)
      columns.values = wider(columns.values)
    }
    columns.times[columns.length] = timeMs
    if (value === 'stale') new StaleMarkers(columns.values).set(columns.length)
    else columns.values[columns.length] = value
    columns.length++
    this.#samples++
  }

  *select(matchers: readonly LabelMatcher[], fromMs: number, toMs: number): Stream<SourceSeries> {
    for (const { labels, times, values, length } of this.#series.values()) {
      if (!matchers.every((matcher) => matcher.matches(labels.get(matcher.label)))) continue
      const from = firstFrom(times, length, fromMs)
      const to = firstFrom(times, length, toMs + 1)
      if (from < to) yield { labels, times: times.subarray(from, to), values: values.subarray(from, to) }
      yield undefined
    }
  }
}

/** The first of so many times that is not before `ms`. */
export function firstFrom(times: Float64Array, length: number, ms: number): number {
  let [low, high] = [0, length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] as number) < ms) low = middle + 1
    else high = middle
  }
  return low
}

function wider(column: Float64Array): Float64Array {
  const copy = new Float64Array(2 * column.length)
  copy.set(column)
  return copy
}
