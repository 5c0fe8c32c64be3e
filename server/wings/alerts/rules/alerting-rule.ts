/**
 * An alerting rule and its alerts. The transitions are those of Prometheus: what holds is pending, after `for` it fires, and when it
 * holds no more it ends, after `keep_firing_for`. With `recover` and `no_data` alerts go on for longer.
 */
import { LabelSet, METRIC_NAME_LABEL } from '../../../../promql/label-set.ts'
import type { TemplateData, TextTemplate } from '../../../../promql/template/template.ts'
import { type EvaluatedSample, RuleError, type RuleEvaluation, type RuleSteps } from './evaluation.ts'
import { alertingElements, type Lapse, lapsesOf } from './lapsed-alerts.ts'
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
  /** Since when it goes on although there are no data of it. */
  readonly missingSinceMs: number | undefined
  /** When it ended; it is remembered for a while, so that everybody hears of it. */
  readonly resolvedMs: number | undefined
}

/** By the keys of their labels. */
export type Alerts = ReadonlyMap<string, Alert>

/** How long an alert that has ended is remembered. */
const RETENTION_MS = 900_000
const ALERTS = 'ALERTS'
const ALERTS_FOR_STATE = 'ALERTS_FOR_STATE'
const STATE_LABEL = 'alertstate'
/** Of an alert that goes on for no other reason than that it holds. */
const HOLDS = { keptSinceMs: undefined, missingSinceMs: undefined } as const

/** The alerts that a rule has at the time of an evaluation, made of those that it had before. Its steps throw RuleError. */
export function* alertsAfter(
  definition: AlertingDefinition,
  before: Alerts,
  evaluation: RuleEvaluation,
): RuleSteps<Alerts> {
  const holding = yield* holdingAlerts(definition, evaluation)
  // Most rules have none, most of the time.
  if (holding.size === 0 && before.size === 0) return before
  const lapsed = new Map([...before].filter(([key, alert]) => isActive(alert) && !holding.has(key)))
  const lapses = yield* lapsesOf(definition, lapsed, holding.values(), evaluation)
  return yield* transitioned(definition, before, holding, evaluation.timeMs, lapses)
}

/** The same where it is known already what holds, by the keys of the labels, as if it were new, and what goes on besides. */
export function* transitioned(
  definition: Pick<AlertingDefinition, 'forMs' | 'keepFiringForMs' | 'noDataForMs'>,
  before: Alerts,
  holding: Alerts,
  timeMs: number,
  lapses: ReadonlyMap<string, Lapse> = new Map(),
): RuleSteps<Alerts> {
  const found = new Map(before)
  for (const [key, fresh] of holding) {
    const known = before.get(key)
    const { value, annotations } = fresh
    const goesOn = known !== undefined && isActive(known)
    found.set(key, goesOn ? { ...known, ...HOLDS, value, annotations } : fresh)
  }
  const after = new Map<string, Alert>()
  for (const [key, alert] of found) {
    const next = holding.has(key)
      ? fired(definition, alert, timeMs)
      : afterLapse(definition, alert, lapses.get(key), timeMs)
    if (next !== undefined) after.set(key, next)
    yield undefined
  }
  return after
}

/** The series ALERTS and ALERTS_FOR_STATE of the alerts that are active. */
export function* samplesOfAlerts(alerts: Alerts): RuleSteps<readonly EvaluatedSample[]> {
  const samples: EvaluatedSample[] = []
  for (const { labels, state, activeMs } of alerts.values()) {
    if (state === 'inactive') continue
    const ofState = labels.with([
      [METRIC_NAME_LABEL, ALERTS],
      [STATE_LABEL, state],
    ])
    const since = labels.with([[METRIC_NAME_LABEL, ALERTS_FOR_STATE]])
    samples.push({ labels: ofState, value: 1 }, { labels: since, value: Math.floor(activeMs / 1_000) })
    yield undefined
  }
  return samples
}

export function isActive({ state }: Alert): boolean {
  return state !== 'inactive'
}

/** What holds now, by the keys of the labels, as if it were new. */
function* holdingAlerts(definition: AlertingDefinition, evaluation: RuleEvaluation): RuleSteps<Map<string, Alert>> {
  const holding = new Map<string, Alert>()
  for (const { labels: from, value } of yield* alertingElements(definition, evaluation)) {
    const data: TemplateData = { ...evaluation.external, labels: new Map(from), value }
    const own = yield* texts(definition.labels, data, evaluation)
    const labels = from.withoutMetadata().with([...own, [ALERT_NAME, definition.name]])
    if (holding.has(labels.key))
      throw new RuleError('vector contains metrics with the same labelset after applying alert labels')
    const annotations = LabelSet.of(yield* texts(definition.annotations, data, evaluation))
    holding.set(labels.key, newAlert(labels, annotations, value, evaluation.timeMs))
    yield undefined
  }
  return holding
}

/** An alert that begins to hold. */
export function newAlert(labels: LabelSet, annotations: LabelSet, value: number, timeMs: number): Alert {
  const since = { activeMs: timeMs, firedMs: undefined, resolvedMs: undefined }
  return { labels, annotations, state: 'pending', value, ...since, ...HOLDS }
}

function* texts(
  templates: ReadonlyMap<string, TextTemplate>,
  data: TemplateData,
  evaluation: RuleEvaluation,
): RuleSteps<[string, string][]> {
  const found: [string, string][] = []
  for (const [name, template] of templates) {
    found.push([name, yield* evaluation.text(template, data)])
    if (!template.isConstant) yield undefined
  }
  return found
}

function fired({ forMs }: Pick<AlertingDefinition, 'forMs'>, alert: Alert, timeMs: number): Alert {
  if (alert.state !== 'pending' || timeMs - alert.activeMs < forMs) return alert
  return { ...alert, state: 'firing', firedMs: timeMs }
}

/** An alert whose expression does not hold, and why it goes on. */
function afterLapse(
  definition: Pick<AlertingDefinition, 'keepFiringForMs' | 'noDataForMs'>,
  alert: Alert,
  lapse: Lapse | undefined,
  timeMs: number,
): Alert | undefined {
  if (lapse === 'unrecovered') return { ...alert, ...HOLDS }
  if (lapse === undefined) return ended(definition, { ...alert, missingSinceMs: undefined }, timeMs)
  const missing = { ...alert, missingSinceMs: alert.missingSinceMs ?? timeMs }
  return timeMs - missing.missingSinceMs < definition.noDataForMs ? missing : ended(definition, missing, timeMs)
}

/** An alert that goes on for no other reason than `keep_firing_for`; undefined when nobody needs to know of it any more. */
function ended(
  { keepFiringForMs }: Pick<AlertingDefinition, 'keepFiringForMs'>,
  alert: Alert,
  timeMs: number,
): Alert | undefined {
  if (alert.state === 'pending') return undefined
  if (alert.state === 'inactive') return timeMs - (alert.resolvedMs ?? timeMs) > RETENTION_MS ? undefined : alert
  const keptSinceMs = keepFiringForMs > 0 ? (alert.keptSinceMs ?? timeMs) : undefined
  if (keptSinceMs !== undefined && timeMs - keptSinceMs < keepFiringForMs) return { ...alert, keptSinceMs }
  return { ...alert, state: 'inactive', keptSinceMs, missingSinceMs: undefined, resolvedMs: timeMs }
}
