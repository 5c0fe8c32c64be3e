/**
 * One connection: commands in, responses out, the values of its current channel. States: fresh, open, closed.
 * Commands take effect in the order of arrival [MON 7]; a response that promises something stored is held until it is,
 * and what a command causes is sent behind its response.
 */
import type { Identity } from '../../auth/permissions.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Link, LinkListener } from '../../protocol/link/link.ts'
import type { CommandName } from '../../protocol/monitor/commands/index.ts'
import { NoticeCode } from '../../protocol/monitor/constants.ts'
import { statuses } from '../../protocol/monitor/status.ts'
import type { Channel } from '../channels/channel.ts'
import type { Connection } from '../channels/outbox.ts'
import type { Timer } from '../clock.ts'
import { noSuchTransaction, refusalOf, StatusError } from '../errors.ts'
import type { Instance } from '../metrics/instance.ts'
import type { Handler, Handlers, Outcome } from './handler.ts'
import { type Intake, JsonIntake, XdrIntake } from './intake.ts'
import { Login } from './login.ts'
import type { Producer } from './producer.ts'
import { Replies } from './replies.ts'
import { Stall } from './stall.ts'

export interface SessionOptions {
  readonly link: Link
  readonly producer: Producer
  readonly handlers: Handlers
  readonly peer: { readonly address: string; readonly loopback: boolean; readonly encrypted: boolean }
  readonly format: 'xdr' | 'json'
  readonly ended: (session: Session) => void
}

/** Reading stops while this much is unanswered, or this many bytes of responses are not drained [MON 8 Window]. */
const MAX_UNANSWERED = 65_536
const MAX_UNDRAINED_RESPONSES = 1 << 20
const MAX_CAUSED_PER_TURN = 32

export class Session implements Connection, LinkListener {
  readonly producer: Producer
  readonly #options: SessionOptions
  readonly #link: Link
  readonly #intake: Intake
  readonly #replies: Replies
  readonly #stall: Stall
  readonly #login: Login
  /** Instances made here and never bound: they die with the connection [MON 9 Unbound]. */
  readonly made = new Set<Instance>()
  #identity: Identity | undefined
  #channel: Channel | undefined
  #deadline: Timer | undefined
  /** A command is being decided: nothing more is looked at. */
  #deciding = false
  #paused = false
  #finished = false
  #closed = false
  #closing = false

