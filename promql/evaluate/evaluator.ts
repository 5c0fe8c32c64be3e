/**
 * Evaluates expressions over a grid. A vector is a stream of series, one after the other, so that an aggregation holds its groups
 * and not what they are made of; a scalar is a column. Everything is a generator that stops for a moment often enough.
 */
import { executionError, type TextRange } from '../errors.ts'
import {
  type Aggregation,
  type Binary,
  type Call,
  type Expression,
  isSetOperator,
  type RangeSelector,
  type Selector,
  type Subquery,
  withoutParentheses,
} from '../expression.ts'
import { histogramFraction, histogramQuantile } from '../functions/histograms.ts'
import { joining, relabelled, replacement } from '../functions/labels.ts'
import { DATES, MATH, WITH_SCALARS } from '../functions/numbers-of-steps.ts'
import { OVER_TIME } from '../functions/over-time.ts'
import { isQuantile } from '../functions/quantile.ts'
import { isNameOfCounter, RATES } from '../functions/rates.ts'
import { OVER_ROLLUPS } from '../functions/rollups.ts'
import { LabelSet, METRIC_NAME_LABEL } from '../label-set.ts'
import { typeOf } from '../parse/check.ts'
import type { SeriesSource, Stream } from '../series-source.ts'
import { aggregated } from './aggregate.ts'
import { collected, type Evaluation, type Grid, mapped, StepSeries, timeAt } from './grid.ts'
import { matchedVectors } from './matching.ts'
import { ordered } from './merged-series.ts'
import { negate, operateOnScalars, operateWithScalar } from './operators.ts'
import { overRollups, wholeWindowsMs } from './rollups.ts'
import {
  type QueryTimes,
  type RangeSamples,
  SelectorTimes,
  selectSamples,
  selectSteps,
  stepSamples,
  timesOf,
} from './select.ts'
import { intersected, united } from './set-operators.ts'
import { overWindows, type WindowFunction, type WindowRange } from './windows.ts'

/** A call for each point, some of which make a date or take a logarithm, costs as much as this many points. */
const WORK_OF_CALL = 5

/** A column, made in steps. */
type ColumnSteps = Generator<undefined, Float64Array, void>

export interface EvaluatorParts {
  readonly source: SeriesSource
  readonly times: QueryTimes
  readonly evaluation: Evaluation
  readonly invariant: ReadonlySet<Expression>
  /** The step of subqueries that name none. */
  readonly defaultStepMs: number
}

export class Evaluator {
  readonly #parts: EvaluatorParts

  constructor(parts: EvaluatorParts) {
    this.#parts = parts
  }

  /** A number at each step. */
  *scalar(expression: Expression, grid: Grid): ColumnSteps {
    this.#parts.evaluation.budget.takePoints(grid.count)
    switch (expression.kind) {
      case 'number':
        return new Float64Array(grid.count).fill(expression.value)
      case 'parentheses':
        return yield* this.scalar(expression.inside, grid)
      case 'unary': {
        const column = yield* this.scalar(expression.operand, grid)
        return expression.operator === '-' ? column.map((value) => -value) : column
      }
      case 'binary': {
        const left = yield* this.scalar(expression.left, grid)
        const right = yield* this.scalar(expression.right, grid)
        return operateOnScalars(expression.operator, left, right)
      }
      case 'call':
        return yield* this.#scalarCall(expression, grid)
      default:
        throw executionError(`no scalar: ${expression.kind}`)
    }
  }

  /** The series of a vector, each with a value somewhere. */
  *vector(expression: Expression, grid: Grid): Stream<StepSeries> {
    if (grid.count === 0) return
    if (grid.count > 1 && this.#parts.invariant.has(expression)) {
      yield* this.#repeated(this.#vector(expression, { ...grid, count: 1 }), grid)
      return
    }
    yield* this.#vector(expression, grid)
  }

