/**
 * Tokens of buttons: each acknowledges the alerts of one notification as they fired then, and nothing else. A token says itself what it
 * is good for, with a MAC by a key of the server, so that nothing of it is stored; a notification that is sent again has the same one.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isApproval } from './approval-alerts.ts'
import type { NotifierTable } from './bodies.ts'
import { notifierPlace } from './names.ts'
import type { Notification } from './notification.ts'

/** What the button of a notification acknowledges. */
export interface ButtonClaim {
  /** `tenant/name` of the notifier that has sent it. */
  readonly notifier: string
  /** The id of the user who had put that; 0: one of the configuration. It is of no use at a notifier of the same name that is another's. */
  readonly user: number
  /** When the notification was made, milliseconds since 1970. */
  readonly atMs: number
  /** Fingerprints, each with the time since when its alert fires, milliseconds since 1970. */
  readonly alerts: readonly (readonly [fingerprint: string, firedMs: number])[]
}

/** A message with more alerts that fire than that has no button: it would acknowledge what nobody has read. */
const MOST_ALERTS = 20
const MAX_LENGTH = 2_048
const VALID_MS = 86_400_000

export class ButtonTokens {
  readonly #key: Uint8Array

  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** Empty if there is nothing to acknowledge, or too much. */
  issue(table: Pick<NotifierTable, 'tenant' | 'name' | 'origin'>, { alerts, atMs, truncated }: Notification): string {
    const firing = alerts.filter((alert) => alert.state === 'firing' && !isApproval(alert))
    if (firing.length === 0 || firing.length + truncated > MOST_ALERTS) return ''
    const ids = firing.map(({ fingerprint, firedMs }) => [fingerprint, firedMs])
    const claim = [notifierPlace(table), authorId(table), atMs, ids]
    const said = Buffer.from(JSON.stringify(claim)).toString('base64url')
    return `${said}.${this.#macOf(said).toString('base64url')}`
  }

  /** Undefined for what this server has not issued, or not within the last day. */
  read(token: string, nowMs: number): ButtonClaim | undefined {
    if (token.length > MAX_LENGTH) return undefined
    const [said = '', mac = '', ...rest] = token.split('.')
    const given = Buffer.from(mac, 'base64url')
    const expected = this.#macOf(said)
    if (rest.length > 0 || given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined
    const [notifier, user, atMs, alerts] = JSON.parse(Buffer.from(said, 'base64url').toString()) as [
      string,
      number,
      number,
      ButtonClaim['alerts'],
    ]
    return nowMs - atMs < VALID_MS ? { notifier, user, atMs, alerts } : undefined
  }

  #macOf(said: string): Buffer {
    return createHmac('sha256', this.#key).update(said).digest()
  }
}

/** The id of the user who has put a notifier, which is never that of another one; 0 for one of the configuration. */
export function authorId({ origin }: Pick<NotifierTable, 'origin'>): number {
  return origin?.user ?? 0
}
