/**
 * `topk` and `bottomk`: for each step the series with the largest or smallest values of a group. Of the others nothing is kept: a
 * heap for each step has the best so far, the worst of them in front.
 */
import { executionError } from '../errors.ts'
import type { LabelSet } from '../label-set.ts'
import type { Stream } from '../series-source.ts'
import type { Budget } from './budget.ts'
import { StepSeries } from './grid.ts'

interface Ranked {
  readonly value: number
  /** The number of the series in the group. */
  readonly series: number
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
  readonly #heaps: Ranked[][]
  readonly #labels: { readonly labels: LabelSet; readonly dropsName: boolean }[] = []

  constructor(counts: Float64Array, isSmallest: boolean) {
    this.#counts = counts
    this.#isWorse = isSmallest
      ? (value, other) => value > other || (Number.isNaN(value) && !Number.isNaN(other))
      : (value, other) => value < other || (Number.isNaN(value) && !Number.isNaN(other))
    this.#heaps = Array.from(counts, () => [])
  }

  add({ labels, dropsName, values, present }: StepSeries, budget: Budget): void {
    const series = this.#labels.length
    this.#labels.push({ labels, dropsName })
    for (let step = 0; step < present.length; step++) {
      if (present[step] !== 1) continue
      const heap = this.#heaps[step] ?? []
      const count = this.#counts[step] ?? 0
      const value = values[step] ?? 0
      if (heap.length < count) {
        budget.takePoints(1)
        heap.push({ value, series })
        this.#rise(heap)
      } else if (count > 0 && this.#isWorse(heap[0]?.value ?? 0, value)) {
        heap[0] = { value, series }
        this.#sink(heap)
      }
    }
  }

  /** The series that were among the best at some step, with their values there; for a single step, the best first. */
  *result(budget: Budget): Stream<StepSeries> {
    const found = new Map<number, StepSeries>()
    for (const [step, heap] of this.#heaps.entries()) {
      const ranked = heap.toSorted((left, right) => this.#order(left, right))
      for (const { value, series } of ranked) {
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
      if (budget.isStepOver(10 * heap.length)) yield undefined
    }
    yield* found.values()
    budget.release(found.size, found.size * this.#counts.length)
  }

  #order(left: Ranked, right: Ranked): number {
    if (this.#isWorse(left.value, right.value)) return 1
    return this.#isWorse(right.value, left.value) ? -1 : left.series - right.series
  }

  #rise(heap: Ranked[]): void {
    for (let index = heap.length - 1; index > 0; ) {
      const parent = (index - 1) >> 1
      const [own, above] = [heap[index], heap[parent]]
      if (own === undefined || above === undefined || !this.#isWorse(own.value, above.value)) return
      heap[index] = above
      heap[parent] = own
      index = parent
    }
  }

  #sink(heap: Ranked[]): void {
    for (let index = 0; ; ) {
      let worst = index
      for (const child of [2 * index + 1, 2 * index + 2]) {
        const [below, other] = [heap[child], heap[worst]]
        if (below !== undefined && other !== undefined && this.#isWorse(below.value, other.value)) worst = child
      }
      const [own, below] = [heap[index], heap[worst]]
      if (worst === index || own === undefined || below === undefined) return
      heap[index] = below
      heap[worst] = own
      index = worst
    }
  }
}
