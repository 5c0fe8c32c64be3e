/**
 * Aggregations that need no series but those of their groups: each takes one series after the other, and keeps of all of them what
 * the result needs at each step.
 */
import type { AggregationOperator } from '../expression.ts'
import { quantileOf } from '../functions/quantile.ts'
import { increased } from '../functions/sums.ts'
import type { Budget } from './budget.ts'
import type { StepSeries } from './grid.ts'

/** The aggregations of this file. */
export type SimpleAggregation = Exclude<AggregationOperator, 'topk' | 'bottomk' | 'count_values'>

export interface Accumulator {
  add(series: StepSeries): void
  /** Once, when all series were added, until it returns true: makes `result` what the aggregation is. */
  finish(budget: Budget): boolean
}

/** `result` gets the values, and marks where there are some; `parameters` are those of `quantile`. */
export function accumulatorFor(operator: SimpleAggregation, result: StepSeries, parameters: Float64Array): Accumulator {
  switch (operator) {
    case 'sum':
      return new Sums(result)
    case 'avg':
      return new Means(result)
    case 'count':
      return new Folded(
        result,
        (sum) => sum + 1,
        () => 1,
      )
    case 'group':
      return new Folded(
        result,
        () => 1,
        () => 1,
      )
    case 'min':
      return new Folded(
        result,
        (least, value) => (least > value || Number.isNaN(least) ? value : least),
        (value) => value,
      )
    case 'max':
      return new Folded(
        result,
        (most, value) => (most < value || Number.isNaN(most) ? value : most),
        (value) => value,
      )
    case 'stddev':
      return new Deviations(result, Math.sqrt)
    case 'stdvar':
      return new Deviations(result, (variance) => variance)
    case 'quantile':
      return new Quantiles(result, parameters)
  }
}

class Folded implements Accumulator {
  readonly #result: StepSeries
  readonly #next: (folded: number, value: number) => number
  readonly #first: (value: number) => number

  constructor(result: StepSeries, next: (folded: number, value: number) => number, first: (value: number) => number) {
    this.#result = result
    this.#next = next
    this.#first = first
  }

  add({ values, present }: StepSeries): void {
    const { values: folded, present: seen } = this.#result
    for (let step = 0; step < present.length; step++) {
      if (present[step] !== 1) continue
      const value = values[step] ?? 0
      folded[step] = seen[step] === 1 ? this.#next(folded[step] ?? 0, value) : this.#first(value)
      seen[step] = 1
    }
  }

  finish(): boolean {
    return true
  }
}

class Sums implements Accumulator {
  readonly #result: StepSeries
  /** What rounding has lost so far (functions/sums.ts); written out here, since most queries spend their time in it. */
  readonly #lost: Float64Array

  constructor(result: StepSeries) {
    this.#result = result
    this.#lost = new Float64Array(result.values.length)
  }

  add({ values, present }: StepSeries): void {
    const { values: sums, present: seen } = this.#result
    const lost = this.#lost
    for (let step = 0; step < present.length; step++) {
      if (present[step] !== 1) continue
      const value = values[step] ?? 0
      const sum = sums[step] ?? 0
      const next = sum + value
      if (next === Number.POSITIVE_INFINITY || next === Number.NEGATIVE_INFINITY) lost[step] = 0
      else if (Math.abs(sum) >= Math.abs(value)) lost[step] = (lost[step] ?? 0) + (sum - next + value)
      else lost[step] = (lost[step] ?? 0) + (value - next + sum)
      sums[step] = next
      seen[step] = 1
    }
  }

  finish(): boolean {
    const { values } = this.#result
    for (let step = 0; step < values.length; step++) values[step] = (values[step] ?? 0) + (this.#lost[step] ?? 0)
    return true
  }
}

/** As `RunningMean` of functions/sums.ts, for each step. */
class Means implements Accumulator {
  readonly #result: StepSeries
  readonly #lost: Float64Array
  readonly #counts: Float64Array
  /** Where the sum would be infinite, so that the value is a mean. */
  readonly #isOfMeans: Uint8Array

  constructor(result: StepSeries) {
    this.#result = result
    const { length } = result.values
    this.#lost = new Float64Array(length)
    this.#counts = new Float64Array(length)
    this.#isOfMeans = new Uint8Array(length)
  }

