/** A notification: what is told of a group of alerts at one time. It is stored before it is sent first, and sent again as it was. */
import type { Label } from '../../kit/delivered-values.ts'
import type { NotifiedAlert } from './alert.ts'

export interface Notification {
  /** By which a receiver knows what it has already. */
  readonly key: string
  /** The labels that the alerts of its group have in common by `group_by`. */
  readonly groupLabels: readonly Label[]
  /** When it was made, milliseconds since 1970. */
  readonly atMs: number
  readonly alerts: readonly NotifiedAlert[]
  /** Alerts of the group that fire, and are not in it. */
  readonly truncated: number
  /** Nothing fires: somebody wants to see whether it arrives. */
  readonly isTest?: boolean
}

/** How a kind of receiver is told. */
export interface NotifyWire {
  /** `nowMs`: when it is sent, milliseconds since 1970. */
  request(notification: Notification, nowMs: number): NotifyRequest
}

export interface NotifyRequest {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
}

/** What has become of a notification that was sent. */
export interface NotifyAnswer {
  /** `refused`: it will never be taken; `failed`: it may be taken later. */
  readonly verdict: 'taken' | 'refused' | 'failed'
  /** For people: what the receiver said, or what went wrong. */
  readonly detail: string
  /** It is not sent again before. */
  readonly waitMs: number
}

export interface NotifyDestination {
  /** Rejects if there is no answer, or if a file cannot be read. */
  send(notification: Notification): Promise<NotifyAnswer>
  close(): void
}

/** What wires know of the notifier. */
export interface Told {
  readonly name: string
  /** Without a slash at its end; '' if there is none. */
  readonly externalUrl: string
}

export function isFiring({ alerts }: Pick<Notification, 'alerts'>): boolean {
  return alerts.some(({ state }) => state === 'firing')
}

export function countOf({ alerts }: Pick<Notification, 'alerts'>, wanted: NotifiedAlert['state']): number {
  return alerts.filter(({ state }) => state === wanted).length
}

/** The labels that all have with the same texts. */
export function commonOf(all: readonly (readonly Label[])[]): readonly Label[] {
  const [first = [], ...others] = all.map((labels) => new Map(labels))
  return [...first].filter(([name, text]) => others.every((labels) => labels.get(name) === text))
}

/** A test has begun and ended at once, so that nothing stays firing at a receiver that keeps what it is told. */
export function testNotification(nowMs: number): Notification {
  const alert: NotifiedAlert = {
    labels: [
      ['alertname', 'CinnabarTest'],
      ['severity', 'info'],
    ],
    annotations: [['summary', 'This is a test of a notifier: nothing is wrong']],
    state: 'resolved',
    value: '1',
    sinceMs: nowMs,
    firedMs: nowMs,
    endedMs: nowMs,
    group: 'test',
    rule: 'CinnabarTest',
    fingerprint: '0000000000000000',
  }
  const groupLabels = [['alertname', 'CinnabarTest']] as const
  return { key: `test-${nowMs}`, groupLabels, atMs: nowMs, alerts: [alert], truncated: 0, isTest: true }
}