  /** The samples of a range at one time, for whoever asks for a range itself. */
  *samples(expression: RangeSelector | Subquery, grid: Grid): Stream<RangeSamples> {
    const { lookup, rangeMs, columns } = this.#range(expression, grid)
    for (const series of columns) {
      if (series === undefined) {
        yield undefined
        continue
      }
      const { times, values } = series
      const from = times.findIndex((ms) => ms > lookup.firstMs - rangeMs)
      const end = times.findIndex((ms) => ms > lookup.lastMs)
      const to = end < 0 ? times.length : end
      if (from >= 0 && from < to) yield { ...series, times: times.slice(from, to), values: values.slice(from, to) }
    }
  }

  *#repeated(stream: Stream<StepSeries>, grid: Grid): Stream<StepSeries> {
    const { budget, spares } = this.#parts.evaluation
    for (const series of stream) {
      if (series === undefined) {
        yield undefined
        continue
      }
      budget.takePoints(grid.count)
      const repeated = spares.take(series.labels, series.dropsName, grid.count)
      repeated.values.fill(series.values[0] ?? 0)
      repeated.present.fill(1)
      spares.give(series)
      yield repeated
      if (budget.isStepOver(grid.count)) yield undefined
    }
  }

  #vector(expression: Expression, grid: Grid): Stream<StepSeries> {
    const { source, times, evaluation } = this.#parts
    switch (expression.kind) {
      case 'selector':
        return selectSteps(source, expression, grid, times, evaluation)
      case 'parentheses':
        return this.vector(expression.inside, grid)
      case 'unary': {
        const operand = this.vector(expression.operand, grid)
        return expression.operator === '-' ? mapped(operand, evaluation, negate) : operand
      }
      case 'aggregation':
        return this.#aggregation(expression, grid)
      case 'binary':
        return this.#binary(expression, grid)
      case 'call':
        return this.#call(expression, grid)
      default:
        throw executionError(`no vector: ${expression.kind}`)
    }
  }

  *#aggregation(aggregation: Aggregation, grid: Grid): Stream<StepSeries> {
    const { operand, parameter } = aggregation
    const isText = aggregation.operator === 'count_values'
    const numbers =
      parameter === undefined || isText ? new Float64Array(grid.count) : yield* this.scalar(parameter, grid)
    const text = parameter !== undefined && isText ? textOf(parameter) : ''
    const { evaluation } = this.#parts
    yield* aggregated(this.vector(operand, grid), aggregation, { numbers, text }, grid, evaluation)
  }

  *#binary(binary: Binary, grid: Grid): Stream<StepSeries> {
    const { evaluation } = this.#parts
    const { operator, left, right, matching } = binary
    const [leftType, rightType] = [typeOf(left), typeOf(right)]
    if (leftType === 'vector' && rightType === 'vector') {
      const [some, others] = [this.vector(left, grid), this.vector(right, grid)]
      if (!isSetOperator(operator)) yield* matchedVectors(binary, some, others, grid, evaluation)
      else if (operator === 'or') yield* united(some, others, matching, grid, evaluation)
      else yield* intersected(some, others, matching, operator === 'unless', evaluation)
      return
    }
    const isScalarLeft = leftType === 'scalar'
    const scalars = yield* this.scalar(isScalarLeft ? left : right, grid)
    yield* mapped(this.vector(isScalarLeft ? right : left, grid), evaluation, (series) =>
      operateWithScalar(binary, series, scalars, isScalarLeft),
    )
  }

  *#scalarCall({ name, args }: Call, grid: Grid): ColumnSteps {
    if (name === 'pi') return new Float64Array(grid.count).fill(Math.PI)
    const column = new Float64Array(grid.count)
    const [arg] = args
    if (name === 'time' || arg === undefined) return column.map((_, step) => timeAt(grid, step) / 1000)
    const found = new Uint8Array(grid.count)
    for (const series of this.vector(arg, grid)) {
      if (series === undefined) {
        yield undefined
        continue
      }
      for (let step = 0; step < grid.count; step++) {
        if (series.present[step] !== 1) continue
        column[step] = series.values[step] ?? 0
        found[step] = Math.min(2, (found[step] ?? 0) + 1)
      }
      this.#parts.evaluation.spares.give(series)
      if (this.#parts.evaluation.budget.isStepOver(grid.count)) yield undefined
    }
    // Of none, or of several, there is no one number.
    return column.map((value, step) => (found[step] === 1 ? value : Number.NaN))
  }

  #call(call: Call, grid: Grid): Stream<StepSeries> {
    const { name, args } = call
    const { evaluation } = this.#parts
    const first = args[0]
    const windowFunction = ownEntry(OVER_TIME, name) ?? ownEntry(RATES, name)
    if (windowFunction !== undefined) return this.#overRange(call, windowFunction, grid)
    const date = ownEntry(DATES, name)
    if (date !== undefined) {
      if (first === undefined)
        return one(Float64Array.from({ length: grid.count }, (_, s) => date(timeAt(grid, s) / 1000)))
      return this.#eachValue(first, grid, date)
    }
    if (first === undefined) throw executionError(`${name}() has no arguments`)
    const math = ownEntry(MATH, name)
    if (math !== undefined) return this.#eachValue(first, grid, math)
    switch (name) {
      case 'absent':
        return this.#absent(first, this.vector(first, grid), grid)
      case 'timestamp':
        return this.#timestamps(first, grid)
      case 'vector':
        return this.#ofScalar(first, grid)
      case 'sort':
      case 'sort_desc':
        return this.#sorted(call, first, grid)
      case 'label_replace':
        return relabelled(this.vector(first, grid), () => replacement(args.slice(1).map(textOf)), evaluation)
      case 'label_join':
        return relabelled(this.vector(first, grid), () => joining(args.slice(1).map(textOf)), evaluation)
      case 'histogram_quantile':
      case 'histogram_fraction':
        return this.#histogram(call, grid)
      default:
        return this.#withScalars(call, first, grid)
    }
  }

  #eachValue(arg: Expression, grid: Grid, change: (value: number) => number): Stream<StepSeries> {
    const changeAll = (series: StepSeries): void => {
      const { values, present } = series
      for (let step = 0; step < present.length; step++)
        if (present[step] === 1) values[step] = change(values[step] ?? 0)
      series.dropsName = true
    }
    return mapped(this.vector(arg, grid), this.#parts.evaluation, changeAll, WORK_OF_CALL)
  }

  *#withScalars({ name, args }: Call, first: Expression, grid: Grid): Stream<StepSeries> {
    const change = ownEntry(WITH_SCALARS, name)
    if (change === undefined) throw executionError(`${name}() cannot be evaluated`)
    const scalars: Float64Array[] = []
    for (const arg of args.slice(1)) scalars.push(yield* this.scalar(arg, grid))
    const [some, others] = scalars
    const changeAll = (series: StepSeries): void => {
      const { values, present } = series
      for (let step = 0; step < present.length; step++) {
        if (present[step] !== 1) continue
        const result = change(values[step] ?? 0, some?.[step], others?.[step])
        if (result === undefined) present[step] = 0
        else values[step] = result
      }
      series.dropsName = true
    }
    yield* mapped(this.vector(first, grid), this.#parts.evaluation, changeAll, WORK_OF_CALL)
  }

  #timestamps(arg: Expression, grid: Grid): Stream<StepSeries> {
    const { source, times, evaluation } = this.#parts
    const selector = withoutParentheses(arg)
    const isSelector = selector.kind === 'selector'
    const stream = isSelector ? selectSteps(source, selector, grid, times, evaluation, true) : this.vector(arg, grid)
    return mapped(stream, evaluation, (series) => {
      // Only a selector has samples with times of their own.
      if (!isSelector) for (let step = 0; step < grid.count; step++) series.values[step] = timeAt(grid, step) / 1000
      series.dropsName = true
    })
  }

  *#ofScalar(arg: Expression, grid: Grid): Stream<StepSeries> {
    yield* one(yield* this.scalar(arg, grid))
  }

  *#sorted({ name, range }: Call, arg: Expression, grid: Grid): Stream<StepSeries> {
    const { annotations, budget } = this.#parts.evaluation
    if (!this.#isInstant) {
      annotations.sortInRangeQuery(range)
      yield* this.vector(arg, grid)
      return
    }
    const all = yield* collected(this.vector(arg, grid), budget)
    const sign = name === 'sort' ? 1 : -1
    yield* yield* ordered(all, (left, right) => sign * compareNumbers(left.values[0] ?? 0, right.values[0] ?? 0, sign))
    budget.release(all.length, all.length)
  }

  get #isInstant(): boolean {
    return this.#parts.times.startMs === this.#parts.times.endMs
  }

  *#histogram({ name, args }: Call, grid: Grid): Stream<StepSeries> {
    const { evaluation } = this.#parts
    const [first, second, third] = args
    if (first === undefined || second === undefined) return
    const scalars = yield* this.scalar(first, grid)
    if (name === 'histogram_quantile') {
      const ranges = { quantile: first.range, buckets: second.range }
      yield* histogramQuantile(scalars, this.vector(second, grid), grid, ranges, evaluation)
    } else if (third !== undefined) {
      const upper = yield* this.scalar(second, grid)
      yield* histogramFraction(scalars, upper, this.vector(third, grid), grid, third.range, evaluation)
    }
  }

  /** 1 where no series has a value, with the labels that the selector asks for. */
  *#absent(arg: Expression, stream: Stream<StepSeries>, grid: Grid): Stream<StepSeries> {
    const { budget, spares } = this.#parts.evaluation
    const seen = new Uint8Array(grid.count)
    for (const series of stream) {
      if (series === undefined) {
        yield undefined
        continue
      }
      for (let step = 0; step < grid.count; step++) if (series.present[step] === 1) seen[step] = 1
      spares.give(series)
      if (budget.isStepOver(grid.count)) yield undefined
    }
    const absent = new StepSeries(labelsAskedFor(arg), false, grid.count)
    for (let step = 0; step < grid.count; step++) if (seen[step] !== 1) absent.set(step, 1)
    if (!absent.isEmpty) yield absent
  }

  *#overRange({ name, args }: Call, windowFunction: WindowFunction, grid: Grid): Stream<StepSeries> {
    const { evaluation } = this.#parts
    const [range] = args.map(withoutParentheses).filter(({ kind }) => kind === 'range' || kind === 'subquery')
    if (range === undefined || (range.kind !== 'range' && range.kind !== 'subquery')) return
    const [scalar] = args.filter((arg) => typeOf(arg) === 'scalar')
    const parameters = scalar === undefined ? undefined : yield* this.scalar(scalar, grid)
    const stream =
      this.#overRollups(name, range, grid) ??
      overWindows(this.#range(range, grid), windowFunction, grid, parameters, evaluation)
    if (name === 'absent_over_time') {
      yield* this.#absent(range, stream, grid)
      return
    }
    for (const series of stream) {
      if (series !== undefined) this.#annotate(name, series, range.range, scalar, parameters)
      yield series
    }
  }

  /** What the rollups of the source say of a function; undefined if it has none, or if windows have parts of them. */
  #overRollups(name: string, range: RangeSelector | Subquery, grid: Grid): Stream<StepSeries> | undefined {
    const { source, times, evaluation } = this.#parts
    const rollupFunction = ownEntry(OVER_ROLLUPS, name)
    if (range.kind !== 'range' || source.rollups === undefined || rollupFunction === undefined) return undefined
    const { selector, rangeMs } = range
    const lookup = new SelectorTimes(grid, selector, times)
    const windowsMs = wholeWindowsMs({ lookup, rangeMs }, grid, source.rollups.stepMs)
    if (windowsMs === undefined) return undefined
    return overRollups(source.rollups, selector, rollupFunction, windowsMs, { lookup, rangeMs }, grid, evaluation)
  }

  #annotate(
    name: string,
    { labels, present }: StepSeries,
    range: TextRange,
    scalar: Expression | undefined,
    parameters: Float64Array | undefined,
  ): void {
    const { annotations } = this.#parts.evaluation
    if ((name === 'rate' || name === 'increase') && labels.metricName !== '' && !isNameOfCounter(labels.metricName))
      annotations.possibleNonCounter(labels.metricName, range)
    if (name !== 'quantile_over_time' || parameters === undefined || scalar === undefined) return
    const bad = parameters.find((quantile, step) => present[step] === 1 && !isQuantile(quantile))
    if (bad !== undefined) annotations.invalidQuantile(bad, scalar.range)
  }

  /** The samples that the windows of a grid go over. */
  #range(range: RangeSelector | Subquery, grid: Grid): WindowRange & { readonly columns: Stream<RangeSamples> } {
    const { source, times, evaluation } = this.#parts
    const { rangeMs } = range
    if (range.kind === 'range') {
      const { selector } = range
      const lookup = new SelectorTimes(grid, selector, times)
      const columns = selectSamples(source, selector, lookup.firstMs - rangeMs, lookup.lastMs, evaluation)
      return { lookup, rangeMs, columns }
    }
    const lookup = new SelectorTimes(grid, range, times)
    return { lookup, rangeMs, columns: this.#subquery(range, lookup) }
  }

  /** The values of an expression at the multiples of a step, from the first window to the last. */
  *#subquery(
    { expression, rangeMs, stepMs = this.#parts.defaultStepMs }: Subquery,
    lookup: SelectorTimes,
  ): Stream<RangeSamples> {
    const afterMs = lookup.firstMs - rangeMs
    const rounded = stepMs * Math.trunc(afterMs / stepMs)
    const startMs = rounded <= afterMs ? rounded + stepMs : rounded
    const count = Math.max(0, Math.floor((lookup.lastMs - startMs) / stepMs) + 1)
    const grid = { startMs, stepMs, count }
    const { budget, spares } = this.#parts.evaluation
    budget.takePoints(count)
    const times = timesOf(grid)
    for (const series of this.vector(expression, grid)) {
      if (series === undefined) {
        yield undefined
        continue
      }
      yield stepSamples(series, times)
      spares.give(series)
    }
  }
}

