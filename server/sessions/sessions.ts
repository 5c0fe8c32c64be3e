/** All open connections of the server: their limit, and the end of those that are no longer allowed. */
import { NoticeCode } from '../../protocol/monitor/constants.ts'
import type { SessionContext } from './context.ts'
import type { CommandHandlers } from './handler.ts'
import type { IncomingConnection } from './incoming-connection.ts'
import { Session } from './session.ts'

export class Sessions {
  readonly #sessions = new Set<Session>()
  readonly #context: SessionContext
  readonly #handlers: CommandHandlers
  readonly #max: number
  #isShutDown = false
  /** The number of connections that were refused because of the limit. */
  refused = 0

  constructor(context: SessionContext, handlers: CommandHandlers, max: number) {
    this.#context = context
    this.#handlers = handlers
    this.#max = max
  }

  get count(): number {
    return this.#sessions.size
  }

  /** Makes a session of a connection, or closes it at once above the limit. */
  accept(connection: IncomingConnection): void {
    if (this.#isShutDown || this.#sessions.size >= this.#max) {
      this.refused++
      connection.link.destroy()
      return
    }
    const session = new Session({
      context: this.#context,
      connection,
      handlers: this.#handlers,
      ended: (ended) => this.#sessions.delete(ended),
    })
    this.#sessions.add(session)
    try {
      session.begin()
    } catch (error) {
      session.crashed(error)
    }
  }

  /** Ends all sessions of a user. */
  dismiss(userId: number, detail: string): void {
    for (const session of [...this.#sessions]) {
      if (session.userId === userId) session.dismiss(NoticeCode.WITHDRAWN, detail)
    }
  }

  /** Ends the sessions that are no longer allowed. To be called every second [MON 15]. */
  sweep(): void {
    const { authenticator, clock, log } = this.#context
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

  /** Refuses new connections, and ends the open ones with a notice. */
  shutDown(): void {
    this.#isShutDown = true
    for (const session of [...this.#sessions]) session.dismiss(NoticeCode.SHUTTING_DOWN, 'the producer stops')
  }
}
