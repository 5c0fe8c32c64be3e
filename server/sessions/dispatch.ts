/**
 * The commands of a session, one by one: judged in the order of [MON 7] (authenticated, known, decodes, then what the
 * handler judges), done, and answered exactly once. While one is being decided the session looks at no other.
 */
import type { Credential } from '../../auth/mechanism.ts'
import type { Identity } from '../../auth/permissions.ts'
import type { CommandName } from '../../protocol/monitor/commands/index.ts'
import { statuses } from '../../protocol/monitor/status.ts'
import { noSuchTransaction, refusalOf, StatusError } from '../core/errors.ts'
import type { CommandHandler, CommandHandlers, CommandSession, Outcome } from './handler.ts'
import type { Incoming } from './intake.ts'
import type { SessionLogin } from './login.ts'
import type { Replies } from './replies.ts'

/** Commands that are looked at before AUTH [MON 6.3]. */
const FIRST: ReadonlySet<CommandName> = new Set(['NOP', 'AUTH', 'WRAP'])

/** What of a session its commands change. */
export interface Dispatched extends CommandSession {
  readonly isAuthenticated: boolean
  admit(seq: number, identity: Identity, credential: Credential): void
  wrap(seq: number, layer: string): void
  /** What waits is looked at. */
  goOn(): void
  /** A command failed for a reason that is not the peer's. */
  failed(error: unknown): void
}

export interface DispatchOptions {
  readonly session: Dispatched
  readonly replies: Replies
  readonly login: SessionLogin
  readonly handlers: CommandHandlers
}

export class Dispatch {
  readonly #options: DispatchOptions
  /** A command is being decided. */
  deciding = false

  constructor(options: DispatchOptions) {
    this.#options = options
  }

  look(incoming: Incoming): void {
    const { session } = this.#options
    const commit = session.isAuthenticated ? incoming.plainCommit : -1
    if (commit >= 0) {
      this.#commit(incoming.seq, commit)
      return
    }
    try {
      this.#judge(incoming)
    } catch (error) {
      this.#refuse(incoming.seq, error)
    }
  }

  #commit(seq: number, transaction: number): void {
    const { session, replies } = this.#options
    if (session.channel.queue.commit(transaction, false)) replies.stored(seq, 0)
    else this.#refuse(seq, noSuchTransaction())
  }

  #judge(incoming: Incoming): void {
    const { seq, name } = incoming
    const { session, replies, handlers } = this.#options
    if (!session.isAuthenticated && (name === undefined || !FIRST.has(name))) {
      throw new StatusError('NOT_AUTHENTICATED', 'authenticate with AUTH first')
    }
    if (name === undefined) throw new StatusError('UNKNOWN_COMMAND', 'no such command')
    const args = incoming.read()
    if (name === 'NOP') replies.now(seq, 0)
    else if (name === 'AUTH') this.#authenticate(seq, args as { method: string; data: Uint8Array })
    else if (name === 'WRAP') session.wrap(seq, String(args['layer']))
    else this.#handle(seq, (handlers[name] as CommandHandler<typeof name>)(session, args as never))
  }

  #handle(seq: number, outcome: Outcome | Promise<Outcome>): void {
    const { replies } = this.#options
    if (typeof outcome === 'number') replies.now(seq, outcome)
    else if (outcome instanceof Promise) this.#decide(seq, outcome, (settled) => this.#handle(seq, settled))
    else if (outcome.stored) replies.stored(seq, outcome.result, outcome.onSent)
    else replies.now(seq, outcome.result, outcome.onSent, outcome.heavy)
  }

  /** What was decided is done even if the connection has ended meanwhile: a hold is let go, a control runs. */
  #decide<T>(seq: number, decision: Promise<T>, settle: (decided: T) => void): void {
    const done = (act: () => void): void => {
      this.deciding = false
      try {
        act()
      } catch (error) {
        this.#refuse(seq, error)
      }
      this.#options.session.goOn()
    }
    this.deciding = true
    decision.then(
      (decided) => done(() => settle(decided)),
      (error) => done(() => this.#refuse(seq, error)),
    )
  }

  #authenticate(seq: number, { method, data }: { method: string; data: Uint8Array }): void {
    const { session, replies, login } = this.#options
    if (session.isAuthenticated) throw new StatusError('ALREADY_AUTHENTICATED', 'this connection is authenticated')
    this.#decide(seq, login.step(method, data), (step) => {
      if (step.outcome === 'continue') {
        replies.challenge(seq, step.data)
      } else if (step.outcome === 'ok') {
        session.admit(seq, step.identity, step.credential)
      } else {
        replies.refuse(seq, statuses[step.status].code, step.detail)
        if (step.outcome === 'closed') session.end()
      }
    })
  }

  #refuse(seq: number, error: unknown): void {
    const refusal = refusalOf(error)
    this.#options.replies.refuse(seq, refusal.status, refusal.detail)
    if (refusal.ours) this.#options.session.failed(error)
  }
}
