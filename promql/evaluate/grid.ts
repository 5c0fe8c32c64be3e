/**
 * The times at which an expression is evaluated, and a series with a value at some of them. An instant query has a grid of one
 * time: there is one evaluator for both kinds of queries.
 */
import { type LabelSet, NO_LABELS } from '../label-set.ts'
import type { Stream } from '../series-source.ts'
import type { Annotations } from './annotations.ts'
import type { Budget } from './budget.ts'

export interface Grid {
  readonly startMs: number
  /** At least 1. */
  readonly stepMs: number
  /** How many times there are; 0 is possible in subqueries. */
  readonly count: number
}

export function timeAt(grid: Grid, step: number): number {
  return grid.startMs + step * grid.stepMs
}

/** What every part of an evaluation needs. */
export interface Evaluation {
  readonly budget: Budget
  readonly annotations: Annotations
  readonly spares: SpareSeries
}

/** Whoever gets it from a stream owns it, and may write into it, keep it, or give it to the spares. */
export class StepSeries {
  labels: LabelSet
  /** Whether the name goes when the query ends; until then labels can be made of it. */
  dropsName: boolean
  readonly values: Float64Array
  /** 1 where there is a value. */
  readonly present: Uint8Array

  constructor(labels: LabelSet, dropsName: boolean, count: number) {
    this.labels = labels
    this.dropsName = dropsName
    this.values = new Float64Array(count)
    this.present = new Uint8Array(count)
  }

  /** A series with a value at each time. */
  static full(values: Float64Array, labels = NO_LABELS): StepSeries {
    const series = new StepSeries(labels, false, values.length)
    series.values.set(values)
    series.present.fill(1)
    return series
  }

  set(step: number, value: number): void {
    this.values[step] = value
    this.present[step] = 1
  }

  get isEmpty(): boolean {
    return !this.present.includes(1)
  }

  get isFull(): boolean {
    return !this.present.includes(0)
  }
}

/** More are never wanted at once where one series comes after the other. */
const MOST_SPARES = 4

/**
 * Series that nobody needs any more, for those that are made next: most expressions look at one series after the other, and the memory
 * of their columns is outside of the heap, where a collection of all garbage is all that frees it.
 */
export class SpareSeries {
  readonly #series: StepSeries[] = []

  /** One without values. */
  take(labels: LabelSet, dropsName: boolean, count: number): StepSeries {
    const index = this.#series.findIndex(({ values }) => values.length === count)
    const [spare] = index < 0 ? [] : this.#series.splice(index, 1)
    if (spare === undefined) return new StepSeries(labels, dropsName, count)
    spare.labels = labels
    spare.dropsName = dropsName
    spare.values.fill(0)
    spare.present.fill(0)
    return spare
  }

  /** Of a series that nobody looks at any more. */
  give(series: StepSeries): void {
    if (this.#series.length >= MOST_SPARES) this.#series.shift()
    this.#series.push(series)
  }
}

/** All series of a stream. They are counted as held until the caller releases them. */
export function* collected(stream: Stream<StepSeries>, budget: Budget): Generator<undefined, StepSeries[], void> {
  const all: StepSeries[] = []
  for (const series of stream) {
    if (series === undefined) yield undefined
    else {
      budget.hold(series.values.length)
      all.push(series)
    }
  }
  return all
}

/** Each series changed by a function; those that have no value after that are left out. `work`: what each point costs. */
export function* mapped(
  stream: Stream<StepSeries>,
  { budget, spares }: Evaluation,
  change: (series: StepSeries) => void,
  work = 1,
): Stream<StepSeries> {
  for (const series of stream) {
    if (series === undefined) {
      yield undefined
      continue
    }
    change(series)
    const { length } = series.values
    if (series.isEmpty) spares.give(series)
    else yield series
    if (budget.isStepOver(work * length)) yield undefined
  }
}
