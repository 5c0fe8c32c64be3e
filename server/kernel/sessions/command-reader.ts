/**
 * Reads the commands of a connection and dispatches them one by one, in order [MON 7]: each is checked (authenticated,
 * known, decodes), handed to its handler and answered exactly once. Commands are work that shares the time of the event loop
 * with other sessions. While they wait for their turn, or one is decided, or too much is unanswered or unread by the peer,
 * the rest waits in the source, and the link is paused to slow the peer down.
 *
 * The work and the input each have their states. The work:
 *
 *     state       | event                                                      | next
 *     ------------|------------------------------------------------------------|------------
 *     idle        | a command is there, and one may be dispatched              | dispatching
 *     dispatching | a command is not worked out in its first step              | stepping
 *     dispatching | a promise decides a command, or it is answered alone       | blocked
 *     dispatching | no whole command is left, or none may be dispatched now    | idle
 *     stepping    | its last step is done, or one throws                       | dispatching
 *     stepping    | the connection is over: the steps end where they are       | idle
 *     blocked     | it is decided, or its answer made                          | idle
 *
 * While it is dispatching or stepping, it has its turn or waits for it in FairWork. The input:
 *
 *     state    | event                                                         | next     | what is done
 *     ---------|---------------------------------------------------------------|----------|----------------------
 *     flowing  | work is left for a later turn, or no command may be dispatched | paused   | the link is paused
 *     paused   | neither holds any more, or a WRAP begins                      | flowing  | the link is resumed
 *     flowing  | the peer sends no more                                        | finished | after all responses, the session is ended
 *     paused   | the same                                                      | finished | the same, and the link is resumed
 *     any      | a command says that it is the last                            | stopped  | the link is resumed if it was paused
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import type { Link } from '../../../protocol/link/link.ts'
import type { CommandArguments, CommandName } from '../../../protocol/monitor/commands.ts'
import { CURRENT_CHANNEL } from '../../../protocol/monitor/constants.ts'
import { noSuchTransaction, refusalOf, StatusError } from '../core/errors.ts'
import { type Effect, type FairWork, isSteps, type Party, type Steps, type Work } from '../core/fair-work.ts'
import { type CommandSource, JsonCommandSource, XdrCommandSource } from './command-source.ts'
import type { CommandHandler, CommandHandlers, CommandSession, Decision, Outcome } from './handler.ts'
import type { Effects, ResponseWriter } from './response-writer.ts'

/**
 * Reading stops while this many commands are unanswered [MON 8 Window]. Those of one and a half transactions wait for the disk,
 * 90 ms with a checkpoint: with 65,536, a consumer of more than a million values a second was held up, fell behind, and its
 * values had to be read back.
 */
const MAX_UNANSWERED = 262_144
/** No command is dispatched while so many have effects that have not ended: half of the measurements that an identity may wait for. */
const MAX_EFFECTS = 512
/** Commands that are handled before the clock is looked at, unless one takes longer; plain COMMITs cost much less. */
const COMMANDS_PER_STEP = 8
const COMMITS_PER_STEP = 256
/** The commands that are accepted before AUTH [MON 6.3]. */
const BEFORE_AUTH: ReadonlySet<CommandName> = new Set(['NOP', 'AUTH', 'WRAP'])
const BYTES_AFTER_WRAP = 'bytes after a WRAP before its response'

/** The session as its command reader needs it. */
export interface ReadSession extends CommandSession, Party {
  readonly isOver: boolean
  /** The uppermost layer of the connection. */
  readonly link: Pick<Link, 'pause' | 'resume'>
  readonly isAuthenticated: boolean
  /** True if it takes nothing but NOP, COMMIT and GET: the producer made the connection, and a certificate was the proof. */
  readonly isReceiver: boolean
  /** True from a WRAP until its layer is there. */
  readonly isWrapping: boolean
  /** Continues with everything that waited. */
  resume(): void
  /** Ends the connection because of a protocol error. */
  fail(detail: string, closeCode?: number): void
  /** Ends the connection because something of it failed through no fault of the peer. */
  crashed(error: unknown): void
}

export interface CommandReaderOptions {
  readonly session: ReadSession
  readonly format: 'xdr' | 'json'
  readonly responses: ResponseWriter
  readonly handlers: CommandHandlers
  readonly work: FairWork
  /** Answers AUTH. */
  readonly authenticate: (seq: number, method: string, data: Uint8Array) => Promise<void>
  /** Answers WRAP, and adds the layer. */
  readonly wrap: (seq: number, layer: string) => void
}

/** A command that is worked out in steps. */
interface Stepping {
  readonly seq: number
  readonly steps: Steps<Outcome | Promise<Outcome>>
}

type State = 'idle' | 'dispatching' | Stepping | 'blocked'
type Input = 'flowing' | 'paused' | 'finished' | 'stopped'

export class CommandReader implements Work {
  readonly #options: CommandReaderOptions
  readonly #session: ReadSession
  readonly #responses: ResponseWriter
  readonly #source: CommandSource
  #state: State = 'idle'
  #input: Input = 'flowing'

