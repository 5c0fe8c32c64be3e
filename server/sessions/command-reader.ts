/**
 * Reads the commands of a connection and dispatches them one by one, in order [MON 7]: each is checked (authenticated,
 * known, decodes), handed to its handler and answered exactly once. While one is decided, or too much is unanswered or
 * unread by the peer, the rest waits in the source, and the link is paused to slow the peer down.
 */
import { ProtocolError } from '../../protocol/errors.ts'
import type { Link, LinkListener } from '../../protocol/link/link.ts'
import type { CommandName } from '../../protocol/monitor/commands.ts'
import { noSuchTransaction, refusalOf, StatusError } from '../core/errors.ts'
import { type CommandSource, JsonCommandSource, XdrCommandSource } from './command-source.ts'
import type { CommandHandler, CommandHandlers, CommandSession, Outcome } from './handler.ts'
import type { ResponseWriter } from './response-writer.ts'

/** Reading stops while this many commands are unanswered [MON 8 Window]. */
const MAX_UNANSWERED = 65_536
/** The most that the commands of one turn may set going: their effects start before more commands are dispatched. */
const MAX_COST_PER_TURN = 256
/** The commands that are accepted before AUTH [MON 6.3]. */
const BEFORE_AUTH: ReadonlySet<CommandName> = new Set(['NOP', 'AUTH', 'WRAP'])
const BYTES_AFTER_WRAP = 'bytes after a WRAP before its response'

/** The session as its command reader needs it. */
export interface ReadSession extends CommandSession {
  readonly isOver: boolean
  /** The uppermost layer of the connection. */
  readonly link: Link
  readonly isAuthenticated: boolean
  /** True from a WRAP until its layer is there. */
  readonly isWrapping: boolean
  authenticate(seq: number, method: string, data: Uint8Array): Promise<void>
  wrap(seq: number, layer: string): void
  /** Continues with everything that waited. */
  resume(): void
  /** Ends the connection because of a protocol error. */
  fail(detail: string, closeCode?: number): void
  /** Ends the connection because something of it failed through no fault of the peer. */
  crashed(error: unknown): void
  closed(): void
}

export interface CommandReaderOptions {
  readonly session: ReadSession
  readonly format: 'xdr' | 'json'
  readonly responses: ResponseWriter
  readonly handlers: CommandHandlers
}

export class CommandReader implements LinkListener {
  readonly #session: ReadSession
  readonly #responses: ResponseWriter
  readonly #handlers: CommandHandlers
  readonly #source: CommandSource
  /** True while a command is decided asynchronously. */
  #isDeciding = false
  #isPaused = false
  /** True once the peer sends no more. */
  #isFinished = false
  #isStopped = false

  constructor({ session, format, responses, handlers }: CommandReaderOptions) {
    this.#session = session
    this.#responses = responses
    this.#handlers = handlers
    this.#source = format === 'xdr' ? new XdrCommandSource() : new JsonCommandSource()
  }

