/** What notifiers had told when the server started. */
import type { NotifyAlertRow, NotifyGroupRow, StoredPeers } from '../../kit/peer.ts'

/** It is there until a notifier goes on from it. */
export class RecoveredGroups {
  readonly #stored: StoredPeers
  /** Places whose rows are not what is stored any more. */
  readonly #gone = new Set<string>()

  constructor(stored: StoredPeers) {
    this.#stored = stored
  }

  places(): ReadonlySet<string> {
    const { notifyGroups, notifyAlerts } = this.#stored
    return new Set([...notifyGroups, ...notifyAlerts].map(({ notifier }) => notifier))
  }

  take(place: string): { readonly groups: readonly NotifyGroupRow[]; readonly alerts: readonly NotifyAlertRow[] } {
    const { notifyGroups, notifyAlerts } = this.#stored
    if (this.#gone.has(place)) return { groups: [], alerts: [] }
    this.#gone.add(place)
    const isOf = ({ notifier }: { readonly notifier: string }): boolean => notifier === place
    return { groups: notifyGroups.filter(isOf), alerts: notifyAlerts.filter(isOf) }
  }

  /** Removes what nobody has taken. */
  forget(place: string): void {
    const { journal } = this.#stored
    const { groups, alerts } = this.take(place)
    for (const { notifier, labels } of groups) journal.change({ remove: 'notify group', notifier, labels })
    for (const { notifier, fingerprint } of alerts) journal.change({ remove: 'notify alert', notifier, fingerprint })
  }
}
