/** What a notifier counts since the server started (docs/alerts.md). */

export interface NotifierCounts {
  /** Transitions of alerts that it was given, and that match. */
  transitions: number
  /** Transitions that its channel has lost. */
  lost: number
  /** Alerts that the next notifier has, since nobody acknowledged them. */
  escalated: number
  requests: number
  /** Requests that had to be sent again. */
  retries: number
  /** Notifications that the receiver has taken, and that it will never take. */
  delivered: number
  refused: number
}

export function noneTold(): NotifierCounts {
  return { transitions: 0, lost: 0, escalated: 0, requests: 0, retries: 0, delivered: 0, refused: 0 }
}
