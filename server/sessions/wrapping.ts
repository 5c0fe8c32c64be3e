/**
 * WRAP [MON 6.12, 12]. No layer is offered yet, but it is synchronous all the same: what is owed goes out first, and what
 * arrives before its response is written ends the connection; a peer that sends it believes in a layer already.
 */
import { statuses } from '../../protocol/monitor/status.ts'
import type { Replies } from './replies.ts'

export class Wrapping {
  readonly #replies: Replies
  #waiting: { readonly seq: number; readonly layer: string } | undefined

  constructor(replies: Replies) {
    this.#replies = replies
  }

  get isUnderWay(): boolean {
    return this.#waiting !== undefined
  }

  begin(seq: number, layer: string): void {
    this.#waiting = { seq, layer }
  }

  /** Answers, unless other responses are owed. */
  goOn(): void {
    if (this.#waiting === undefined || this.#replies.unanswered > 0) return
    const { seq, layer } = this.#waiting
    this.#waiting = undefined
    this.#replies.refuse(seq, statuses.UNSUPPORTED.code, `the layer ${layer} is not offered on this connection`)
    this.#replies.flush()
  }
}
