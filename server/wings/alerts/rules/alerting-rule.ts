/**
 * An alerting rule and its alerts. The transitions are those of Prometheus: what holds is pending, after `for` it fires, and when it
 * holds no more it ends, after `keep_firing_for`.
 */
import { LabelSet, METRIC_NAME_LABEL } from '../../../../promql/label-set.ts'
import type { TemplateSurroundings } from '../template/functions.ts'
import type { TemplateData, TextTemplate } from '../template/template.ts'
import { type EvaluatedSample, RuleError, type RuleEvaluation } from './evaluation.ts'
import { ALERT_NAME, type AlertingDefinition } from './rule-file.ts'

export type AlertState = 'pending' | 'firing' | 'inactive'

export interface Alert {
  readonly labels: LabelSet
  readonly annotations: LabelSet
  readonly state: AlertState
  readonly value: number
  /** Milliseconds since 1970: when the expression began to hold. */
  readonly activeMs: number
  /** When it began to fire. */
  readonly firedMs: number | undefined
  /** Since when it fires although the expression holds no more. */
  readonly keptSinceMs: number | undefined
  /** When it ended; it is remembered for a while, so that everybody hears of it. */
  readonly resolvedMs: number | undefined
}

/** How long an alert that has ended is remembered. */
const RETENTION_MS = 900_000
const ALERTS = 'ALERTS'
const ALERTS_FOR_STATE = 'ALERTS_FOR_STATE'
const STATE_LABEL = 'alertstate'

export class AlertingRule {
  readonly definition: AlertingDefinition
  readonly #alerts = new Map<string, Alert>()

  constructor(definition: AlertingDefinition) {
    this.definition = definition
  }

  get alerts(): Iterable<Alert> {
    return this.#alerts.values()
  }

  /** Makes the transitions of a time. Gives the series ALERTS and ALERTS_FOR_STATE. Throws RuleError. */
  evaluate(evaluation: RuleEvaluation, limit: number): readonly EvaluatedSample[] {
    const { timeMs } = evaluation
    const holding = this.#holding(evaluation)
    for (const [key, found] of holding) {
      const before = this.#alerts.get(key)
      const isActive = before !== undefined && before.state !== 'inactive'
      const { value, annotations } = found
      this.#alerts.set(key, isActive ? { ...before, value, annotations, keptSinceMs: undefined } : found)
    }
    const active: Alert[] = []
    for (const [key, alert] of [...this.#alerts]) {
      const next = holding.has(key) ? this.#fired(alert, timeMs) : this.#ended(alert, timeMs)
      if (next === undefined) this.#alerts.delete(key)
      else this.#alerts.set(key, next)
      if (next !== undefined && next.state !== 'inactive') active.push(next)
    }
    if (limit > 0 && active.length > limit) {
      this.#alerts.clear()
      throw new RuleError(`exceeded limit of ${limit} with ${active.length} alerts`)
    }
    return active.flatMap(({ labels, state, activeMs }) => [
      {
        labels: labels.with([
          [METRIC_NAME_LABEL, ALERTS],
          [STATE_LABEL, state],
        ]),
        value: 1,
      },
      { labels: labels.with([[METRIC_NAME_LABEL, ALERTS_FOR_STATE]]), value: Math.floor(activeMs / 1_000) },
    ])
  }

  /** What holds now, by the keys of the labels, as if it were new. */
  #holding(evaluation: RuleEvaluation): Map<string, Alert> {
    const { definition } = this
    const holding = new Map<string, Alert>()
    for (const { labels: from, value } of evaluation.vector(definition.query)) {
      const data: TemplateData = { ...evaluation.external, labels: new Map(from), value }
      const expanded = (templates: ReadonlyMap<string, TextTemplate>): [string, string][] =>
        [...templates].map(([name, template]) => [name, expandedText(template, data, evaluation.surroundings)])
      const own = [...expanded(definition.labels), [ALERT_NAME, definition.name] as const]
      const labels = from.withoutMetadata().with(own)
      if (holding.has(labels.key))
        throw new RuleError('vector contains metrics with the same labelset after applying alert labels')
      holding.set(labels.key, {
        labels,
        annotations: LabelSet.of(expanded(definition.annotations)),
        state: 'pending',
        value,
        activeMs: evaluation.timeMs,
        firedMs: undefined,
        keptSinceMs: undefined,
        resolvedMs: undefined,
      })
    }
    return holding
  }

  #fired(alert: Alert, timeMs: number): Alert {
    if (alert.state !== 'pending' || timeMs - alert.activeMs < this.definition.forMs) return alert
    return { ...alert, state: 'firing', firedMs: timeMs }
  }

  /** An alert whose expression does not hold; undefined when nobody needs to know of it any more. */
  #ended(alert: Alert, timeMs: number): Alert | undefined {
    if (alert.state === 'pending') return undefined
    if (alert.state === 'inactive') return timeMs - (alert.resolvedMs ?? timeMs) > RETENTION_MS ? undefined : alert
    const { keepFiringForMs } = this.definition
    const keptSinceMs = keepFiringForMs > 0 ? (alert.keptSinceMs ?? timeMs) : undefined
    if (keptSinceMs !== undefined && timeMs - keptSinceMs < keepFiringForMs) return { ...alert, keptSinceMs }
    return { ...alert, state: 'inactive', keptSinceMs, resolvedMs: timeMs }
  }
}

/** A template that fails is no reason not to alert: its text says what is wrong, as that of Prometheus does. */
function expandedText(template: TextTemplate, data: TemplateData, surroundings: TemplateSurroundings): string {
  try {
    return template.execute(data, surroundings)
  } catch (error) {
    return `<error expanding template: ${(error as Error).message}>`
  }
}
