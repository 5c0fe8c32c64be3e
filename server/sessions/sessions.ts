/** All open connections, whatever they came over; a bound, and an end for those of a user who is removed. */
import { NoticeCode } from '../../protocol/monitor/constants.ts'
import type { Handlers } from './handler.ts'
import type { IncomingConnection } from './incoming-connection.ts'
import type { Producer } from './producer.ts'
import { Session } from './session.ts'

export class Sessions {
  readonly #sessions = new Set<Session>()
  readonly #producer: Producer
  readonly #handlers: Handlers
  readonly #most: number
  #closing = false
  /** Connections that were refused because there were too many. */
  refused = 0

  constructor(producer: Producer, handlers: Handlers, most: number) {
    this.#producer = producer
    this.#handlers = handlers
    this.#most = most
  }

  get count(): number {
    return this.#sessions.size
  }

  /** A connection is there. Above the limit it is closed at once. */
  accept(arrival: IncomingConnection): void {
    if (this.#closing || this.#sessions.size >= this.#most) {
      this.refused++
      arrival.link.destroy()
      return
    }
    const session = new Session({
      ...arrival,
      producer: this.#producer,
      handlers: this.#handlers,
      ended: (ended) => this.#sessions.delete(ended),
    })
    this.#sessions.add(session)
    session.begin()
  }

  /** Ends what a user has open. */
  dismiss(userId: number, detail: string): void {
    for (const session of [...this.#sessions]) {
      if (session.userId === userId) session.dismiss(NoticeCode.WITHDRAWN, detail)
    }
  }

  /** Ends those that are no longer allowed: to be called every second [MON 15]. */
  sweep(): void {
    const { authenticator, clock, log } = this.#producer
    const now = clock.wallMs()
    for (const session of [...this.#sessions]) {
      if (!session.isAuthenticated) continue
      const reason = authenticator.validity(session.identity.userId, session.credential, now)
      if (reason === undefined) continue
      log.info(
        { peer: session.address, user: session.identity.name, reason },
        'a session ends: it is no longer allowed',
      )
      session.dismiss(NoticeCode.WITHDRAWN, reason)
    }
  }

  /** Nobody comes in any more; those inside are told and end. */
  shutDown(): void {
    this.#closing = true
    for (const session of [...this.#sessions]) session.dismiss(NoticeCode.SHUTTING_DOWN, 'the producer stops')
  }
}
