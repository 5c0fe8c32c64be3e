/**
 * One connection: commands in, responses out, the values of its current channel. Commands take effect as they arrive
 * [MON 7], and cause nothing before their response. Reading stops while the peer does not take what it asked for.
 */
import type { Credential } from '../../auth/mechanism.ts'
import type { Identity } from '../../auth/permissions.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Link, LinkListener } from '../../protocol/link/link.ts'
import { NoticeCode } from '../../protocol/monitor/constants.ts'
import type { Channel } from '../channels/channel.ts'
import type { Connection } from '../channels/outbox.ts'
import type { Timer } from '../clock.ts'
import type { Instance } from '../metrics/instance.ts'
import type { Arrival } from './arrival.ts'
import { Dispatch } from './dispatch.ts'
import type { Handlers } from './handler.ts'
import { type Intake, JsonIntake, XdrIntake } from './intake.ts'
import { Login } from './login.ts'
import { Outgoing } from './outgoing.ts'
import type { Producer } from './producer.ts'
import { Replies } from './replies.ts'
import { Wrapping } from './wrapping.ts'

export interface SessionOptions extends Arrival {
  readonly producer: Producer
  readonly handlers: Handlers
  readonly ended: (session: Session) => void
}

const LOGIN_MS = 10_000
/** Reading stops while this much is unanswered, or this many bytes of responses and answers are not drained [MON 8 Window]. */
const MAX_UNANSWERED = 65_536
const MAX_UNDRAINED = 1 << 20
/** A turn sets only so much going: the answers to what it asks are written before more is looked at. */
const MAX_CAUSED_PER_TURN = 256
const BEHIND_WRAP = 'bytes behind a WRAP before its response'

export class Session implements Connection, LinkListener {
  readonly producer: Producer
  readonly #options: SessionOptions
  readonly #link: Link
  readonly #intake: Intake
  readonly #replies: Replies
  readonly #outgoing: Outgoing
  readonly #wrapping: Wrapping
  readonly #login: Login
  readonly #dispatch: Dispatch
  /** Instances made here and never bound: they die with the connection [MON 9 Unbound]. */
  readonly made = new Set<Instance>()
  #identity: Identity | undefined
  #credential: Credential | undefined
  #channel: Channel | undefined
  #deadline: Timer | undefined
  /** SET_CHANNELs so far: of several on their way only the response of the last one lets values go. */
  #moves = 0
  #paused = false
  #finished = false
  #closing = false
  #over = false

