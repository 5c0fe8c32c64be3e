/** Alerts as they are stored: what of an alert has to outlive the process, and what a transition is. */
import { LabelSet } from '../../../../promql/label-set.ts'
import type { AlertRow } from '../../../kit/expressions.ts'
import type { Alert, Alerts } from '../rules/alerting-rule.ts'

/** What has become of an alert. */
export interface AlertChange {
  /** As it is now; with the state `inactive` if it is gone. */
  readonly alert: Alert
  /** Its state is another one. */
  readonly isTransition: boolean
  /** Nothing of it is kept. */
  readonly isGone: boolean
}

/** What differs between the alerts of a rule before an evaluation at a time and after it, as far as it is stored; undefined for each that does not. */
export function* changesOf(before: Alerts, after: Alerts, timeMs: number): Generator<AlertChange | undefined> {
  for (const [key, alert] of after) {
    const known = before.get(key)
    if (known !== undefined && isStoredSame(known, alert)) yield undefined
    else yield { alert, isTransition: known?.state !== alert.state, isGone: false }
  }
  for (const [key, alert] of before) {
    if (after.has(key)) {
      yield undefined
      continue
    }
    const isTransition = alert.state !== 'inactive'
    const resolvedMs = alert.resolvedMs ?? timeMs
    yield { alert: { ...alert, state: 'inactive', resolvedMs }, isTransition, isGone: true }
  }
}

/** The value and the annotations follow with every evaluation. */
function isStoredSame(one: Alert, other: Alert): boolean {
  const { state, activeMs, firedMs, keptSinceMs, missingSinceMs, resolvedMs } = one
  if (state !== other.state || activeMs !== other.activeMs || firedMs !== other.firedMs) return false
  if (keptSinceMs !== other.keptSinceMs || missingSinceMs !== other.missingSinceMs) return false
  return resolvedMs === other.resolvedMs
}

export function storedLabels(labels: LabelSet): string {
  return JSON.stringify([...labels])
}

export function rowOf(rule: string, alert: Alert): AlertRow {
  const { labels, annotations, state, value, activeMs, firedMs, keptSinceMs, missingSinceMs, resolvedMs } = alert
  return {
    rule,
    labels: storedLabels(labels),
    annotations: storedLabels(annotations),
    state,
    value: String(value),
    active: activeMs,
    fired: firedMs,
    kept: keptSinceMs,
    resolved: resolvedMs,
    missing: missingSinceMs,
  }
}

export function alertOf(row: AlertRow): Alert {
  const { labels, annotations, state, value, active, fired, kept, resolved, missing } = row
  return {
    labels: labelsFromText(labels),
    annotations: labelsFromText(annotations),
    state,
    value: Number(value),
    activeMs: active,
    firedMs: fired,
    keptSinceMs: kept,
    missingSinceMs: missing,
    resolvedMs: resolved,
  }
}

/** The alert with its times moved back, as the clock was, and none before 1970. */
export function movedBack(alert: Alert, byMs: number): Alert {
  const moved = (ms: number): number => Math.max(0, ms - byMs)
  const { activeMs, firedMs, keptSinceMs, missingSinceMs, resolvedMs } = alert
  return {
    ...alert,
    activeMs: moved(activeMs),
    firedMs: firedMs && moved(firedMs),
    keptSinceMs: keptSinceMs && moved(keptSinceMs),
    missingSinceMs: missingSinceMs && moved(missingSinceMs),
    resolvedMs: resolvedMs && moved(resolvedMs),
  }
}

function labelsFromText(text: string): LabelSet {
  return LabelSet.of(JSON.parse(text) as [string, string][])
}
