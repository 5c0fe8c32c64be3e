/** What rules have recorded so far in a backtest: series that only grow, in columns. */
import type { LabelMatcher } from '../../../../promql/label-matcher.ts'
import type { LabelSet } from '../../../../promql/label-set.ts'
import { firstFrom } from '../../../../promql/memory-source.ts'
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
      const recorded = times.subarray(0, length)
      const from = firstFrom(recorded, fromMs)
      const to = firstFrom(recorded, toMs + 1)
      if (from < to) yield { labels, times: recorded.subarray(from, to), values: values.subarray(from, to) }
      yield undefined
    }
  }
}

function wider(column: Float64Array): Float64Array {
  const copy = new Float64Array(2 * column.length)
  copy.set(column)
  return copy
}