  text(message: string): void {
    if (!this.#isListening) return
    const source = this.#source
    if (!(source instanceof JsonCommandSource)) {
      this.#session.fail('this subprotocol carries binary messages', 1003)
      return
    }
    try {
      source.push(message)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      // There is no command that could be answered [MON 13].
      this.#session.fail(error.message, error.code === 'FRAME_TOO_LONG' ? 1009 : 1007)
      return
    }
    this.#pump()
  }

  data(chunk: Uint8Array): void {
    if (!this.#isListening) return
    const source = this.#source
    if (!(source instanceof XdrCommandSource)) {
      this.#session.fail('this subprotocol carries text', 1003)
    } else if (this.#session.isWrapping) {
      this.#session.fail(BYTES_AFTER_WRAP)
    } else {
      source.push(chunk)
      this.#pump()
    }
  }

  finished(): void {
    this.#isFinished = true
    this.resume()
  }

  broken(detail: string): void {
    if (!this.#session.isOver) this.#session.fail(detail)
  }

  closed(): void {
    this.#session.closed()
  }

  /** Ignores everything after the current command. */
  stop(): void {
    this.#isStopped = true
  }

  /** Allows longer frames. */
  authenticated(): void {
    this.#source.authenticated()
  }

  /** Dispatches the commands that wait, and reads on, as far as that is possible now. */
  resume(): void {
    if (this.#mayDispatch && !this.#source.isDrained) this.#pump()
    else this.#updateFlow()
  }

  /** False if what arrives is read only to be dropped. */
  get #isListening(): boolean {
    return !(this.#session.isOver || this.#isFinished || this.#isStopped)
  }

  #pump(): void {
    const source = this.#source
    try {
      while (this.#mayDispatch && source.next()) this.#dispatch()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#session.fail(error.message)
    }
    this.#updateFlow()
    source.settle()
  }

  get #mayDispatch(): boolean {
    const session = this.#session
    if (session.isOver || this.#isStopped || this.#isDeciding || session.isWrapping) return false
    const { cost, unanswered } = this.#responses
    return cost < MAX_COST_PER_TURN && unanswered < MAX_UNANSWERED && !session.behind
  }

  /** Pauses or resumes the link. It is not paused where the bytes that arrive have to be refused or dropped. */
  #updateFlow(): void {
    const session = this.#session
    if (session.isOver) return
    if (this.#isFinished && this.#mayDispatch && this.#responses.unanswered === 0) {
      session.end()
      return
    }
    const pause = !this.#mayDispatch && !this.#isStopped && !session.isWrapping
    if (pause === this.#isPaused) return
    this.#isPaused = pause
    if (pause) session.link.pause()
    else session.link.resume()
  }

  #dispatch(): void {
    const { seq, plainCommit } = this.#source
    try {
      if (plainCommit >= 0 && this.#session.isAuthenticated) this.#commit(seq, plainCommit)
      else this.#handle(seq)
    } catch (error) {
      this.#refuse(seq, error)
    }
  }

  #commit(seq: number, transaction: number): void {
    if (this.#session.channel.queue.commit(transaction, false)) this.#responses.okWhenDurable(seq, 0)
    else this.#refuse(seq, noSuchTransaction())
  }

  #handle(seq: number): void {
    const session = this.#session
    const { name } = this.#source
    if (!session.isAuthenticated && (name === undefined || !BEFORE_AUTH.has(name))) {
      throw new StatusError('NOT_AUTHENTICATED', 'authenticate with AUTH first')
    }
    if (name === undefined) throw new StatusError('UNKNOWN_COMMAND', 'no such command')
    const args = this.#source.read()
    if (name === 'NOP') this.#responses.ok(seq, 0)
    else if (name === 'AUTH') this.#authenticate(seq, args as { method: string; data: Uint8Array })
    else if (name === 'WRAP') this.#wrap(seq, String(args['layer']))
    else this.#respond(seq, (this.#handlers[name] as CommandHandler<typeof name>)(session, args as never))
  }

  #authenticate(seq: number, { method, data }: { method: string; data: Uint8Array }): void {
    const session = this.#session
    if (session.isAuthenticated) throw new StatusError('ALREADY_AUTHENTICATED', 'this connection is authenticated')
    this.#decide(seq, session.authenticate(seq, method, data), () => {})
  }

  /** Messages of JSON are separate from each other: only a byte stream can change its layer in the middle of a chunk. */
  #wrap(seq: number, layer: string): void {
    const source = this.#source
    if (source instanceof XdrCommandSource && !source.isDrained) this.#session.fail(BYTES_AFTER_WRAP)
    else this.#session.wrap(seq, layer)
  }

  #respond(seq: number, outcome: Outcome | Promise<Outcome>): void {
    const responses = this.#responses
    if (typeof outcome === 'number') responses.ok(seq, outcome)
    else if (outcome instanceof Promise) this.#decide(seq, outcome, (decided) => this.#respond(seq, decided))
    else if (outcome.stored) responses.okWhenDurable(seq, outcome.result, outcome.onSent)
    else responses.ok(seq, outcome.result, outcome.onSent, outcome.cost)
  }

  /** A decision takes effect even if the connection has ended meanwhile: a hold is released, a control runs. */
  #decide<T>(seq: number, decision: Promise<T>, settle: (decided: T) => void): void {
    const done = (act: () => void): void => {
      this.#isDeciding = false
      try {
        act()
      } catch (error) {
        this.#refuse(seq, error)
      }
      this.#session.resume()
    }
    this.#isDeciding = true
    decision
      .then(
        (decided) => done(() => settle(decided)),
        (error) => done(() => this.#refuse(seq, error)),
      )
      .catch((error) => this.#session.crashed(error))
  }

  #refuse(seq: number, error: unknown): void {
    const refusal = refusalOf(error)
    this.#responses.refuse(seq, refusal.status, refusal.detail)
    if (refusal.ours) this.#session.crashed(error)
  }
}
