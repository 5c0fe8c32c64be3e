/** Acknowledging by a token that was sent to somebody: the wing of the notifiers judges it, and the edge takes it from whoever has it. */

/** Tokens are sent here, as the body of a POST. */
export const ACKNOWLEDGE_PATH = '/alerts/acknowledge'

export interface Acknowledged {
  /** Whose alerts it concerns, and who acknowledges them: the notifier by which the token was sent. */
  readonly tenant: string
  readonly author: string
  /**
   * `repeated`: somebody has used a token of this notification before; `ended`: nothing that it is about fires any more; `full`: the
   * tenant has as many silences as it may have.
   */
  readonly outcome: 'acknowledged' | 'repeated' | 'ended' | 'full'
  /** The acknowledgement, if one was made; otherwise empty. */
  readonly id: string
  /** What was acknowledged, for the audit log. */
  readonly matchers: readonly string[]
}

export interface Acknowledging {
  /** What follows from it is in the current batch. Undefined for a token that is none, is too old, or may not do that any more. */
  acknowledge(token: string): Acknowledged | undefined
}