  add({ values, present }: StepSeries): void {
    for (let step = 0; step < present.length; step++) if (present[step] === 1) this.#addAt(step, values[step] ?? 0)
  }

  #addAt(step: number, value: number): void {
    const { values, present } = this.#result
    const count = (this.#counts[step] ?? 0) + 1
    this.#counts[step] = count
    present[step] = 1
    const [before, lost] = [values[step] ?? 0, this.#lost[step] ?? 0]
    if (count === 1) {
      values[step] = value
      return
    }
    if (this.#isOfMeans[step] !== 1) {
      const [sum, newLost] = increased(value, before, lost)
      if (sum !== Number.POSITIVE_INFINITY && sum !== Number.NEGATIVE_INFINITY) {
        values[step] = sum
        this.#lost[step] = newLost
        return
      }
      this.#isOfMeans[step] = 1
      values[step] = before / (count - 1)
      this.#lost[step] = lost / (count - 1)
    }
    const share = (count - 1) / count
    const [mean, newLost] = increased(value / count, share * (values[step] ?? 0), share * (this.#lost[step] ?? 0))
    values[step] = mean
    this.#lost[step] = newLost
  }

  finish(): boolean {
    const { values } = this.#result
    for (let step = 0; step < values.length; step++) {
      const [value, lost, count] = [values[step] ?? 0, this.#lost[step] ?? 0, this.#counts[step] ?? 0]
      values[step] = this.#isOfMeans[step] === 1 ? value + lost : value / count + lost / count
    }
    return true
  }
}

/** Welford's, for each step. */
class Deviations implements Accumulator {
  readonly #result: StepSeries
  readonly #finished: (variance: number) => number
  readonly #means: Float64Array
  readonly #counts: Float64Array

  constructor(result: StepSeries, finished: (variance: number) => number) {
    this.#result = result
    this.#finished = finished
    this.#means = new Float64Array(result.values.length)
    this.#counts = new Float64Array(result.values.length)
  }

  add({ values, present }: StepSeries): void {
    const squares = this.#result.values
    for (let step = 0; step < present.length; step++) {
      if (present[step] !== 1) continue
      const value = values[step] ?? 0
      const count = (this.#counts[step] ?? 0) + 1
      this.#counts[step] = count
      if (count === 1) {
        this.#means[step] = value
        squares[step] = Number.isFinite(value) ? 0 : Number.NaN
        this.#result.present[step] = 1
        continue
      }
      const difference = value - (this.#means[step] ?? 0)
      const mean = (this.#means[step] ?? 0) + difference / count
      this.#means[step] = mean
      squares[step] = (squares[step] ?? 0) + difference * (value - mean)
    }
  }

  finish(): boolean {
    const { values } = this.#result
    for (let step = 0; step < values.length; step++)
      values[step] = this.#finished((values[step] ?? 0) / (this.#counts[step] ?? 0))
    return true
  }
}

/** The one that needs all numbers of a step at once. */
class Quantiles implements Accumulator {
  readonly #result: StepSeries
  readonly #quantiles: Float64Array
  readonly #series: StepSeries[] = []
  #numbers = new Float64Array()
  #step = 0

  constructor(result: StepSeries, quantiles: Float64Array) {
    this.#result = result
    this.#quantiles = quantiles
  }

  add(series: StepSeries): void {
    this.#series.push(series)
    if (this.#series.length > this.#numbers.length) this.#numbers = new Float64Array(2 * this.#series.length)
  }

  finish(budget: Budget): boolean {
    for (; this.#step < this.#result.values.length; this.#step++) {
      let count = 0
      for (const { values, present } of this.#series) {
        if (present[this.#step] === 1) this.#numbers[count++] = values[this.#step] ?? 0
      }
      if (count === 0) continue
      const quantile = this.#quantiles[this.#step] ?? 0
      this.#result.set(this.#step, quantileOf(quantile, this.#numbers.subarray(0, count)))
      // Sorting takes longer than adding.
      if (budget.isStepOver(10 * count)) {
        this.#step++
        return false
      }
    }
    return true
  }
}
