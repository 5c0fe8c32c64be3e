/** By which labels series of two sides belong together, and which labels the results have. */
import { type Binary, isComparison, type Matching } from '../expression.ts'
import { type LabelSet, METRIC_NAME_LABEL } from '../label-set.ts'

/** The labels that have to be the same on both sides. */
export function signatures({ isOn, labels }: Matching): (of: LabelSet) => LabelSet {
  const names = new Set(isOn ? labels : [...labels, METRIC_NAME_LABEL])
  return isOn ? (of) => of.keep(names) : (of) => of.without(names)
}

/** The labels of the result of two series; `many` is the left one where it is one to one. */
export function resultLabels({ operator, matching }: Binary): (many: LabelSet, one: LabelSet) => LabelSet {
  const names = new Set(matching.labels)
  const isOneToOne = matching.cardinality === 'one-to-one'
  return (many, one) => {
    // A comparison leaves values as they are, so they are still those of the metric.
    let labels = isComparison(operator) ? many : many.withoutMetadata()
    if (isOneToOne) labels = matching.isOn ? labels.keep(names) : labels.without(names)
    if (matching.include.length === 0) return labels
    return labels.with(matching.include.map((name) => [name, one.get(name)] as const))
  }
}
