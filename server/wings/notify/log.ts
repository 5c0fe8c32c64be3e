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
/** Of what is older than that. */
const NONE = '[]'
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

  /** Newest first, of the notifiers of a tenant, or of one of them. What is added meanwhile is not among them. */
  *of(tenant: string, name?: string): Generator<NotificationRow, void, void> {
    const isWanted = (notifier: string): boolean =>
      name === undefined ? notifier.startsWith(`${tenant}/`) : notifier === `${tenant}/${name}`
    const found = [...this.#rows].filter(([notifier]) => isWanted(notifier)).map(([, rows]) => [...rows])
    // The notifier that has told last comes last: sorting all rows would be one long step.
    const left = found.sort((one, other) => lastAt(one) - lastAt(other))
    for (let rows = left.pop(); rows !== undefined; rows = left.pop()) {
      const row = rows.pop()
      if (row === undefined) continue
      yield row
      left.splice(placeFor(lastAt(rows), left), 0, rows)
    }
  }

  #of(notifier: string): NotificationRow[] {
    const known = this.#rows.get(notifier) ?? []
    this.#rows.set(notifier, known)
    return known
  }
}

/** When a notifier has told last; before all others if it has not. */
function lastAt(rows: readonly NotificationRow[]): number {
  return rows.at(-1)?.at ?? Number.NEGATIVE_INFINITY
}

/** Before the first that has told later, of some that ascend by that. */
function placeFor(at: number, all: readonly (readonly NotificationRow[])[]): number {
  let [from, to] = [0, all.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (lastAt(all[middle] ?? []) > at) to = middle
    else from = middle + 1
  }
  return from
}

function fingerprintsIn({ alerts }: NotificationRow): readonly string[] {
  return JSON.parse(alerts) as string[]
}

/** Whether a notification had an alert; undefined if nobody knows that, since it had too many, or is too old. */
export function hadAlert(row: NotificationRow, fingerprint: string): boolean | undefined {
  // Most have not, and are not parsed.
  if (row.alerts.includes(fingerprint) && fingerprintsIn(row).includes(fingerprint)) return true
  const count = row.firing + row.resolved
  return count > MOST_ALERTS || (count > 0 && row.alerts === NONE) ? undefined : false
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
