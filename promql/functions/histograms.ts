/** `histogram_quantile` and `histogram_fraction` over the series of the buckets of classic histograms. */
import type { TextRange } from '../errors.ts'
import { collected, type Evaluation, type Grid, StepSeries, timeAt } from '../evaluate/grid.ts'
import { BUCKET_LABEL, type LabelSet } from '../label-set.ts'
import { floatOf } from '../parse/numbers.ts'
import type { Stream } from '../series-source.ts'
import { type Bucket, fractionOfBuckets, quantileOfBuckets } from './buckets.ts'
import { isQuantile } from './quantile.ts'

interface BucketSeries {
  readonly upperBound: number
  readonly series: StepSeries
}

interface Histogram {
  readonly labels: LabelSet
  readonly buckets: BucketSeries[]
}

const BUCKET_LABELS: ReadonlySet<string> = new Set([BUCKET_LABEL])

/** Where the arguments stand in the text. */
export interface HistogramRanges {
  readonly quantile: TextRange
  readonly buckets: TextRange
}

export function* histogramQuantile(
  quantiles: Float64Array,
  stream: Stream<StepSeries>,
  grid: Grid,
  ranges: HistogramRanges,
  evaluation: Evaluation,
): Stream<StepSeries> {
  const { annotations } = evaluation
  const bad = quantiles.find((quantile) => !isQuantile(quantile))
  if (bad !== undefined) annotations.invalidQuantile(bad, ranges.quantile)
  yield* overHistograms(stream, grid, ranges.buckets, evaluation, (buckets, step, { labels }) =>
    quantileOfBuckets(quantiles[step] ?? Number.NaN, buckets, (correction) =>
      annotations.forcedMonotonicity(labels.metricName, ranges.buckets, timeAt(grid, step), correction),
    ),
  )
}

export function* histogramFraction(
  lower: Float64Array,
  upper: Float64Array,
  stream: Stream<StepSeries>,
  grid: Grid,
  range: TextRange,
  evaluation: Evaluation,
): Stream<StepSeries> {
  yield* overHistograms(stream, grid, range, evaluation, (buckets, step) =>
    fractionOfBuckets(lower[step] ?? Number.NaN, upper[step] ?? Number.NaN, buckets),
  )
}

function* overHistograms(
  stream: Stream<StepSeries>,
  grid: Grid,
  range: TextRange,
  evaluation: Evaluation,
  result: (buckets: readonly Bucket[], step: number, histogram: Histogram) => number,
): Stream<StepSeries> {
  const { budget } = evaluation
  const all = yield* collected(stream, budget)
  for (const histogram of yield* histogramsOf(all, range, evaluation)) {
    budget.takePoints(grid.count)
    const series = new StepSeries(histogram.labels, true, grid.count)
    for (let step = 0; step < grid.count; step++) {
      const buckets: Bucket[] = []
      for (const { upperBound, series: counts } of histogram.buckets) {
        if (counts.present[step] === 1) buckets.push({ upperBound, count: counts.values[step] ?? 0 })
      }
      if (buckets.length > 0) series.set(step, result(buckets, step, histogram))
      if (budget.isStepOver(10 * buckets.length)) yield undefined
    }
    if (!series.isEmpty) yield series
  }
  budget.release(all.length, all.length * grid.count)
}

/** The series that differ in `le` alone are the buckets of one histogram. */
function* histogramsOf(
  all: readonly StepSeries[],
  range: TextRange,
  { annotations, budget }: Evaluation,
): Generator<undefined, Iterable<Histogram>, void> {
  const found = new Map<string, Histogram>()
  for (const series of all) {
    if (budget.isStepOver(0)) yield undefined
    const bound = series.labels.get(BUCKET_LABEL)
    const upperBound = floatOf(bound)
    if (upperBound === undefined) {
      annotations.badBucketLabel(series.labels.metricName, bound, range)
      continue
    }
    const labels = series.labels.without(BUCKET_LABELS)
    const histogram = found.get(labels.key) ?? { labels, buckets: [] }
    histogram.buckets.push({ upperBound, series })
    found.set(labels.key, histogram)
  }
  return found.values()
}
