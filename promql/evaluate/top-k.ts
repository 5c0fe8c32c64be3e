/**
 * `topk` and `bottomk`: for each step the series with the largest or smallest values of a group. Of the others nothing is kept: a
 * heap for each step has the best so far, the worst of them in front. The heaps lie across columns, one for each place of a heap, so
 * that they cost no more than other columns and are counted as these.
 */
import { executionError } from '../errors.ts'
import type { LabelSet } from '../label-set.ts'
import type { Stream } from '../series-source.ts'
import type { Budget } from './budget.ts'
import { StepSeries } from './grid.ts'

/** A value, and the number of its series. */
const BYTES_PER_PLACE = 12

/** A place of all heaps: what stands there at each step. */
interface Place {
  readonly values: Float64Array
  /** The numbers of the series in the group. */
  readonly series: Uint32Array
}

/** How many series are wanted at each step. Throws PromqlError where that is no number. */
export function wantedCounts(parameters: Float64Array): Float64Array {
  if (parameters.every((count) => count < 1)) return new Float64Array(parameters.length)
  const bad = parameters.find((count) => !(Math.abs(count) < 2 ** 63))
  if (bad !== undefined && Number.isNaN(bad)) throw executionError('Parameter value is NaN')
  if (bad !== undefined) throw executionError(`Scalar value ${bad} ${bad > 0 ? 'overflows' : 'underflows'} int64`)
  return parameters.map((count) => Math.max(0, Math.trunc(count)))
}

export class TopSeries {
  readonly #counts: Float64Array
  /** Whether a value ranks below another; NaN ranks below all. */
  readonly #isWorse: (value: number, other: number) => boolean
  readonly #places: Place[] = []
  /** How many places of a heap are taken, at each step. */
  readonly #taken: Uint32Array
  readonly #labels: { readonly labels: LabelSet; readonly dropsName: boolean }[] = []

  constructor(counts: Float64Array, isSmallest: boolean) {
    this.#counts = counts
    this.#isWorse = isSmallest
      ? (value, other) => value > other || (Number.isNaN(value) && !Number.isNaN(other))
      : (value, other) => value < other || (Number.isNaN(value) && !Number.isNaN(other))
    this.#taken = new Uint32Array(counts.length)
  }

  /** Returns the work that it was, in elements of columns. */
  add({ labels, dropsName, values, present }: StepSeries, budget: Budget): number {
    const series = this.#labels.length
    this.#labels.push({ labels, dropsName })
    let work = present.length
    for (let step = 0; step < present.length; step++) {
      if (present[step] !== 1) continue
      const taken = this.#taken[step] as number
      const count = this.#counts[step] ?? 0
      const value = values[step] as number
      if (taken < count) {
        if (taken === this.#places.length) this.#addPlace(budget)
        this.#taken[step] = taken + 1
        work += this.#rise(step, taken, value, series)
      } else if (count > 0 && this.#isWorse(this.#places[0]?.values[step] as number, value)) {
        work += this.#sink(step, value, series)
      }
    }
    return work
  }

  #addPlace(budget: Budget): void {
    const { length } = this.#counts
    budget.takePoints(length)
    budget.hold(length, BYTES_PER_PLACE)
    this.#places.push({ values: new Float64Array(length), series: new Uint32Array(length) })
  }

  /** The series that were among the best at some step, with their values there; for a single step, the best first. */
  *result(budget: Budget): Stream<StepSeries> {
    const found = new Map<number, StepSeries>()
    for (const [step, taken] of this.#taken.entries()) {
      for (const place of this.#ranked(step, taken)) {
        const [value, series] = [place.values[step] as number, place.series[step] as number]
        const { labels, dropsName } = this.#labels[series] ?? {}
        if (labels === undefined || dropsName === undefined) continue
        let result = found.get(series)
        if (result === undefined) {
          budget.takePoints(this.#counts.length)
          budget.hold(this.#counts.length)
          result = new StepSeries(labels, dropsName, this.#counts.length)
        }
        result.set(step, value)
        found.set(series, result)
      }
      if (budget.isStepOver(10 * taken)) yield undefined
    }
    const places = this.#places.splice(0).length
    budget.release(places, places * this.#counts.length, BYTES_PER_PLACE)
    yield* found.values()
    budget.release(found.size, found.size * this.#counts.length)
  }

  /** What stands at a step, the best first; of equal values the series that came first. */
  #ranked(step: number, taken: number): Place[] {
    return this.#places.slice(0, taken).sort((left, right) => {
      const [value, other] = [left.values[step] as number, right.values[step] as number]
      if (this.#isWorse(value, other)) return 1
      return this.#isWorse(other, value) ? -1 : (left.series[step] as number) - (right.series[step] as number)
    })
  }

  /** Puts a value at a place that is free, or nearer to the front. Returns how many places were looked at. */
  #rise(step: number, free: number, value: number, series: number): number {
    let [index, looked] = [free, 1]
    for (; index > 0; looked++) {
      const parent = (index - 1) >> 1
      const above = this.#places[parent] as Place
      if (!this.#isWorse(value, above.values[step] as number)) break
      put(this.#places[index] as Place, step, above.values[step] as number, above.series[step] as number)
      index = parent
    }
    put(this.#places[index] as Place, step, value, series)
    return looked
  }

  /** Puts a value in place of the worst. Returns how many places were looked at. */
  #sink(step: number, value: number, series: number): number {
    const taken = this.#taken[step] as number
    let [index, looked] = [0, 1]
    for (; ; looked += 2) {
      let [worst, least] = [index, value]
      for (let child = 2 * index + 1; child <= 2 * index + 2 && child < taken; child++) {
        const below = this.#places[child]?.values[step] as number
        if (this.#isWorse(below, least)) [worst, least] = [child, below]
      }
      if (worst === index) break
      const below = this.#places[worst] as Place
      put(this.#places[index] as Place, step, least, below.series[step] as number)
      index = worst
    }
    put(this.#places[index] as Place, step, value, series)
    return looked
  }
}

function put({ values, series }: Place, step: number, value: number, number: number): void {
  values[step] = value
  series[step] = number
}