  constructor(options: CommandReaderOptions) {
    this.#options = options
    this.#session = options.session
    this.#responses = options.responses
    this.#source = options.format === 'xdr' ? new XdrCommandSource() : new JsonCommandSource()
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
    this.#begin()
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
      this.#begin()
    }
  }

  /** The peer sends no more. */
  finished(): void {
    if (this.#input !== 'stopped') this.#setInput('finished')
    this.resume()
  }

  /** Ignores everything after the current command. */
  stop(): void {
    this.#setInput('stopped')
  }

  /** Allows longer frames. */
  authenticated(): void {
    this.#source.authenticated()
  }

  /** Dispatches the commands that wait, and reads on, as far as that is possible now. */
  resume(): void {
    if (!this.#source.isDrained) this.#begin()
    else if (!this.#isAtWork) this.#updateFlow()
  }

  /** False if what arrives is read only to be dropped. */
  get #isListening(): boolean {
    return !this.#session.isOver && (this.#input === 'flowing' || this.#input === 'paused')
  }

  /** Dispatches what has arrived: at once if nobody else waits, and the rest when it is its turn. */
  #begin(): void {
    if (this.#isAtWork) return
    if (this.#mayWork) {
      this.#state = 'dispatching'
      this.#options.work.add(this.#session, this)
      if (!this.#isAtWork) return
    }
    this.#updateFlow()
    this.#source.settle()
  }

  /** Dispatches some commands, or goes on with one. */
  step(): boolean {
    try {
      if (typeof this.#state === 'object') this.#continue(this.#state)
      else if (!this.#dispatchSome()) return this.#rest()
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#session.fail(error.message)
    }
    return this.#mayWork ? false : this.#rest()
  }

  /** Returns false if no whole command is there. */
  #dispatchSome(): boolean {
    for (let cost = 0; cost < COMMITS_PER_STEP && this.#mayDispatch; ) {
      if (!this.#source.next()) return false
      cost += this.#dispatch()
    }
    return true
  }

  /** A command that is left in steps is not continued: nobody would read its response. */
  #rest(): true {
    if (typeof this.#state === 'object') this.#state.steps.return(0)
    if (this.#state !== 'blocked') this.#state = 'idle'
    this.#updateFlow()
    this.#source.settle()
    return true
  }

  failed(error: unknown): void {
    this.#session.crashed(error)
    this.#rest()
  }

  /** The connection has ended while commands waited for their turn. */
  dropped(): void {
    this.#rest()
  }

  get #isAtWork(): boolean {
    return this.#state === 'dispatching' || typeof this.#state === 'object'
  }

  get #mayWork(): boolean {
    if (typeof this.#state === 'object') return !this.#session.isOver
    return this.#mayDispatch && !this.#source.isDrained
  }

  get #mayDispatch(): boolean {
    const session = this.#session
    if (session.isOver || this.#input === 'stopped' || session.isWrapping) return false
    if (this.#state !== 'idle' && this.#state !== 'dispatching') return false
    const { effects, unanswered } = this.#responses
    return effects < MAX_EFFECTS && unanswered < MAX_UNANSWERED && !session.behind
  }

  /** Pauses or resumes the link. It is not paused where the bytes that arrive have to be refused or dropped. */
  #updateFlow(): void {
    const session = this.#session
    if (session.isOver || this.#input === 'stopped') return
    const isHeldUp = this.#isAtWork || !this.#mayDispatch
    if (this.#input === 'finished') {
      const { unanswered, effects } = this.#responses
      if (!isHeldUp && unanswered === 0 && effects === 0) session.end()
    } else {
      this.#setInput(isHeldUp && !session.isWrapping ? 'paused' : 'flowing')
    }
  }

  #setInput(next: Input): void {
    const last = this.#input
    if (next === last) return
    this.#input = next
    if (this.#session.isOver) return
    if (next === 'paused') this.#session.link.pause()
    else if (last === 'paused') this.#session.link.resume()
  }

  /** Returns the cost: 1 for each plain COMMIT that was taken. */
  #dispatch(): number {
    const { seq, plainCommit } = this.#source
    if (plainCommit >= 0 && this.#session.isAuthenticated) return this.#commit(seq, plainCommit)
    try {
      this.#handle(seq)
    } catch (error) {
      this.#refuse(seq, error)
    }
    return COMMITS_PER_STEP / COMMANDS_PER_STEP
  }

  /**
   * A consumer commits what it was sent, in order: such a run of COMMITs is settled and answered in one step. The drain of
   * `backlog` needs 0.31 CPU seconds per million instead of 0.46.
   */
  #commit(seq: number, transaction: number): number {
    const most = Math.min(COMMITS_PER_STEP, MAX_UNANSWERED - this.#responses.unanswered)
    const count = 1 + this.#source.takeCommits(most - 1)
    let done = 0
    try {
      const { queue } = this.#session.channel
      done = queue.commitRun(transaction, count)
      if (done > 0) this.#responses.oksWhenDurable(seq, done)
      for (; done < count; done++) {
        if (queue.commit(transaction + done, false)) this.#responses.okWhenDurable(seq + done, 0)
        else this.#refuse(seq + done, noSuchTransaction())
      }
    } catch (error) {
      // The first has ended the session if it was no fault of the peer.
      for (; done < count && !this.#session.isOver; done++) this.#refuse(seq + done, error)
    }
    return count
  }

  #handle(seq: number): void {
    const session = this.#session
    const { name } = this.#source
    if (!session.isAuthenticated && (name === undefined || !BEFORE_AUTH.has(name))) {
      throw new StatusError('NOT_AUTHENTICATED', 'authenticate with AUTH first')
    }
    if (name === undefined) throw new StatusError('UNKNOWN_COMMAND', 'no such command')
    const args = this.#source.read()
    if (session.isReceiver && !isReceiving(session, name, args)) {
      throw new StatusError('PERMISSION_DENIED', 'this connection takes NOP, COMMIT, and GET of what is bound here')
    }
    if (name === 'NOP') this.#responses.ok(seq, 0)
    else if (name === 'AUTH') this.#authenticate(seq, args as { method: string; data: Uint8Array })
    else if (name === 'WRAP') this.#wrap(seq, String(args['layer']))
    else this.#respond(seq, (this.#options.handlers[name] as CommandHandler<typeof name>)(session, args as never))
  }

  #authenticate(seq: number, { method, data }: { method: string; data: Uint8Array }): void {
    const session = this.#session
    if (session.isAuthenticated) throw new StatusError('ALREADY_AUTHENTICATED', 'this connection is authenticated')
    this.#decide(seq, this.#options.authenticate(seq, method, data), () => {})
  }

  /** Messages of JSON are separate from each other: only a byte stream can change its layer in the middle of a chunk. */
  #wrap(seq: number, layer: string): void {
    const source = this.#source
    if (source instanceof XdrCommandSource && !source.isDrained) {
      this.#session.fail(BYTES_AFTER_WRAP)
      return
    }
    // Before the session may pause it until the layer is there.
    if (this.#input === 'paused') this.#setInput('flowing')
    this.#options.wrap(seq, layer)
  }

  #respond(seq: number, decision: Decision): void {
    if (isSteps<Outcome | Promise<Outcome>>(decision)) this.#workOut(seq, decision)
    else this.#settle(seq, decision)
  }

  #settle(seq: number, decision: Outcome | Promise<Outcome>): void {
    if (decision instanceof Promise) this.#decide(seq, decision, (outcome) => this.#answer(seq, outcome))
    else this.#answer(seq, decision)
  }

  #answer(seq: number, outcome: Outcome): void {
    if (typeof outcome === 'number') {
      this.#responses.ok(seq, outcome)
      return
    }
    let effects: Effects | undefined = (outcome.onSent ?? outcome.answer) ? outcome : undefined
    if (outcome.alone === true) effects = { ...outcome, answer: this.#alone(outcome.answer) }
    if (outcome.stored === true) this.#responses.okWhenDurable(seq, outcome.result, effects)
    else this.#responses.ok(seq, outcome.result, effects)
  }

  /** Most commands are worked out in their first step. */
  #workOut(seq: number, steps: Stepping['steps']): void {
    const { done, value } = steps.next()
    if (done === true) this.#settle(seq, value)
    else this.#state = { seq, steps }
  }

  #continue({ seq, steps }: Stepping): void {
    try {
      const { done, value } = steps.next()
      if (done !== true) return
      this.#state = 'dispatching'
      this.#settle(seq, value)
    } catch (error) {
      this.#state = 'dispatching'
      this.#refuse(seq, error)
    }
  }

  /** Handles no other command before an answer was made. */
  #alone(answer: Effect | undefined): Effect {
    this.#state = 'blocked'
    const readOn = (): void => {
      this.#state = 'idle'
      this.#session.resume()
    }
    return function* () {
      yield* answer?.() ?? []
      readOn()
    }
  }

  /** A decision takes effect even if the connection has ended meanwhile: a hold is released, a control runs. */
  #decide<T>(seq: number, decision: Promise<T>, settle: (decided: T) => void): void {
    this.#state = 'blocked'
    decision
      .then(
        (decided) => this.#decided(seq, () => settle(decided)),
        (error) => this.#decided(seq, () => this.#refuse(seq, error)),
      )
      .catch((error) => this.#session.crashed(error))
  }

  #decided(seq: number, act: () => void): void {
    this.#state = 'idle'
    try {
      act()
    } catch (error) {
      this.#refuse(seq, error)
    }
    if (!this.#session.isOver) this.#session.resume()
  }

  #refuse(seq: number, error: unknown): void {
    const refusal = refusalOf(error)
    this.#responses.refuse(seq, refusal.status, refusal.detail)
    if (refusal.ours) this.#session.crashed(error)
  }
}

/** Whether a session that only receives takes a command [MON 14]; AUTH is answered as on every authenticated connection. */
function isReceiving({ channel }: CommandSession, name: CommandName, args: object): boolean {
  if (name !== 'GET') return name === 'NOP' || name === 'COMMIT' || name === 'AUTH'
  const { metric, channel: id } = args as CommandArguments<'GET'>
  return (id === CURRENT_CHANNEL || id === channel.id) && channel.bindings.has(metric)
}
