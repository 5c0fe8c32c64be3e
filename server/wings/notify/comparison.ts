/** What a notifier has told is compared with the alerts that fire, when it begins, and when its channel has lost transitions. */
import type { Steps } from '../../kit/running.ts'
import type { NotifiedAlert } from './alert.ts'
import { isApproval } from './approval-alerts.ts'
import type { NotifyGroups } from './groups.ts'

export interface ComparisonOptions {
  readonly groups: Pick<NotifyGroups, 'alerts' | 'isKnownToFire' | 'isLatest' | 'take'>
  /** The alerts that fire now, each as it is when it is asked for, and undefined for others. */
  readonly firing: Iterable<NotifiedAlert | undefined>
  /** Whether it has to be done later: transitions that are under way say in order what this would say too early. */
  readonly mustWait: () => boolean
  /** By which what fires no more has ended. Milliseconds since 1970. */
  readonly wallMs: () => number
}

/**
 * What fires is taken, also where it has ended and fires again, and what was told and fires no more has ended. What waits for approval is
 * ended by the notifier itself. Returns false if it has to be done again later, because transitions came, the notifier has stopped, or
 * there was no room for all that fires: what was taken until then stays.
 */
export function* compareWithFiring({ groups, firing, mustWait, wallMs }: ComparisonOptions): Steps<boolean> {
  const known = new Map(groups.alerts().map((alert) => [alert.fingerprint, alert]))
  let isAllTaken = true
  for (const alert of firing) {
    if (mustWait()) return false
    // Before anything else can happen: later it may fire no more.
    if (alert !== undefined && !groups.isKnownToFire(alert) && !groups.take(alert, true)) isAllTaken = false
    if (alert !== undefined) known.delete(alert.fingerprint)
    yield
  }
  const endedMs = wallMs()
  for (const alert of known.values()) {
    if (mustWait()) return false
    // What has become another one since has come by a transition.
    const isEnded = alert.state === 'firing' && !isApproval(alert) && groups.isLatest(alert)
    if (isEnded) groups.take({ ...alert, state: 'resolved', endedMs }, true)
    yield
  }
  return isAllTaken
}
