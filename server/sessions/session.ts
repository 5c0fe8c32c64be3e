/**
 * One connection: commands in, responses out, the values of its current channel. Commands take effect as they arrive
 * [MON 7], and cause nothing before their response. Reading stops while the peer does not take what it asked for.
 */
import type { Credential, Peer } from '../../auth/mechanism.ts'
import { ADMIN_ROLE, type Identity } from '../../auth/permissions.ts'
import { MAX_FRAME_BYTES_BEFORE_AUTH } from '../../protocol/bytes/framer.ts'
import type { LinkListener } from '../../protocol/link/link.ts'
import { NoticeCode } from '../../protocol/monitor/constants.ts'
import type { Count } from '../accounts/quotas.ts'
import type { Channel } from '../channels/channel.ts'
import type { Connection } from '../channels/outbox.ts'
import type { Timer } from '../core/clock.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import { Dispatch } from './dispatch.ts'
import type { Handlers } from './handler.ts'
import type { IncomingConnection } from './incoming-connection.ts'
import { Login } from './login.ts'
import { Outgoing } from './outgoing.ts'
import type { Producer } from './producer.ts'
import { type Read, Reading } from './reading.ts'
import { Replies } from './replies.ts'
import { type Wrapped, Wrapping } from './wrapping.ts'

export interface SessionOptions extends IncomingConnection {
  readonly producer: Producer
  readonly handlers: Handlers
  readonly ended: (session: Session) => void
}

const LOGIN_MS = 10_000
/** Reading stops while this many bytes of responses and answers are not drained [MON 8 Window]. */
const MAX_UNDRAINED = 1 << 20
/** Before AUTH as much as the peer may send in one frame [MON 1]. */
const MAX_UNDRAINED_BEFORE_AUTH = MAX_FRAME_BYTES_BEFORE_AUTH

export class Session implements Connection, LinkListener, Read, Wrapped {
  readonly producer: Producer
  readonly #options: SessionOptions
  readonly #reading: Reading
  readonly #replies: Replies
  readonly #outgoing: Outgoing
  readonly #wrapping: Wrapping
  readonly #login: Login
  /** Instances made here and never bound: they die with the connection [MON 9 Unbound]. */
  readonly made = new Set<MetricInstance>()
  #identity: Identity | undefined
  #credential: Credential | undefined
  /** What it counts among. */
  #counted: Count | undefined
  #channel: Channel | undefined
  #deadline: Timer | undefined
  /** SET_CHANNELs so far: of several on their way only the response of the last one lets values go. */
  #moves = 0
  #over = false

