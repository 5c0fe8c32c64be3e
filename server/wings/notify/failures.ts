/**
 * A notifier that cannot tell anybody is an alert itself, of which the other notifiers of its tenant tell. It is none of the rules:
 * also a server without a history says so.
 */
import type { Label } from '../../kit/delivered-values.ts'
import { fingerprintOf } from '../../kit/fingerprint.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import type { InForce } from './in-force.ts'

/** What passes by itself is not told. */
const FAILS_AFTER_MS = 300_000
const NAME = 'CinnabarNotifierFails'
const RULE = 'notifiers'

/** Whether an alert is of a notifier, and of no rule. */
export function isOfNoRule({ group, rule }: Pick<NotifiedAlert, 'group' | 'rule'>): boolean {
  return group === RULE && rule === NAME
}

/** To be called every second. Tells the others of those that have failed for five minutes, or work again. */
export function tellOfFailures(running: readonly InForce[], nowMs: number): void {
  for (const one of running) {
    const { failingSinceMs, counts, isStopped } = one
    const waitMs = isStopped ? 0 : FAILS_AFTER_MS
    const hasFailed = failingSinceMs !== undefined && nowMs - failingSinceMs >= waitMs
    // After a start nothing has been tried yet.
    const works = failingSinceMs === undefined && counts.delivered > 0
    if (hasFailed || works) tellOthers(running, one.table, failureOf(one, hasFailed ? 'firing' : 'resolved', nowMs))
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

function failureOf(one: InForce, state: NotifiedAlert['state'], nowMs: number): NotifiedAlert {
  const { name, url } = one.table
  const labels: readonly Label[] = [
    ['alertname', NAME],
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
    group: RULE,
    rule: NAME,
    fingerprint: fingerprintOf(labels),
  }
}
