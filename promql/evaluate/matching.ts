/**
 * Arithmetic and comparisons between two vectors. The side of one is read first, by signature; then each series of the other side
 * is combined with its partner, step by step, since which series exist may change from step to step.
 */
import { executionError } from '../errors.ts'
import { type Binary, isComparison } from '../expression.ts'
import type { LabelSet } from '../label-set.ts'
import type { Stream } from '../series-source.ts'
import { type Evaluation, type Grid, StepSeries } from './grid.ts'
import { resultLabels, signatures } from './match-labels.ts'
import { sameLabels } from './merged-series.ts'
import { operated } from './operators.ts'

export function* matchedVectors(
  binary: Binary,
  left: Stream<StepSeries>,
  right: Stream<StepSeries>,
  grid: Grid,
  evaluation: Evaluation,
): Stream<StepSeries> {
  const { budget, spares } = evaluation
  const isLeftOne = binary.matching.cardinality === 'one-to-many'
  const partners = new Partners(binary)
  for (const series of isLeftOne ? left : right) {
    if (series === undefined) {
      yield undefined
      continue
    }
    // With what says where its group is.
    budget.hold(grid.count, BYTES_OF_PARTNER)
    partners.add(series)
    if (budget.isStepOver(grid.count)) yield undefined
  }
  const combination = new Combination(binary, grid, evaluation)
  const signatureOf = signatures(binary.matching)
  for (const series of isLeftOne ? right : left) {
    if (series === undefined) {
      yield undefined
      continue
    }
    partners.refuseConflicts(series)
    const signature = signatureOf(series.labels).key
    for (const partner of partners.of(signature)) {
      combination.add(signature, series, partner)
      if (budget.isStepOver(grid.count)) yield undefined
    }
    spares.give(series)
    if (budget.isStepOver(grid.count)) yield undefined
  }
  for (const series of combination.results()) {
    if (!series.isEmpty) yield series
    if (budget.isStepOver(grid.count)) yield undefined
  }
  budget.release(partners.count, partners.count * grid.count, BYTES_OF_PARTNER)
  combination.release()
}

/** What a point takes: of the side of one, and of what was combined, each with its marks. */
const [BYTES_OF_PARTNER, BYTES_OF_COMBINED] = [10, 11]

interface PartnerGroup {
  readonly series: StepSeries[]
  /** Where one of them has a value. */
  readonly taken: Uint8Array
}

/** The series of the side of one. */
class Partners {
  readonly #bySignature = new Map<string, PartnerGroup>()
  /** By step, two series that are there at once; it matters only where the other side has a series at all. */
  readonly #conflicts = new Map<number, readonly [StepSeries, StepSeries]>()
  readonly #binary: Binary
  readonly #signatureOf: (of: LabelSet) => LabelSet
  count = 0

  constructor(binary: Binary) {
    this.#binary = binary
    this.#signatureOf = signatures(binary.matching)
  }

  add(series: StepSeries): void {
    this.count++
    const { key } = this.#signatureOf(series.labels)
    const { present } = series
    const group = this.#bySignature.get(key)
    if (group === undefined) {
      this.#bySignature.set(key, { series: [series], taken: present.slice() })
      return
    }
    for (let step = 0; step < present.length; step++) {
      if (present[step] !== 1) continue
      if (group.taken[step] === 1 && !this.#conflicts.has(step)) {
        const other = group.series.find((earlier) => earlier.present[step] === 1)
        if (other !== undefined) this.#conflicts.set(step, [other, series])
      }
      group.taken[step] = 1
    }
    group.series.push(series)
  }

  of(signature: string): readonly StepSeries[] {
    return this.#bySignature.get(signature)?.series ?? []
  }

  refuseConflicts({ present }: StepSeries): void {
    for (const [step, [first, second]] of this.#conflicts) {
      if (present[step] !== 1) continue
      const side = this.#binary.matching.cardinality === 'one-to-many' ? 'left' : 'right'
      const group = this.#signatureOf(first.labels)
      const [one, other] = [first, second].map(({ labels }) => labels.toString()).sort()
      throw executionError(
        `found duplicate series for the match group ${group} on the ${side} hand-side of the operation: [${one}, ${other}]` +
          ';many-to-many matching not allowed: matching labels must be unique on one side',
      )
    }
  }
}

interface Combined {
  readonly series: StepSeries
  /** Where two series were combined, whether or not a comparison let the result pass. */
  readonly matched: Uint8Array
  readonly signature: string
}

/** The results, by their labels. */
class Combination {
  readonly #binary: Binary
  readonly #grid: Grid
  readonly #evaluation: Evaluation
  readonly #labelsOf: (many: LabelSet, one: LabelSet) => LabelSet
  readonly #byLabels = new Map<string, Combined>()
  /** One to one: where a signature has its result. */
  readonly #bySignature = new Map<string, Uint8Array>()

  constructor(binary: Binary, grid: Grid, evaluation: Evaluation) {
    this.#binary = binary
    this.#grid = grid
    this.#evaluation = evaluation
    this.#labelsOf = resultLabels(binary)
  }

  *results(): Generator<StepSeries> {
    for (const { series } of this.#byLabels.values()) yield series
  }

  release(): void {
    this.#evaluation.budget.release(this.#byLabels.size, this.#byLabels.size * this.#grid.count, BYTES_OF_COMBINED)
  }

  add(signature: string, many: StepSeries, one: StepSeries): void {
    const labels = this.#labelsOf(many.labels, one.labels)
    const { operator, isBool, matching } = this.#binary
    const combined = this.#byLabels.get(labels.key) ?? this.#new(signature, labels)
    combined.series.dropsName ||= isBool || many.dropsName
    const isOneToOne = matching.cardinality === 'one-to-one'
    const matched = isOneToOne ? this.#matchedOf(signature) : combined.matched
    const isSwapped = matching.cardinality === 'one-to-many'
    const isFilter = isComparison(operator) && !isBool
    for (let step = 0; step < this.#grid.count; step++) {
      if (many.present[step] !== 1 || one.present[step] !== 1) continue
      if (matched[step] === 1 && (isOneToOne || combined.signature === signature)) throw severalMatches(isOneToOne)
      matched[step] = 1
      const [manyValue = 0, oneValue = 0] = [many.values[step], one.values[step]]
      const [left, right] = isSwapped ? [oneValue, manyValue] : [manyValue, oneValue]
      const result = operated(operator, left, right)
      if (isFilter && result === 0) continue
      if (combined.series.present[step] === 1) throw sameLabels()
      combined.series.set(step, isFilter ? left : result)
    }
  }

  #new(signature: string, labels: LabelSet): Combined {
    this.#evaluation.budget.takePoints(this.#grid.count)
    this.#evaluation.budget.hold(this.#grid.count, BYTES_OF_COMBINED)
    const { count } = this.#grid
    const combined = { series: new StepSeries(labels, false, count), matched: new Uint8Array(count), signature }
    this.#byLabels.set(labels.key, combined)
    return combined
  }

  #matchedOf(signature: string): Uint8Array {
    const known = this.#bySignature.get(signature) ?? new Uint8Array(this.#grid.count)
    this.#bySignature.set(signature, known)
    return known
  }
}

function severalMatches(isOneToOne: boolean) {
  return executionError(
    isOneToOne
      ? 'multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)'
      : 'multiple matches for labels: grouping labels must ensure unique matches',
  )
}
