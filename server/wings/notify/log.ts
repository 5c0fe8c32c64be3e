/** The log of notifications: what was told to whom, when, and with what answer. The last ones of each notifier are kept. */
import { BasicType } from '../../../protocol/monitor/constants.ts'
import type { Field } from '../../../protocol/monitor/value.ts'
import type { NotificationRow, StoredPeers } from '../../kit/peer.ts'
import { countOf, type Notification } from './notification.ts'
import type { NotificationOutcome } from './notifier.ts'

/** Of each notifier. */
const MOST_KEPT = 1_000
/** Alerts of a notification that are known by their fingerprints. */
const MOST_ALERTS = 20
const MICROSECONDS = 1_000
const { STRING, UINT64 } = BasicType

export class NotificationLog {
  readonly #journal: Pick<StoredPeers['journal'], 'change'>
  readonly #rows = new Map<string, NotificationRow[]>()

  constructor(stored: readonly NotificationRow[], journal: Pick<StoredPeers['journal'], 'change'>) {
    this.#journal = journal
    for (const row of stored) this.#of(row.notifier).push(row)
    for (const rows of this.#rows.values()) rows.sort((left, right) => left.at - right.at)
  }

  add(
    notifier: string,
    notification: Notification,
    { outcome, detail, attempts }: NotificationOutcome,
    atMs: number,
  ): void {
    const rows = this.#of(notifier)
    const row: NotificationRow = {
      notifier,
      key: notification.key,
      at: atMs,
      labels: JSON.stringify(notification.groupLabels),
      firing: countOf(notification, 'firing'),
      resolved: countOf(notification, 'resolved'),
      attempts,
      outcome,
      detail,
      alerts: JSON.stringify(notification.alerts.slice(0, MOST_ALERTS).map(({ fingerprint }) => fingerprint)),
    }
    rows.push(row)
    this.#journal.change({ put: 'notification', row })
    const oldest = rows.length > MOST_KEPT ? rows.shift() : undefined
    if (oldest !== undefined) this.#journal.change({ remove: 'notification', notifier, key: oldest.key })
  }

  /** Forgets what a notifier has told. */
  forget(notifier: string): void {
    for (const { key } of this.#rows.get(notifier) ?? [])
      this.#journal.change({ remove: 'notification', notifier, key })
    this.#rows.delete(notifier)
  }

  /** Newest first, of the notifiers of a tenant, or of one of them. */
  of(tenant: string, name?: string): readonly NotificationRow[] {
    const isWanted = (notifier: string): boolean =>
      name === undefined ? notifier.startsWith(`${tenant}/`) : notifier === `${tenant}/${name}`
    const found = [...this.#rows].filter(([notifier]) => isWanted(notifier)).flatMap(([, rows]) => rows)
    return found.sort((left, right) => right.at - left.at)
  }

  #of(notifier: string): NotificationRow[] {
    const known = this.#rows.get(notifier) ?? []
    this.#rows.set(notifier, known)
    return known
  }
}

function fingerprintsIn({ alerts }: NotificationRow): readonly string[] {
  return JSON.parse(alerts) as string[]
}

/** Whether a notification had an alert; undefined if nobody knows that, since it had too many, or is too old. */
export function hadAlert(row: NotificationRow, fingerprint: string): boolean | undefined {
  const known = fingerprintsIn(row)
  if (known.includes(fingerprint)) return true
  return known.length < row.firing + row.resolved ? undefined : false
}

export function fieldsOfNotification(row: NotificationRow): Field[] {
  const [tenant = '', name = ''] = row.notifier.split('/')
  const text = (name: string, value: string): Field => ({ name, type: STRING, value })
  const count = (name: string, value: number): Field => ({ name, type: UINT64, value: BigInt(value) })
  const labels = (JSON.parse(row.labels) as [string, string][]).map(([name, text]) => `${name}=${JSON.stringify(text)}`)
  return [
    count('time', Math.round(row.at * MICROSECONDS)),
    text('tenant', tenant),
    text('notifier', name),
    text('group', labels.join(', ')),
    count('firing', row.firing),
    count('resolved', row.resolved),
    text('outcome', row.outcome),
    text('answer', row.detail),
    count('attempts', row.attempts),
    text('key', row.key),
    text('alerts', fingerprintsIn(row).join(', ')),
  ]
}