  constructor(options: SessionOptions) {
    this.#options = options
    this.producer = options.producer
    this.#link = options.link
    this.#intake = options.format === 'xdr' ? new XdrIntake() : new JsonIntake()
    this.#stall = new Stall(this.producer.clock, () => this.#link.destroy())
    this.#replies = new Replies({
      journal: this.producer.journal,
      turn: this.producer.turn,
      write: (bytes, written) => this.#write(bytes, written),
      moved: () => this.drained(),
    })
    this.#login = new Login(this.producer, options.peer)
  }

  /** PRODUCER_CAPS goes first on every connection; then 10 s to authenticate [MON 11]. */
  begin(): void {
    this.#link.listen(this)
    this.#replies.caps(this.#login.capabilities(false))
    this.#deadline = this.producer.clock.setTimeout(() => this.#fail('no successful AUTH within 10 s'), 10_000)
  }

  /** Who it is; only after AUTH. */
  get identity(): Identity {
    if (this.#identity === undefined) throw new Error('a session that is not authenticated has no identity')
    return this.#identity
  }

  get userId(): number | undefined {
    return this.#identity?.userId
  }

  /** The current channel; only after AUTH. */
  get channel(): Channel {
    if (this.#channel === undefined) throw new Error('a session that is not authenticated has no channel')
    return this.#channel
  }

  /** What JSON text there is no way to answer does: close 1007 [MON 13]. */
  text(message: string): void {
    if (this.#closed || !(this.#intake instanceof JsonIntake)) return
    try {
      this.#intake.push(message)
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : String(error), 1007)
      return
    }
    this.#pump()
  }

  data(chunk: Uint8Array): void {
    if (this.#closed || this.#finished) return
    if (!(this.#intake instanceof XdrIntake)) {
      this.#fail('this subprotocol carries text', 1003)
      return
    }
    this.#intake.push(chunk)
    this.#pump()
    this.#intake.settle()
  }

  finished(): void {
    this.#finished = true
    this.#flow()
  }

  closed(): void {
    if (this.#closed) return
    this.#closed = true
    this.producer.clock.clear(this.#deadline)
    this.#stall.end()
    this.#replies.end()
    if (this.#channel !== undefined) this.producer.registry.detach(this.#channel, this)
    for (const instance of this.made) this.producer.bindings.endUnbound(instance)
    this.#options.ended(this)
  }

  #pump(): void {
    const intake = this.#intake
    try {
      while (this.#mayLook() && intake.next()) {
        const commit = intake instanceof XdrIntake && this.#identity !== undefined ? intake.plainCommit : -1
        if (commit >= 0) this.#commit(intake.incoming.seq, commit)
        else this.#dispatch(intake)
      }
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.#fail(error.message)
    }
    this.#flow()
  }

  /** A turn sets only so much going: the answers to what it asks are measured and written before more is looked at. */
  #mayLook(): boolean {
    return !this.#deciding && !this.#closing && !this.#closed && this.#replies.causing < MAX_CAUSED_PER_TURN
  }

  #commit(seq: number, transaction: number): void {
    if (this.channel.queue.commit(transaction, false)) this.#replies.stored(seq, 0)
    else this.#refuse(seq, noSuchTransaction())
  }

  #dispatch({ incoming }: Intake): void {
    const { seq, name } = incoming
    try {
      if (name === undefined || (this.#identity === undefined && !FIRST.has(name))) {
        if (this.#identity === undefined) throw new StatusError('NOT_AUTHENTICATED', 'authenticate with AUTH first')
        throw new StatusError('UNKNOWN_COMMAND', 'no such command')
      }
      const args = incoming.read()
      if (name === 'NOP') this.#replies.now(seq, 0)
      else if (name === 'AUTH') this.#authenticate(seq, args as { method: string; data: Uint8Array })
      else if (name === 'WRAP') this.#wrap(seq, String(args['layer']))
      else this.#handle(seq, (this.#options.handlers[name] as Handler<typeof name>)(this, args as never))
    } catch (error) {
      this.#refuse(seq, error)
    }
  }

  #handle(seq: number, outcome: Outcome | Promise<Outcome>): void {
    if (typeof outcome === 'number') this.#replies.now(seq, outcome)
    else if (outcome instanceof Promise) this.#decide(seq, outcome, (settled) => this.#handle(seq, settled))
    else if (outcome.stored) this.#replies.stored(seq, outcome.result, outcome.after)
    else this.#replies.now(seq, outcome.result, outcome.after)
  }

  /** Nothing more is read from the connection until a command is decided. */
  #decide<T>(seq: number, decision: Promise<T>, settle: (decided: T) => void): void {
    this.#deciding = true
    const done = (act: () => void): void => {
      this.#deciding = false
      if (this.#closed) return
      try {
        act()
      } catch (error) {
        this.#refuse(seq, error)
      }
      this.#pump()
      this.#intake.settle()
    }
    decision.then(
      (decided) => done(() => settle(decided)),
      (error) => done(() => this.#refuse(seq, error)),
    )
  }

  #refuse(seq: number, error: unknown): void {
    const refusal = refusalOf(error)
    this.#replies.refuse(seq, refusal.status, refusal.detail)
    if (!refusal.ours) return
    this.producer.log.error({ err: error, peer: this.#options.peer.address }, 'a command failed')
    this.end()
  }

  #authenticate(seq: number, { method, data }: { method: string; data: Uint8Array }): void {
    if (this.#identity !== undefined) {
      throw new StatusError('ALREADY_AUTHENTICATED', 'this connection is authenticated')
    }
    this.#decide(seq, this.#login.step(method, data), (step) => {
      if (step.outcome === 'continue') {
        this.#replies.challenge(seq, step.data)
      } else if (step.outcome === 'ok') {
        this.#admit(seq, step.identity)
      } else {
        this.#replies.refuse(seq, statuses[step.status].code, step.detail)
        if (step.outcome === 'closed') this.end()
      }
    })
  }

  #admit(seq: number, identity: Identity): void {
    const channel = this.producer.registry.create(identity, false)
    this.producer.clock.clear(this.#deadline)
    this.#identity = identity
    this.#channel = channel
    this.#intake.authenticated()
    this.#replies.now(seq, channel.id)
    this.#replies.caps(this.#login.capabilities(true))
    this.producer.registry.attach(channel, this)
    this.producer.log.info(
      { peer: this.#options.peer.address, tenant: identity.tenant, user: identity.name },
      'authenticated',
    )
  }

  /** No layer is advertised [MON 6.12]. Bytes behind a WRAP before its response are a protocol error all the same. */
  #wrap(seq: number, layer: string): void {
    this.#login.reset()
    this.#replies.refuse(seq, statuses.UNSUPPORTED.code, `the layer ${layer} is not offered on this connection`)
    if (this.#options.format === 'xdr' && !this.#intake.drained) this.#fail('bytes behind a WRAP before its response')
  }

  /** SET_CHANNEL [MON 7]: from here on commands are the new channel's; its values come behind the response. */
  moveTo(channel: Channel): () => void {
    const left = this.channel
    this.#channel = channel
    this.producer.registry.attach(channel, this, true)
    this.producer.registry.detach(left, this)
    return () => {
      if (channel.connection === this) channel.outbox.start()
    }
  }

  writeValues(bytes: Uint8Array, written: () => void): void {
    this.#write(bytes, written)
  }

  notice(code: number, channel: number, detail: string): void {
    if (!this.#closed) this.#replies.notice(code, channel, detail)
  }

  /** Ends the connection after what was written; nothing behind is handled. */
  end(): void {
    this.#replies.flush()
    this.#link.end()
    this.closed()
  }

  /** The connection ends with the response under way: nothing behind it is handled. */
  closing(): void {
    this.#closing = true
  }

  /** Ends it with its reason said first. */
  dismiss(code: number, detail: string): void {
    if (this.#closed) return
    this.notice(code, this.#channel?.id ?? 0, detail)
    this.end()
  }

  #fail(detail: string, closeCode?: number): void {
    if (this.#closed) return
    this.producer.log.info({ peer: this.#options.peer.address, detail }, 'protocol error')
    this.notice(NoticeCode.PROTOCOL_ERROR, this.#channel?.id ?? 0, detail)
    this.#replies.flush()
    const link = this.#link as Link & { end(code?: number, reason?: string): void }
    link.end(closeCode, closeCode === undefined ? undefined : detail.slice(0, 100))
    this.closed()
  }

  #write(bytes: Uint8Array, written: () => void): void {
    const drained = this.#stall.wrote()
    this.#link.write(bytes, () => {
      drained()
      written()
    })
  }

  /** Something was answered or drained: what waits is looked at, and reading goes on. */
  drained(): void {
    if (!this.#closed && !this.#intake.drained && this.#mayLook()) {
      this.#pump()
      this.#intake.settle()
    } else {
      this.#flow()
    }
  }

  /** Reads on, or not: bounded by what is unanswered and what the peer does not take. */
  #flow(): void {
    if (this.#closed) return
    const { unanswered, undrained } = this.#replies
    if (this.#finished && !this.#deciding && unanswered === 0) {
      this.end()
      return
    }
    const bytes = undrained + (this.#channel?.outbox.backlog ?? 0)
    const behind = !this.#mayLook() || unanswered >= MAX_UNANSWERED || bytes > MAX_UNDRAINED_RESPONSES
    const pause = behind && !this.#closing
    if (pause === this.#paused) return
    this.#paused = pause
    if (pause) this.#link.pause()
    else this.#link.resume()
  }
}

/** Commands that are looked at before AUTH [MON 6.3]. */
const FIRST: ReadonlySet<CommandName> = new Set(['NOP', 'AUTH', 'WRAP'])