  constructor(options: SessionOptions) {
    const { producer, link, handlers } = options
    this.#options = options
    this.producer = producer
    this.#link = link
    this.#intake = options.format === 'xdr' ? new XdrIntake() : new JsonIntake()
    this.#outgoing = new Outgoing(link, producer.clock)
    this.#replies = new Replies({
      journal: producer.journal,
      turn: producer.turn,
      write: (bytes) => this.#outgoing.write('responses', bytes, () => this.goOn()),
      moved: () => this.goOn(),
    })
    this.#wrapping = new Wrapping(this.#replies)
    this.#login = new Login(producer, options.peer, options.dialled?.door)
    this.#dispatch = new Dispatch({ session: this, replies: this.#replies, login: this.#login, handlers })
  }

  /** PRODUCER_CAPS goes first on every connection; then 10 s to authenticate [MON 11]. */
  begin(): void {
    this.#link.listen(this)
    this.#replies.caps(this.#login.capabilities(false))
    this.#deadline = this.producer.clock.setTimeout(() => this.#fail('no successful AUTH within 10 s'), LOGIN_MS)
  }

  get isAuthenticated(): boolean {
    return this.#identity !== undefined
  }

  /** Who it is; only after AUTH. */
  get identity(): Identity {
    return known(this.#identity)
  }

  get credential(): Credential {
    return known(this.#credential)
  }

  get address(): string {
    return this.#options.peer.address
  }

  get isDialled(): boolean {
    return this.#options.dialled !== undefined
  }

  get userId(): number | undefined {
    return this.#identity?.userId
  }

  /** The current channel; only after AUTH. */
  get channel(): Channel {
    return known(this.#channel)
  }

  text(message: string): void {
    if (!this.#listens) return
    if (!(this.#intake instanceof JsonIntake)) {
      this.#fail('this subprotocol carries binary messages', 1003)
      return
    }
    try {
      this.#intake.push(message)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      // There is nothing that could be answered [MON 13].
      this.#fail(error.message, error.code === 'FRAME_TOO_LONG' ? 1009 : 1007)
      return
    }
    this.#pump()
  }

  data(chunk: Uint8Array): void {
    if (!this.#listens) return
    if (!(this.#intake instanceof XdrIntake)) {
      this.#fail('this subprotocol carries text', 1003)
      return
    }
    if (this.#wrapping.isUnderWay) {
      this.#fail(BEHIND_WRAP)
      return
    }
    this.#intake.push(chunk)
    this.#pump()
    this.#intake.settle()
  }

  finished(): void {
    this.#finished = true
    this.goOn()
  }

  closed(): void {
    this.#outgoing.end()
    this.#leave()
  }

  /** Nothing more is handled, and the channel is left; what was written may still be on its way. */
  #leave(): void {
    if (this.#over) return
    this.#over = true
    this.producer.clock.clear(this.#deadline)
    this.#replies.end()
    if (this.#channel !== undefined) this.producer.registry.detach(this.#channel, this)
    for (const instance of this.made) this.producer.bindings.endUnbound(instance)
    this.#options.ended(this)
  }

  /** False when what arrives is read only to be thrown away. */
  get #listens(): boolean {
    return !(this.#over || this.#finished || this.#closing)
  }

  #pump(): void {
    const intake = this.#intake
    try {
      while (this.#mayLook && intake.next()) this.#dispatch.look(intake.incoming)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#fail(error.message)
    }
    this.#flow()
  }

  get #mayLook(): boolean {
    if (this.#over || this.#closing || this.#dispatch.deciding || this.#wrapping.isUnderWay) return false
    const { causing, unanswered } = this.#replies
    return causing < MAX_CAUSED_PER_TURN && unanswered < MAX_UNANSWERED && !this.behind
  }

  /** The peer asks and does not take what it gets. */
  get behind(): boolean {
    const answers = this.#outgoing.undrained('answers') + (this.#channel?.outbox.backlog ?? 0)
    return this.#replies.backlog + this.#outgoing.undrained('responses') + answers > MAX_UNDRAINED
  }

  /** AUTH succeeded: the session gets a channel, which it tells, and its limits are others. */
  admit(seq: number, identity: Identity, credential: Credential): void {
    if (this.#over) return
    const channel = this.#options.dialled?.channel ?? this.producer.registry.create(identity, false)
    this.producer.clock.clear(this.#deadline)
    this.#identity = identity
    this.#credential = credential
    this.#channel = channel
    this.#intake.authenticated()
    this.#options.admitted?.()
    this.#replies.now(seq, channel.id)
    this.#replies.caps(this.#login.capabilities(true))
    this.producer.registry.attach(channel, this)
    this.producer.log.info(
      { peer: this.#options.peer.address, tenant: identity.tenant, user: identity.name },
      'authenticated',
    )
  }

  /** Bytes of JSON are messages of their own: only a byte stream can change its layer between two of them. */
  wrap(seq: number, layer: string): void {
    this.#login.reset()
    this.#wrapping.begin(seq, layer)
    if (this.#intake instanceof XdrIntake && !this.#intake.drained) this.#fail(BEHIND_WRAP)
    else this.#wrapping.goOn()
  }

  /** SET_CHANNEL [MON 7]: from here on commands are the new channel's; its values come behind the response. */
  moveTo(channel: Channel): () => void {
    const left = this.channel
    this.#channel = channel
    this.producer.registry.attach(channel, this, true)
    this.producer.registry.detach(left, this)
    const move = ++this.#moves
    return () => {
      if (move === this.#moves && channel.connection === this) channel.outbox.start()
    }
  }

  get undrained(): number {
    return this.#outgoing.undrained('values')
  }

  writeValues(bytes: Uint8Array, written: () => void): void {
    this.#outgoing.write('values', bytes, () => {
      written()
      if (!this.#over) this.#channel?.outbox.drained()
    })
  }

  writeAnswers(bytes: Uint8Array): void {
    this.#outgoing.write('answers', bytes, () => this.goOn())
  }

  notice(code: number, channel: number, detail: string): void {
    if (!this.#over) this.#replies.notice(code, channel, detail)
  }

  /** Ends the connection after what was written; nothing behind is handled. */
  end(closeCode?: number, reason?: string): void {
    if (this.#over) return
    this.#replies.flush()
    this.#link.end(closeCode, reason)
    this.#leave()
  }

  /** The connection ends with the response under way: nothing behind it is handled. */
  closing(): void {
    this.#closing = true
  }

  /** Ends it with its reason said first. */
  dismiss(code: number, detail: string): void {
    this.notice(code, this.#channel?.id ?? 0, detail)
    this.end()
  }

  /** A command failed for a reason that is not the peer's. */
  failed(error: unknown): void {
    this.producer.log.error({ err: error, peer: this.#options.peer.address }, 'a command failed')
    this.end()
  }

  #fail(detail: string, closeCode?: number): void {
    this.producer.log.info({ peer: this.#options.peer.address, detail }, 'protocol error')
    this.notice(NoticeCode.PROTOCOL_ERROR, this.#channel?.id ?? 0, detail)
    this.end(closeCode, closeCode === undefined ? undefined : detail.slice(0, 100))
  }

  /** Something was decided, answered or drained: what waits is looked at, and reading goes on. */
  goOn(): void {
    if (!this.#over) this.#wrapping.goOn()
    if (this.#mayLook && !this.#intake.drained) {
      this.#pump()
      this.#intake.settle()
    } else {
      this.#flow()
    }
  }

  /** Reads on, or not. What arrives is also read where it has to be refused or thrown away. */
  #flow(): void {
    if (this.#over) return
    if (this.#finished && this.#mayLook && this.#replies.unanswered === 0) {
      this.end()
      return
    }
    const pause = !this.#mayLook && !this.#closing && !this.#wrapping.isUnderWay
    if (pause === this.#paused) return
    this.#paused = pause
    if (pause) this.#link.pause()
    else this.#link.resume()
  }
}

function known<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('only a session that is authenticated has an identity and a channel')
  return part
}
