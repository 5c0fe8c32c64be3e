/**
 * A notifier that cannot tell anybody is an alert itself, of which the other notifiers of its tenant tell. It is none of rules in files:
 * also a server without a history says so.
 */
import type { Label } from '../../kit/delivered-values.ts'
import { fingerprintOf } from '../../kit/fingerprint.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import type { InForce } from './in-force.ts'

/** What passes by itself is not told. */
const FAILS_AFTER_MS = 300_000
export const FAILING_NOTIFIER = 'CinnabarNotifierFails'
export const NOTIFIERS_GROUP = 'notifiers'

type Failing = Pick<InForce, 'table' | 'failingSinceMs' | 'isStopped' | 'problem'>

/** Whether an alert is of a notifier, and of no rule. */
export function isOfNoRule({ group, rule }: Pick<NotifiedAlert, 'group' | 'rule'>): boolean {
  return group === NOTIFIERS_GROUP && rule === FAILING_NOTIFIER
}

/** The alert of a notifier that has failed for long enough; undefined if it has not. */
export function failureOf(one: Failing, nowMs: number): NotifiedAlert | undefined {
  const { failingSinceMs, isStopped } = one
  const waitMs = isStopped ? 0 : FAILS_AFTER_MS
  return failingSinceMs !== undefined && nowMs - failingSinceMs >= waitMs ? alertOf(one, 'firing', nowMs) : undefined
}

/** To be called every second. Tells the others of those that have failed for five minutes, or work again. */
export function tellOfFailures(running: readonly InForce[], nowMs: number): void {
  for (const one of running) {
    const { failingSinceMs, counts, table } = one
    const failure = failureOf(one, nowMs)
    // After a start nothing has been tried yet.
    const works = failingSinceMs === undefined && counts.delivered > 0
    if (failure !== undefined) tellOthers(running, table, failure)
    else if (works) tellOthers(running, table, alertOf(one, 'resolved', nowMs))
  }
}

/** What was told of notifiers that are not in force any more has ended. */
export function endFailuresOfOthers(running: readonly InForce[], nowMs: number): void {
  for (const one of running)
    for (const alert of one.groups?.alerts() ?? []) {
      if (!isOfNoRule(alert) || alert.state !== 'firing') continue
      const name = textOfLabel(alert, 'notifier')
      const isThere = running.some((other) => other.table.name === name && other.table.tenant === one.table.tenant)
      if (!isThere) one.observe({ ...alert, state: 'resolved', endedMs: nowMs })
    }
}

function tellOthers(running: readonly InForce[], { tenant, name }: InForce['table'], alert: NotifiedAlert): void {
  for (const other of running) if (other.table.tenant === tenant && other.table.name !== name) other.observe(alert)
}

function alertOf(one: Failing, state: NotifiedAlert['state'], nowMs: number): NotifiedAlert {
  const { name, url } = one.table
  const labels: readonly Label[] = [
    ['alertname', FAILING_NOTIFIER],
    ['notifier', name],
    ['severity', 'warning'],
  ]
  const sinceMs = one.failingSinceMs ?? nowMs
  return {
    labels,
    annotations: [['summary', `The notifier ${name} (${url.shown}) tells nobody: ${one.problem}`]],
    state,
    value: '1',
    sinceMs,
    firedMs: sinceMs,
    endedMs: state === 'firing' ? 0 : nowMs,
    group: NOTIFIERS_GROUP,
    rule: FAILING_NOTIFIER,
    fingerprint: fingerprintOf(labels),
  }
}