function* one(values: Float64Array): Stream<StepSeries> {
  yield StepSeries.full(values)
}

/** An entry of a table by a name that a user wrote. */
function ownEntry<Entry>(table: Readonly<Record<string, Entry>>, name: string): Entry | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined
}

function textOf(expression: Expression): string {
  const literal = withoutParentheses(expression)
  return literal.kind === 'text' ? literal.text : ''
}

/** NaN comes last, whatever the sign of the order. */
function compareNumbers(left: number, right: number, sign: number): number {
  if (Number.isNaN(left) || Number.isNaN(right))
    return sign * (Number(Number.isNaN(left)) - Number(Number.isNaN(right)))
  return left - right
}

/** The labels that matchers determine: those with one `=` and nothing else. */
function labelsAskedFor(arg: Expression): LabelSet {
  const inside = withoutParentheses(arg)
  const selector: Selector | undefined =
    inside.kind === 'selector' ? inside : inside.kind === 'range' ? inside.selector : undefined
  const texts = new Map<string, string>()
  const seen = new Set<string>()
  for (const { label, operator, text } of selector?.matchers ?? []) {
    if (label === METRIC_NAME_LABEL) continue
    texts.set(label, operator === '=' && !seen.has(label) ? text : '')
    if (operator === '=') seen.add(label)
  }
  return LabelSet.of(texts)
}
