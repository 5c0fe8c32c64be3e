/**
 * Alerts whose expression has ceased to hold: one that fires goes on until `recover` holds, and one of which there are no data goes
 * on for a while where `no_data` says so. Elements of expressions are compared by the labels that the rule does not set itself.
 */
import { LabelSet } from '../../../../promql/label-set.ts'
import type { PreparedQuery } from '../../../../promql/query.ts'
import type { EvaluatedSample, RuleEvaluation, RuleSteps } from './evaluation.ts'
import { ALERT_NAME, type AlertingDefinition, NO_DATA_LABEL } from './rule-file.ts'

interface Labelled {
  readonly labels: LabelSet
}

interface LapsedAlert extends Labelled {
  readonly state: string
}

/** Why an alert goes on although its expression does not hold. */
export type Lapse = 'unrecovered' | 'missing'

/** What is evaluated as an element of an expression that has no data at all. */
const NO_DATA_ELEMENT: EvaluatedSample = { labels: LabelSet.of([[NO_DATA_LABEL, 'true']]), value: Number.NaN }

/** The elements for which a rule alerts. */
export function* alertingElements(
  { query, noData, unfiltered }: AlertingDefinition,
  evaluation: RuleEvaluation,
): RuleSteps<readonly EvaluatedSample[]> {
  const found = yield* evaluation.vector(query)
  if (found.length > 0 || noData !== 'alert' || unfiltered === undefined) return found
  return (yield* evaluation.vector(unfiltered)).length > 0 ? found : [NO_DATA_ELEMENT]
}

/** Those of the alerts that go on, by their keys; all others have ended. `lapsed`: whose expression does not hold. */
export function* lapsesOf(
  definition: AlertingDefinition,
  lapsed: ReadonlyMap<string, LapsedAlert>,
  holding: Iterable<Labelled>,
  evaluation: RuleEvaluation,
): RuleSteps<ReadonlyMap<string, Lapse>> {
  const { recover, unfiltered, noData } = definition
  const lapses = new Map<string, Lapse>()
  if (lapsed.size === 0 || !definition.hasOwnKeys) return lapses
  const own = new Set([...definition.labels.keys(), ALERT_NAME])
  const elementOf = ({ labels }: Labelled): string => labels.without(own).withoutMetadata().key
  // An element that holds with other texts of the labels of the rule is another alert, which takes the place of this one.
  const replaced = new Set([NO_DATA_ELEMENT.labels.key])
  for (const alert of holding) {
    replaced.add(elementOf(alert))
    yield undefined
  }
  const elementsOf = function* (query: PreparedQuery): RuleSteps<ReadonlyMap<string, number>> {
    const elements = new Map<string, number>()
    for (const sample of yield* evaluation.vector(query)) {
      const key = elementOf(sample)
      elements.set(key, Math.min(sample.value, elements.get(key) ?? sample.value))
      yield undefined
    }
    return elements
  }
  const known = unfiltered && (yield* elementsOf(unfiltered))
  const recovered = recover && (yield* elementsOf(recover))
  for (const [key, alert] of lapsed) {
    yield undefined
    const element = elementOf(alert)
    if (replaced.has(element)) continue
    const isMissing = known !== undefined && !known.has(element)
    if (isMissing && noData !== 'resolve') lapses.set(key, 'missing')
    if (!isMissing && alert.state === 'firing' && recovered?.get(element) === 0) lapses.set(key, 'unrecovered')
  }
  return lapses
}
