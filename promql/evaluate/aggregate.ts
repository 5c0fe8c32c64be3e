/** Aggregations: which group a series belongs to, and what becomes of the groups. */
import { executionError } from '../errors.ts'
import type { Aggregation } from '../expression.ts'
import { isQuantile } from '../functions/quantile.ts'
import { isLabelName, type LabelSet, METRIC_NAME_LABEL, NO_LABELS } from '../label-set.ts'
import { plainNumber } from '../parse/numbers.ts'
import { quoted } from '../parse/quoting.ts'
import type { Stream } from '../series-source.ts'
import { type Accumulator, accumulatorFor } from './accumulators.ts'
import { type Evaluation, type Grid, StepSeries } from './grid.ts'
import { TopSeries, wantedCounts } from './top-k.ts'

/** What the text of a value takes, in elements of columns, and after how much of it a long series is left for a moment. */
const [WORK_PER_TEXT, COUNTED_AT_ONCE] = [10, 20_000]

/** The parameter of an aggregation: numbers at the steps, or a text, as it wants. */
export interface AggregationParameter {
  readonly numbers: Float64Array
  readonly text: string
}

export function aggregated(
  stream: Stream<StepSeries>,
  aggregation: Aggregation,
  parameter: AggregationParameter,
  grid: Grid,
  evaluation: Evaluation,
): Stream<StepSeries> {
  const { operator } = aggregation
  if (operator === 'topk' || operator === 'bottomk')
    return topSeries(stream, aggregation, wantedCounts(parameter.numbers), evaluation)
  if (operator === 'count_values') return countedValues(stream, aggregation, parameter.text, grid, evaluation)
  const quantiles = parameter.numbers
  if (operator === 'quantile') noteBadQuantiles(quantiles, aggregation, evaluation)
  return accumulated(
    stream,
    aggregation,
    grid,
    (result) => accumulatorFor(operator, result, quantiles),
    operator === 'quantile',
    evaluation,
  )
}

function* accumulated(
  stream: Stream<StepSeries>,
  aggregation: Aggregation,
  grid: Grid,
  newAccumulator: (result: StepSeries) => Accumulator,
  holdsSeries: boolean,
  { budget, spares }: Evaluation,
): Stream<StepSeries> {
  const groupOf = grouping(aggregation)
  const groups = new Map<string, { result: StepSeries; accumulator: Accumulator }>()
  let held = 0
  for (const series of stream) {
    if (series === undefined) {
      yield undefined
      continue
    }
    const labels = groupOf(series.labels)
    let group = groups.get(labels.key)
    if (group === undefined) {
      budget.takePoints(grid.count)
      budget.hold(3 * grid.count)
      const result = new StepSeries(labels, false, grid.count)
      group = { result, accumulator: newAccumulator(result) }
      groups.set(labels.key, group)
    }
    if (holdsSeries) {
      budget.hold(grid.count)
      held++
    }
    group.accumulator.add(series)
    group.result.dropsName ||= series.dropsName
    if (!holdsSeries) spares.give(series)
    if (budget.isStepOver(grid.count)) yield undefined
  }
  for (const { result, accumulator } of groups.values()) {
    while (!accumulator.finish(budget)) yield undefined
    if (!result.isEmpty) yield result
    if (budget.isStepOver(grid.count)) yield undefined
  }
  budget.release(held, held * grid.count)
  budget.release(groups.size, 3 * groups.size * grid.count)
}

function* topSeries(
  stream: Stream<StepSeries>,
  aggregation: Aggregation,
  counts: Float64Array,
  { budget, spares }: Evaluation,
): Stream<StepSeries> {
  if (counts.every((count) => count === 0)) return
  const groupOf = grouping(aggregation)
  const groups = new Map<string, TopSeries>()
  for (const series of stream) {
    if (series === undefined) {
      yield undefined
      continue
    }
    const { key } = groupOf(series.labels)
    const group = groups.get(key) ?? new TopSeries(counts, aggregation.operator === 'bottomk')
    groups.set(key, group)
    const work = group.add(series, budget)
    spares.give(series)
    if (budget.isStepOver(work)) yield undefined
  }
  for (const group of groups.values()) yield* group.result(budget)
}

/** A series for each value that series of a group have, with the value as a label. */
function* countedValues(
  stream: Stream<StepSeries>,
  { labels, isWithout }: Aggregation,
  label: string,
  grid: Grid,
  { budget, spares }: Evaluation,
): Stream<StepSeries> {
  if (!isLabelName(label)) throw executionError(`invalid label name ${quoted(label)}`)
  const groupOf = grouping({ labels: isWithout ? labels : [...labels, label], isWithout })
  const counts = new Map<string, StepSeries>()
  for (const series of stream) {
    if (series === undefined) {
      yield undefined
      continue
    }
    const byValue = new Map<string, StepSeries>()
    let work = 0
    for (let step = 0; step < grid.count; step++) {
      if (work > COUNTED_AT_ONCE) {
        if (budget.isStepOver(work)) yield undefined
        work = 0
      }
      if (series.present[step] !== 1) continue
      work += WORK_PER_TEXT
      const value = plainNumber(series.values[step] ?? 0)
      let count = byValue.get(value)
      if (count === undefined) {
        const group = groupOf(series.labels.with([[label, value]]))
        count = counts.get(group.key)
        if (count === undefined) {
          budget.takePoints(grid.count)
          budget.hold(grid.count)
          work += grid.count
          count = new StepSeries(group, false, grid.count)
          counts.set(group.key, count)
        }
        byValue.set(value, count)
      }
      count.set(step, (count.values[step] ?? 0) + 1)
    }
    spares.give(series)
    if (budget.isStepOver(work)) yield undefined
  }
  yield* counts.values()
  budget.release(counts.size, counts.size * grid.count)
}

/** The labels of the group of a series. */
function grouping({ labels, isWithout }: Pick<Aggregation, 'labels' | 'isWithout'>): (of: LabelSet) => LabelSet {
  const names = new Set(isWithout ? [...labels, METRIC_NAME_LABEL] : labels)
  if (isWithout) return (of) => of.without(names)
  return names.size === 0 ? () => NO_LABELS : (of) => of.keep(names)
}

function noteBadQuantiles(quantiles: Float64Array, { parameter }: Aggregation, { annotations }: Evaluation): void {
  if (parameter === undefined) return
  const { range } = parameter
  if (quantiles.some(Number.isNaN)) annotations.invalidQuantile(Number.NaN, range)
  const sound = quantiles.filter((quantile) => !Number.isNaN(quantile))
  for (const edge of [sound.reduce((a, b) => Math.max(a, b), 0), sound.reduce((a, b) => Math.min(a, b), 1)]) {
    if (!isQuantile(edge)) annotations.invalidQuantile(edge, range)
  }
}
