/** All sessions of the server, and the end of those that are no longer allowed. */
import { ADMIN_ROLE } from '../../../auth/permissions.ts'
import { NoticeCode } from '../../../protocol/monitor/constants.ts'
import type { Admission } from './admission.ts'
import type { SessionContext } from './context.ts'
import type { CommandHandlers } from './handler.ts'
import type { IncomingConnection } from './incoming-connection.ts'
import { Session } from './session.ts'

export class Sessions {
  readonly #sessions = new Set<Session>()
  readonly #context: SessionContext
  readonly #handlers: CommandHandlers
  /** Listeners that do not give each connection to `accept` at once have to ask here for its place. */
  readonly admission: Admission
  #isShutDown = false
  /** The changes of the producers below that sessions know of. */
  #announced = 0

  constructor(context: SessionContext, handlers: CommandHandlers, admission: Admission) {
    this.#context = context
    this.#handlers = handlers
    this.admission = admission
  }

  get count(): number {
    return this.#sessions.size
  }

  /** Makes a session of a connection, or closes it at once if there is no place for it. */
  accept(connection: IncomingConnection): void {
    const { link, peer, outbound, announced } = connection
    const close = (): void => link.destroy()
    const place = connection.place ?? (this.#isShutDown ? undefined : this.admission.enter(peer.address, close))
    if (this.#isShutDown || place === undefined) {
      close()
      return
    }
    // The producer made it for a consumer that has logged in, or for its operator: nobody can make it open very many.
    if (outbound !== undefined || announced !== undefined) this.admission.authenticated(place, false)
    const session = new Session({
      context: this.#context,
      connection,
      handlers: this.#handlers,
      authenticated: ({ role }) => this.admission.authenticated(place, role === ADMIN_ROLE),
      ended: (ended) => {
        this.#sessions.delete(ended)
        this.admission.leave(place)
      },
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

  /** Ends the sessions that are no longer allowed, and tells the others of new producers. To be called every second [MON 15]. */
  sweep(): void {
    const { authenticator, clock, log, self } = this.#context
    if (self.changes !== this.#announced) {
      this.#announced = self.changes
      for (const session of this.#sessions) session.capabilitiesChanged()
    }
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
