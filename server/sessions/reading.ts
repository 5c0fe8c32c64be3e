/**
 * The commands of a connection as they are read: looked at one by one, in order [MON 7], as long as the session may. What
 * arrives while it may not waits in the intake; the link is paused, so that the peer feels it.
 */
import { ProtocolError } from '../../protocol/errors.ts'
import type { Dispatch } from './dispatch.ts'
import { type Intake, JsonIntake, XdrIntake } from './intake.ts'
import type { Replies } from './replies.ts'
import type { Wrapping } from './wrapping.ts'

/** Reading stops while this much is unanswered [MON 8 Window]. */
const MAX_UNANSWERED = 65_536
/** A turn sets only so much going: the answers to what it asks are written before more is looked at. */
const MAX_CAUSED_PER_TURN = 256
const BEHIND_WRAP = 'bytes behind a WRAP before its response'

/** What of a session reading needs and ends. */
export interface Read {
  readonly isOver: boolean
  /** The peer asks and does not take what it gets. */
  readonly behind: boolean
  /** A protocol error. */
  fail(detail: string, closeCode?: number): void
  end(): void
}

export interface ReadingOptions {
  readonly session: Read
  readonly format: 'xdr' | 'json'
  readonly dispatch: Dispatch
  readonly replies: Replies
  readonly wrapping: Wrapping
}

export class Reading {
  readonly #options: ReadingOptions
  readonly #intake: Intake
  #isPaused = false
  #isFinished = false
  #isClosing = false

  constructor(options: ReadingOptions) {
    this.#options = options
    this.#intake = options.format === 'xdr' ? new XdrIntake() : new JsonIntake()
  }

  text(message: string): void {
    if (!this.#listens) return
    const { session } = this.#options
    if (!(this.#intake instanceof JsonIntake)) {
      session.fail('this subprotocol carries binary messages', 1003)
      return
    }
    try {
      this.#intake.push(message)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      // There is nothing that could be answered [MON 13].
      session.fail(error.message, error.code === 'FRAME_TOO_LONG' ? 1009 : 1007)
      return
    }
    this.#pump()
  }

  data(chunk: Uint8Array): void {
    if (!this.#listens) return
    const { session, wrapping } = this.#options
    if (!(this.#intake instanceof XdrIntake)) {
      session.fail('this subprotocol carries text', 1003)
      return
    }
    if (wrapping.isUnderWay) {
      session.fail(BEHIND_WRAP)
      return
    }
    this.#intake.push(chunk)
    this.#pump()
    this.#intake.settle()
  }

  /** The peer sends no more. */
  finished(): void {
    this.#isFinished = true
    this.goOn()
  }

  /** Nothing behind the command under way is handled. */
  closing(): void {
    this.#isClosing = true
  }

  /** Frames may be longer now. */
  authenticated(): void {
    this.#intake.authenticated()
  }

  /** Bytes of JSON are messages of their own: only a byte stream can change its layer between two of them. */
  wrapping(): void {
    if (this.#intake instanceof XdrIntake && !this.#intake.drained) this.#options.session.fail(BEHIND_WRAP)
  }

  /** Something was decided, answered or drained: what waits is looked at, and reading goes on. */
  goOn(): void {
    if (this.#mayLook && !this.#intake.drained) {
      this.#pump()
      this.#intake.settle()
    } else {
      this.#flow()
    }
  }

  /** False when what arrives is read only to be thrown away. */
  get #listens(): boolean {
    return !(this.#options.session.isOver || this.#isFinished || this.#isClosing)
  }

  #pump(): void {
    const { session, dispatch } = this.#options
    const intake = this.#intake
    try {
      while (this.#mayLook && intake.next()) dispatch.look(intake.incoming)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      session.fail(error.message)
    }
    this.#flow()
  }

  get #mayLook(): boolean {
    const { session, dispatch, wrapping, replies } = this.#options
    if (session.isOver || this.#isClosing || dispatch.deciding || wrapping.isUnderWay) return false
    const { causing, unanswered } = replies
    return causing < MAX_CAUSED_PER_TURN && unanswered < MAX_UNANSWERED && !session.behind
  }

  /** Reads on, or not. What arrives is also read where it has to be refused or thrown away. */
  #flow(): void {
    const { session, replies, wrapping } = this.#options
    if (session.isOver) return
    if (this.#isFinished && this.#mayLook && replies.unanswered === 0) {
      session.end()
      return
    }
    const pause = !this.#mayLook && !this.#isClosing && !wrapping.isUnderWay
    if (pause === this.#isPaused) return
    this.#isPaused = pause
    if (pause) wrapping.link.pause()
    else wrapping.link.resume()
  }
}