  constructor(options: SessionOptions) {
    const { producer, handlers, format } = options
    this.#options = options
    this.producer = producer
    this.#wrapping = new Wrapping(options, this)
    this.#outgoing = new Outgoing(this.#wrapping, producer.clock)
    this.#replies = new Replies({
      journal: producer.journal,
      turn: producer.turn,
      write: (bytes) => this.#outgoing.write('responses', bytes, () => this.goOn()),
      moved: () => this.goOn(),
    })
    this.#login = new Login(producer, options.peer, options.outbound?.auth)
    const dispatch = new Dispatch({ session: this, replies: this.#replies, login: this.#login, handlers })
    this.#reading = new Reading({ session: this, format, dispatch, replies: this.#replies, wrapping: this.#wrapping })
  }

  /** PRODUCER_CAPS goes first on every connection; then 10 s to authenticate, a handshake among them [MON 11]. */
  begin(): void {
    this.#limitLogin()
    if (this.#wrapping.begin()) this.#sayCapabilities()
  }

  #limitLogin(): void {
    this.producer.clock.clear(this.#deadline)
    this.#deadline = this.producer.clock.setTimeout(() => this.#late(), LOGIN_MS)
  }

  /** Who does not take what it asked for would not take the last words either. */
  #late(): void {
    const isDeaf = this.behind
    this.fail('no successful AUTH within 10 s')
    if (isDeaf) this.#wrapping.link.destroy()
  }

  #sayCapabilities(): void {
    this.#replies.caps(this.#login.capabilities(this.isAuthenticated, this.#wrapping.offered()))
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
    return this.#options.outbound !== undefined
  }

  get userId(): number | undefined {
    return this.#identity?.userId
  }

  /** The current channel; only after AUTH. */
  get channel(): Channel {
    return known(this.#channel)
  }

  get isOver(): boolean {
    return this.#over
  }

  text(message: string): void {
    this.#reading.text(message)
  }

  data(chunk: Uint8Array): void {
    this.#reading.data(chunk)
  }

  finished(): void {
    this.#reading.finished()
  }

  broken(detail: string): void {
    if (!this.#over) this.fail(detail)
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
    if (this.#identity !== undefined) this.#counted?.leave()
    for (const instance of this.made) this.producer.bindings.endUnbound(instance)
    this.#options.ended(this)
  }

  /** The peer asks and does not take what it gets. */
  get behind(): boolean {
    const answers = this.#outgoing.undrained('answers') + (this.#channel?.outbox.backlog ?? 0)
    const most = this.isAuthenticated ? MAX_UNDRAINED : MAX_UNDRAINED_BEFORE_AUTH
    return this.#replies.backlog + this.#outgoing.undrained('responses') + answers > most
  }

  /** AUTH succeeded: the session gets a channel, which it tells, and its limits are others. Throws StatusError QUOTA_EXCEEDED. */
  admit(seq: number, identity: Identity, credential: Credential): void {
    if (this.#over) return
    // An admin is every tenant's, and has to get in where one has used up what it may have.
    if (identity.role !== ADMIN_ROLE) this.#counted = this.producer.quotas.of(identity.tenant).connections
    this.#counted?.enter()
    const channel = this.#options.outbound?.channel ?? this.producer.registry.create(identity, false)
    this.producer.clock.clear(this.#deadline)
    this.#identity = identity
    this.#credential = credential
    this.#channel = channel
    this.#reading.authenticated()
    this.#options.admitted?.()
    this.#replies.now(seq, channel.id)
    this.#sayCapabilities()
    this.producer.registry.attach(channel, this)
    this.producer.log.info(
      { peer: this.#options.peer.address, tenant: identity.tenant, user: identity.name },
      'authenticated',
    )
  }

  wrap(seq: number, layer: string): void {
    this.#login.reset()
    this.#wrapping.ask(seq, layer)
    this.#reading.wrapping()
    if (!this.#over) this.#wrapping.goOn(this.#replies)
  }

  /** The 10 s begin anew [MON 11]. */
  securing(): void {
    this.#limitLogin()
  }

  secured(facts: Partial<Peer>): void {
    if (this.#over) return
    this.#login.moved(facts)
    this.wrapped()
  }

  wrapped(): void {
    this.#sayCapabilities()
    this.goOn()
  }

  whenDrained(act: () => void): void {
    this.#outgoing.whenDrained(() => {
      if (!this.#over) act()
    })
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
    if (!this.#over && !this.#wrapping.isSecuring) this.#replies.notice(code, channel, detail)
  }

  /** Ends the connection after what was written; nothing behind is handled. */
  end(closeCode?: number, reason?: string): void {
    if (this.#over) return
    this.#replies.flush()
    if (this.#wrapping.isSecuring) this.#wrapping.link.destroy()
    else this.#wrapping.link.end(closeCode, reason)
    this.#leave()
  }

  /** The connection ends with the response under way: nothing behind it is handled. */
  closing(): void {
    this.#reading.closing()
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

  /** A protocol error. */
  fail(detail: string, closeCode?: number): void {
    this.producer.log.info({ peer: this.#options.peer.address, detail }, 'protocol error')
    this.notice(NoticeCode.PROTOCOL_ERROR, this.#channel?.id ?? 0, detail)
    this.end(closeCode, closeCode === undefined ? undefined : detail.slice(0, 100))
  }

  /** Something was decided, answered or drained: what waits is looked at, and reading goes on. */
  goOn(): void {
    if (!this.#over) this.#wrapping.goOn(this.#replies)
    this.#reading.goOn()
  }
}

function known<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('only a session that is authenticated has an identity and a channel')
  return part
}
