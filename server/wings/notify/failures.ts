/**
 * A notifier that cannot tell anybody is an alert itself, of which the other notifiers of its tenant tell. It is none of rules in files:
 * also a server without a history says so.
 */
import type { Label } from '../../kit/delivered-values.ts'
import { fingerprintOf } from '../../kit/fingerprint.ts'
import type { Steps } from '../../kit/running.ts'
import { type NotifiedAlert, textOfLabel } from './alert.ts'
import type { InForce } from './in-force.ts'

/** What passes by itself is not told. */
const FAILS_AFTER_MS = 300_000
export const FAILING_NOTIFIER = 'CinnabarNotifierFails'
export const NOTIFIERS_GROUP = 'notifiers'

type Failing = Pick<InForce, 'table' | 'failingSinceMs' | 'isStopped' | 'problem'>

/** Whether an alert is of a notifier. That of a rule may have the same names. */
export function isFailure({ kind }: Pick<NotifiedAlert, 'kind'>): boolean {
  return kind === 'failure'
}

/** The alert of a notifier that has failed for long enough; undefined if it has not. */
export function failureOf(one: Failing, nowMs: number): NotifiedAlert | undefined {
  const { failingSinceMs, isStopped } = one
  const waitMs = isStopped ? 0 : FAILS_AFTER_MS
  return failingSinceMs !== undefined && nowMs - failingSinceMs >= waitMs ? alertOf(one, failingSinceMs) : undefined
}

/**
 * To be called every second with all of a tenant. Tells the others of those that have failed for five minutes, or work again, or are
 * gone: in each step of one, or to one.
 */
export function* tellOfFailures(all: readonly InForce[], nowMs: number): Steps<void> {
  const working = new Map<string, boolean>()
  for (const one of all) working.set(one.table.name, works(one) && working.get(one.table.name) !== false)
  for (const one of all) {
    const failure = failureOf(one, nowMs)
    if (failure !== undefined) for (const other of all) if (other.table.name !== one.table.name) other.observe(failure)
    yield
  }
  for (const other of all) {
    for (const alert of other.failures())
      if (working.get(textOfLabel(alert, 'notifier')) !== false)
        other.observe({ ...alert, state: 'resolved', endedMs: nowMs })
    yield
  }
}

/** After a start nothing has been tried yet. */
function works({ failingSinceMs, counts }: InForce): boolean {
  return failingSinceMs === undefined && counts.delivered > 0
}

function alertOf(one: Failing, sinceMs: number): NotifiedAlert {
  const { name, url } = one.table
  const labels: readonly Label[] = [
    ['alertname', FAILING_NOTIFIER],
    ['notifier', name],
    ['severity', 'warning'],
  ]
  return {
    kind: 'failure',
    labels,
    annotations: [['summary', `The notifier ${name} (${url.shown}) tells nobody: ${one.problem}`]],
    state: 'firing',
    value: '1',
    sinceMs,
    firedMs: sinceMs,
    endedMs: 0,
    group: NOTIFIERS_GROUP,
    rule: FAILING_NOTIFIER,
    fingerprint: fingerprintOf(labels),
  }
}
