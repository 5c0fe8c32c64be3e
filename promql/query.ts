/**
 * The door of this folder: an expression is parsed once, and evaluated at one time or over a range, in steps. Whoever runs the
 * steps decides when to go on, and ends a query with `return()`.
 */

import { PromqlError } from './errors.ts'
import { Annotations } from './evaluate/annotations.ts'
import { Budget, QUERY_LIMITS, type QueryLimits } from './evaluate/budget.ts'
import { Evaluator } from './evaluate/evaluator.ts'
import { collected, type Grid, SpareSeries, type StepSeries } from './evaluate/grid.ts'
import { invariantExpressions } from './evaluate/invariance.ts'
import { mergedSeries, ordered } from './evaluate/merged-series.ts'
import { stepSamples, timesOf } from './evaluate/select.ts'
import { DOCUMENTED_TYPE, type Expression, isComparison, withoutParentheses } from './expression.ts'
import { RegexMemory } from './label-matcher.ts'
import { compareLabelSets, type LabelSet, NO_LABELS } from './label-set.ts'
import { typeOf } from './parse/check.ts'
import { PARSE_LIMITS, parseExpression } from './parse/parse.ts'
import { printExpression } from './print.ts'
import type { SeriesSource } from './series-source.ts'

/** Its time and its value. */
const BYTES_PER_SAMPLE = 16

export interface QueryOptions {
  /** How long a sample counts, where no other follows. */
  readonly lookbackMs: number
  /** The step of subqueries that name none. */
  readonly defaultStepMs: number
  readonly limits: QueryLimits
  /** Times of a range. */
  readonly maxSteps: number
  /** Learns of the bytes that are held as they come, and, as fewer than none, as they go. Those of the result stay. */
  readonly onHeld?: (bytes: number) => void
}

/** As Prometheus has it. */
export const QUERY_OPTIONS: QueryOptions = {
  lookbackMs: 300_000,
  defaultStepMs: 60_000,
  limits: QUERY_LIMITS,
  maxSteps: 11_000,
}

/** A series of a result, ascending by time. */
export interface ResultSeries {
  readonly labels: LabelSet
  readonly times: Float64Array
  readonly values: Float64Array
}

export type ResultData =
  | { readonly type: 'scalar'; readonly timeMs: number; readonly value: number }
  | { readonly type: 'string'; readonly timeMs: number; readonly text: string }
  | {
      readonly type: 'vector'
      readonly timeMs: number
      readonly samples: readonly { readonly labels: LabelSet; readonly value: number }[]
    }
  | { readonly type: 'matrix'; readonly series: readonly ResultSeries[] }

export interface QueryResult {
  readonly data: ResultData
  /** With positions in the text of the expression. */
  readonly warnings: readonly string[]
  readonly infos: readonly string[]
  /** What the source gave. */
  readonly samples: number
  readonly series: number
  /** The most points that it held at one time. */
  readonly peakPoints: number
}

export type QuerySteps = Generator<undefined, QueryResult, void>

export class PreparedQuery {
  readonly text: string
  readonly expression: Expression
  #printed: string | undefined

  /** `regexes`: those of other texts that belong together with this one. Throws PromqlError, `bad_data`. */
  constructor(text: string, limits = PARSE_LIMITS, regexes = new RegexMemory()) {
    this.text = text
    this.expression = parseExpression(text, limits, regexes)
  }

  /** The expression on one line, as Prometheus writes it. */
  get printed(): string {
    this.#printed ??= printExpression(this.expression)
    return this.#printed
  }

  /**
   * The comparison that the expression is, with `bool`: 1 where it holds, 0 where it does not, and nothing where a side of it has
   * nothing. Undefined if the expression is no comparison, or one that does not filter. Throws PromqlError.
   */
  unfiltered(): PreparedQuery | undefined {
    const inside = withoutParentheses(this.expression)
    if (inside.kind !== 'binary' || !isComparison(inside.operator) || inside.isBool) return undefined
    return new PreparedQuery(printExpression({ ...inside, isBool: true }))
  }

  /**
   * What a comparison compares with a number, and that number, as a chart draws the two; undefined if the expression is something
   * else.
   */
  threshold(): { readonly expr: string; readonly value: number } | undefined {
    const inside = withoutParentheses(this.expression)
    if (inside.kind !== 'binary' || !isComparison(inside.operator)) return undefined
    const [left, right] = [withoutParentheses(inside.left), withoutParentheses(inside.right)]
    if (right.kind === 'number') return { expr: printExpression(left), value: right.value }
    return left.kind === 'number' ? { expr: printExpression(right), value: left.value } : undefined
  }

  /** The value at a time. Its steps throw PromqlError. */
  *instant(source: SeriesSource, timeMs: number, options = QUERY_OPTIONS): QuerySteps {
    refuseBadTimes(timeMs)
    const run = new QueryRun(this, source, { startMs: timeMs, stepMs: 1, count: 1 }, timeMs, options)
    return yield* run.instant(timeMs)
  }

  /** The values from a time to another, both included, at each step. Its steps throw PromqlError. */
  *range(source: SeriesSource, startMs: number, endMs: number, stepMs: number, options = QUERY_OPTIONS): QuerySteps {
    refuseBadTimes(startMs, endMs)
    if (!(stepMs >= 1))
      throw new PromqlError(
        'bad_data',
        'zero or negative query resolution step widths are not accepted. Try a positive integer',
      )
    if (endMs < startMs) throw new PromqlError('bad_data', 'end timestamp must not be before start time')
    const count = Math.floor((endMs - startMs) / stepMs) + 1
    if (count > options.maxSteps)
      throw new PromqlError(
        'bad_data',
        `exceeded maximum resolution of ${options.maxSteps} points per timeseries. Try decreasing the query resolution (?step=XX)`,
      )
    const type = typeOf(this.expression)
    if (type !== 'scalar' && type !== 'vector')
      throw new PromqlError(
        'bad_data',
        `invalid expression type "${DOCUMENTED_TYPE[type]}" for range query, must be Scalar or instant Vector`,
      )
    const run = new QueryRun(this, source, { startMs, stepMs, count }, endMs, options)
    return yield* run.range()
  }
}

class QueryRun {
  readonly #query: PreparedQuery
  readonly #grid: Grid
  readonly #budget: Budget
  readonly #annotations = new Annotations()
  readonly #evaluator: Evaluator

  constructor(query: PreparedQuery, source: SeriesSource, grid: Grid, endMs: number, options: QueryOptions) {
    this.#query = query
    this.#grid = grid
    this.#budget = new Budget(options.limits, options.onHeld)
    this.#evaluator = new Evaluator({
      source,
      times: { startMs: grid.startMs, endMs, lookbackMs: options.lookbackMs },
      evaluation: { budget: this.#budget, annotations: this.#annotations, spares: new SpareSeries() },
      invariant: invariantExpressions(query.expression),
      defaultStepMs: options.defaultStepMs,
    })
  }

  *instant(timeMs: number): QuerySteps {
    const { expression } = this.#query
    const inside = withoutParentheses(expression)
    if (inside.kind === 'text') return this.#result({ type: 'string', timeMs, text: inside.text })
    if (inside.kind === 'range' || inside.kind === 'subquery') {
      const series: ResultSeries[] = []
      for (const columns of this.#evaluator.samples(inside, this.#grid)) {
        if (columns === undefined) yield undefined
        else {
          this.#budget.hold(columns.times.length, BYTES_PER_SAMPLE)
          const { labels, dropsName, times, values } = columns
          series.push({ labels: dropsName ? labels.withoutMetadata() : labels, times, values })
        }
      }
      return this.#result({ type: 'matrix', series: yield* orderedSeries(series) })
    }
    if (typeOf(expression) === 'scalar') {
      const [value = Number.NaN] = yield* this.#evaluator.scalar(expression, this.#grid)
      return this.#result({ type: 'scalar', timeMs, value })
    }
    const all = yield* this.#series()
    const samples = all.map(({ labels, values }) => ({ labels, value: values[0] ?? Number.NaN }))
    return this.#result({ type: 'vector', timeMs, samples })
  }

  *range(): QuerySteps {
    const { expression } = this.#query
    if (typeOf(expression) === 'scalar') {
      const values = yield* this.#evaluator.scalar(expression, this.#grid)
      const series = [{ labels: NO_LABELS, times: timesOf(this.#grid), values }]
      return this.#result({ type: 'matrix', series })
    }
    const all = yield* this.#series()
    const allTimes = timesOf(this.#grid)
    const series: ResultSeries[] = []
    // They come in order later. Of each the marks go, and where there are gaps its times come.
    for (let steps = all.pop(); steps !== undefined; steps = all.pop()) {
      const { labels, times, values } = stepSamples(steps, allTimes)
      this.#budget.releaseBytes(steps.present.byteLength)
      if (times !== allTimes) this.#budget.holdBytes(times.byteLength)
      series.push({ labels, times, values })
      if (this.#budget.isStepOver(this.#grid.count)) yield undefined
    }
    return this.#result({ type: 'matrix', series: yield* orderedSeries(series) })
  }

  /** The series of the result, without the names that were to go. */
  *#series(): Generator<undefined, StepSeries[], void> {
    const all = yield* collected(this.#evaluator.vector(this.#query.expression, this.#grid), this.#budget)
    for (const series of all) {
      if (series.dropsName) series.labels = series.labels.withoutMetadata()
      if (this.#budget.isStepOver(0)) yield undefined
    }
    return yield* mergedSeries(all, this.#budget)
  }

  #result(data: ResultData): QueryResult {
    const { text } = this.#query
    const { samples, series, peakPoints } = this.#budget
    const remarks = { warnings: this.#annotations.warnings(text), infos: this.#annotations.infos(text) }
    return { data, ...remarks, samples, series, peakPoints }
  }
}

function refuseBadTimes(...times: readonly number[]): void {
  if (!times.every(Number.isSafeInteger)) throw new PromqlError('bad_data', 'a time is no number of milliseconds')
}

function orderedSeries(series: readonly ResultSeries[]): Generator<undefined, ResultSeries[], void> {
  return ordered(series, (left, right) => compareLabelSets(left.labels, right.labels))
}
