/**
 * A session is one connection: its login, its layers and its current channel. Commands take effect as they arrive [MON 7],
 * and their effects start after their responses. What arrives goes to the command reader, what is sent goes through the
 * response writer and the link writer; this class holds the state that they share.
 */
import type { Account, Credential } from '../../../auth/mechanism.ts'
import { ADMIN_ROLE, type Identity, onlyWatches } from '../../../auth/permissions.ts'
import { MAX_FRAME_BYTES_BEFORE_AUTH } from '../../../protocol/bytes/framer.ts'
import type { Link, LinkListener } from '../../../protocol/link/link.ts'
import { MessageId, NoticeCode } from '../../../protocol/monitor/constants.ts'
import { StatusCode } from '../../../protocol/monitor/status.ts'
import { StorageError } from '../../../storage/store.ts'
import type { Count } from '../accounts/quotas.ts'
import type { Channel } from '../channels/channel.ts'
import type { ConnectionFacts } from '../channels/outbox.ts'
import type { Timer } from '../core/clock.ts'
import { PRODUCER_FAILED, StatusError } from '../core/errors.ts'
import type { Effect } from '../core/fair-work.ts'
import { guarded } from '../core/faults.ts'
import type { MetricInstance } from '../metrics/instance.ts'
import { CommandReader, type ReadSession } from './command-reader.ts'
import type { SessionContext } from './context.ts'
import type { CommandHandlers } from './handler.ts'
import type { IncomingConnection } from './incoming-connection.ts'
import { JsonLink } from './json-link.ts'
import { LayerStack } from './layer-stack.ts'
import { LinkWriter } from './link-writer.ts'
import { SessionLogin } from './login.ts'
import { ResponseWriter } from './response-writer.ts'

export interface SessionOptions {
  readonly context: SessionContext
  readonly connection: IncomingConnection
  readonly handlers: CommandHandlers
  readonly authenticated: (identity: Identity) => void
  readonly ended: (session: Session) => void
}

const LOGIN_MS = 10_000
/** Reading stops while more bytes of responses and answers than this are not drained [MON 8 Window]. */
const MAX_UNDRAINED = 1 << 20
/** The same before AUTH: as much as the peer may send in one frame [MON 1]. */
const MAX_UNDRAINED_BEFORE_AUTH = MAX_FRAME_BYTES_BEFORE_AUTH
/** The result of a WRAP that changes the capabilities [MON 2]. */
const CAPABILITIES_CHANGED = MessageId.PRODUCER_CAPS

export class Session implements ReadSession {
  readonly #context: SessionContext
  readonly #connection: IncomingConnection
  readonly #authenticated: (identity: Identity) => void
  readonly #ended: (session: Session) => void
  readonly #commands: CommandReader
  readonly #responses: ResponseWriter
  readonly #linkWriter: LinkWriter
  readonly #layers: LayerStack
  readonly #login: SessionLogin
  /** Instances that were made here and never bound: they end with the connection [MON 9 Unbound]. */
  readonly unboundInstances = new Set<MetricInstance>()
  #identity: Identity | undefined
  #credential: Credential | undefined
  /** When AUTH succeeded, microseconds since 1970. */
  #since = 0
  /** The quota of connections in which this one is counted. */
  #quota: Count | undefined
  #channel: Channel | undefined
  #loginTimeout: Timer | undefined
  /** A WRAP that has no response yet. */
  #wrapRequest: { readonly seq: number; readonly layer: string } | undefined
  /** True from the response to WRAP until the end of the handshake: neither the old layer nor the new one carries anything. */
  #isTlsStarting = false
  /** The number of SET_CHANNELs. If several are pending, only the response to the last one releases values. */
  #moves = 0
  #isOver = false

  constructor({ context, connection, handlers, authenticated, ended }: SessionOptions) {
    this.#context = context
    this.#connection = connection
    this.#authenticated = authenticated
    this.#ended = ended
    const { clock, journal, turn, work } = context
    const { format, peer } = connection
    const isGone = (): boolean => this.#isOver
    this.#login = new SessionLogin(context, { ...peer, isGone }, connection)
    // What is sent goes from responses to the link writer to the layers; what arrives goes from the layers to commands.
    this.#linkWriter = new LinkWriter(this, clock)
    this.#responses = new ResponseWriter({
      journal,
      turn,
      linkWriter: this.#linkWriter,
      work,
      tenant: () => this.tenant,
      isBehind: () => this.behind,
      onProgress: () => this.resume(),
      failed: (error) => this.crashed(error),
    })
    this.#commands = new CommandReader({
      session: this,
      format,
      responses: this.#responses,
      handlers,
      work,
      authenticate: (seq, method, data) => this.#authenticate(seq, method, data),
      wrap: (seq, layer) => this.#wrap(seq, layer),
    })
    const link = format === 'json' ? this.#jsonLink(connection) : connection.link
    this.#layers = new LayerStack({ ...connection, link }, this.#guardedCommands())
  }

  /** Its work goes on when the session is over: the last notices are still to go out. */
  #jsonLink({ link }: IncomingConnection): JsonLink {
    const tenant = (): string => this.tenant
    const party = {
      get tenant() {
        return tenant()
      },
    }
    return new JsonLink(link, { work: this.#context.work, party, failed: (error) => this.crashed(error) })
  }

  /** What arrives, and what is thrown while it is handled: this costs only the session. */
  #guardedCommands(): LinkListener {
    const commands = this.#commands
    const failed = (error: unknown): void => this.crashed(error)
    return {
      data: guarded((chunk: Uint8Array) => commands.data(chunk), failed),
      text: guarded((message: string) => commands.text(message), failed),
      finished: guarded(() => commands.finished(), failed),
      broken: guarded((detail: string) => {
        if (!this.#isOver) this.fail(detail)
      }, failed),
      closed: guarded(() => this.#closed(), failed),
    }
  }

  /** PRODUCER_CAPS comes first on every connection; then the peer has 10 s to log in, including a handshake [MON 11]. */
  begin(): void {
    const owner = this.#connection.outbound?.owner
    if (owner !== undefined) {
      this.#beginAsReceiver(owner)
      return
    }
    this.#limitLogin()
    if (this.#layers.beginsWithTls) {
      this.#startTls()
    } else {
      this.#layers.listen()
      this.#sendCapabilities()
    }
  }

  /** The certificate of the peer was its proof [MON 14]: the session begins as after AUTH. */
  #beginAsReceiver(owner: Account): void {
    const { accounts, registry, log } = this.#context
    try {
      this.#enter(accounts.identity(owner), { method: 'dialled' })
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      log.info({ peer: this.address, detail: error.message }, 'a connection that was dialled is not admitted')
      this.end()
      return
    }
    this.#layers.listen()
    this.#sendCapabilities()
    registry.attach(this.channel, this)
  }

  #limitLogin(): void {
    const { clock } = this.#context
    clock.clear(this.#loginTimeout)
    this.#loginTimeout = clock.setTimeout(
      guarded(
        () => this.#loginTimedOut(),
        (error) => this.crashed(error),
      ),
      LOGIN_MS,
    )
  }

  /** A peer that has not taken its responses would not take the notice either, so its link is destroyed. */
  #loginTimedOut(): void {
    const isBehind = this.behind
    this.fail('no successful AUTH within 10 s')
    if (isBehind) this.link.destroy()
  }

  /** Something in the capabilities has changed [MON 3 CAPS]; before AUTH nothing of it is said. */
  capabilitiesChanged(): void {
    if (this.isAuthenticated) this.#sendCapabilities()
  }

  #sendCapabilities(): void {
    const { isReceiver } = this
    const layers = isReceiver ? [] : this.#layers.offered(this.isAuthenticated)
    const dialled = isReceiver ? this.channel.id : undefined
    this.#responses.capabilities(
      this.#login.capabilities(this.#identity, layers, { dialled, watches: onlyWatches(this.#credential?.scope) }),
    )
  }

  get link(): Link {
    return this.#layers.link
  }

  get isAuthenticated(): boolean {
    return this.#identity !== undefined
  }

  /** The identity of the peer; only after AUTH. */
  get identity(): Identity {
    return afterAuth(this.#identity)
  }

  get credential(): Credential {
    return afterAuth(this.#credential)
  }

  get address(): string {
    return this.#connection.peer.address
  }

  get destination(): string | undefined {
    return this.#connection.outbound?.destination
  }

  get facts(): ConnectionFacts {
    const { outbound, peer, transport } = this.#connection
    const who = outbound
      ? { address: '', method: 'dialled' }
      : { address: peer.address, method: this.credential.method }
    return { ...who, transport, layers: this.#layers.added, since: this.#since }
  }

  get isReceiver(): boolean {
    return this.#connection.outbound?.owner !== undefined
  }

  /** Its tenant; empty before AUTH. */
  get tenant(): string {
    return this.#identity?.tenant ?? ''
  }

  get userId(): number | undefined {
    return this.#identity?.userId
  }

  /** The current channel; only after AUTH. */
  get channel(): Channel {
    return afterAuth(this.#channel)
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** True if the peer sends commands and does not take the responses and answers. */
  get behind(): boolean {
    const answers = this.#linkWriter.undrained('answers') + (this.#channel?.outbox.backlog ?? 0)
    const most = this.isAuthenticated ? MAX_UNDRAINED : MAX_UNDRAINED_BEFORE_AUTH
    return this.#responses.backlog + this.#linkWriter.undrained('responses') + answers > most
  }

  async #authenticate(seq: number, method: string, data: Uint8Array): Promise<void> {
    const step = await this.#login.step(method, data)
    if (step.outcome === 'continue') {
      this.#responses.challenge(seq, step.data)
    } else if (step.outcome === 'ok') {
      this.#admit(seq, step.identity, step.credential)
    } else {
      this.#responses.refuse(seq, StatusCode[step.status], step.detail)
      if (step.outcome === 'closed') this.end()
    }
  }

  /** AUTH succeeded. Throws StatusError QUOTA_EXCEEDED. */
  #admit(seq: number, identity: Identity, credential: Credential): void {
    if (this.#isOver) return
    this.#enter(identity, credential)
    this.#responses.ok(seq, this.channel.id)
    this.#sendCapabilities()
    this.#context.registry.attach(this.channel, this)
  }

  /** The session gets an identity, a channel and other limits. Throws StatusError QUOTA_EXCEEDED. */
  #enter(identity: Identity, credential: Credential): void {
    const { quotas, registry, clock, log } = this.#context
    const { outbound, admitted, peer } = this.#connection
    // An admin belongs to every tenant, and has to get in even where one has used up its quota.
    const quota = identity.role === ADMIN_ROLE ? undefined : quotas.of(identity.tenant).connections
    quota?.enter()
    this.#quota = quota
    const channel =
      outbound?.channel ?? registry.create(identity, false, onlyWatches(credential.scope) ? { durable: false } : {})
    clock.clear(this.#loginTimeout)
    this.#identity = identity
    this.#credential = credential
    this.#since = clock.microseconds()
    this.#channel = channel
    this.#commands.authenticated()
    this.#authenticated(identity)
    admitted?.()
    log.debug({ peer: peer.address, tenant: identity.tenant, user: identity.name }, 'authenticated')
  }

  /** WRAP is synchronous [MON 6.12]: bytes that arrive before its response end the connection. */
  #wrap(seq: number, layer: string): void {
    this.#login.reset()
    this.#wrapRequest = { seq, layer }
    this.#answerWrap()
  }

  get isWrapping(): boolean {
    return this.#wrapRequest !== undefined || this.#isTlsStarting
  }

  /** Answers a WRAP once all other commands are answered. After that, nothing is read or written before the layer is there. */
  #answerWrap(): void {
    if (this.#wrapRequest === undefined || this.#responses.unanswered > 0) return
    const { seq, layer } = this.#wrapRequest
    this.#wrapRequest = undefined
    if (!this.#layers.offered(this.isAuthenticated).includes(layer)) {
      const detail = `the layer ${layer} is not offered on this connection`
      this.#responses.refuse(seq, StatusCode.UNSUPPORTED, detail)
      this.#responses.flush()
      return
    }
    // Everything that the peer sends after it has the response is under the new layer.
    this.link.pause()
    this.#responses.ok(seq, CAPABILITIES_CHANGED)
    this.#responses.flush()
    if (layer === 'deflate') {
      this.#layers.addDeflate()
      this.#layerAdded()
    } else {
      this.#isTlsStarting = true
      this.#limitLogin()
      this.#linkWriter.whenDrained(() => {
        if (!this.#isOver) this.#startTls()
      })
    }
  }

  #startTls(): void {
    this.#isTlsStarting = true
    this.#layers.addTls((facts) => {
      this.#isTlsStarting = false
      if (this.#isOver) return
      this.#login.learn(facts)
      this.#layerAdded()
    })
  }

  #layerAdded(): void {
    this.#sendCapabilities()
    this.resume()
  }

  /** SET_CHANNEL [MON 7]: commands are for the new channel from now on; its values come after the response. */
  moveTo(channel: Channel): () => void {
    const { registry } = this.#context
    const left = this.channel
    this.#channel = channel
    registry.attach(channel, this, true)
    registry.detach(left, this)
    const move = ++this.#moves
    return () => {
      if (move === this.#moves && channel.connection === this) channel.outbox.resume()
    }
  }

  get undrained(): number {
    return this.#linkWriter.undrained('values')
  }

  writeValues(bytes: Uint8Array, written: () => void): void {
    this.#responses.writeReady()
    this.#linkWriter.write('values', bytes, () => {
      written()
      if (!this.#isOver) this.#channel?.outbox.drained()
    })
  }

  writeAnswers(bytes: Uint8Array): void {
    this.#responses.writeReady()
    this.#linkWriter.write('answers', bytes, () => this.resume())
  }

  notice(code: number, channel: number, detail: string): void {
    if (!this.#isOver && !this.#isTlsStarting) this.#responses.notice(code, channel, detail)
  }

  /** Something was decided, answered or drained: a WRAP that waits is answered, and reading continues. */
  resume(): void {
    if (!this.#isOver) this.#answerWrap()
    this.#responses.resume()
    this.#commands.resume()
  }

  later(answer: Effect): void {
    this.#responses.later(answer)
  }

  stopReading(): void {
    this.#commands.stop()
  }

  /** Ends the connection after what was written; no further command is handled. */
  end(closeCode?: number, reason?: string): void {
    if (this.#isOver) return
    this.#responses.flush()
    if (this.#isTlsStarting) this.link.destroy()
    else this.link.end(closeCode, reason)
    this.#leave()
  }

  dismiss(code: number, detail: string): void {
    this.notice(code, this.#channel?.id ?? 0, detail)
    this.end()
  }

  crashed(error: unknown): void {
    this.#report(error)
    this.dismiss(NoticeCode.INTERNAL, PRODUCER_FAILED)
  }

  fail(detail: string, closeCode?: number): void {
    this.#context.log.info({ peer: this.address, detail }, 'protocol error')
    this.notice(NoticeCode.PROTOCOL_ERROR, this.#channel?.id ?? 0, detail)
    this.end(closeCode, closeCode === undefined ? undefined : detail.slice(0, 100))
  }

  #closed(): void {
    this.#linkWriter.end()
    this.#leave()
  }

  /** Handles nothing more, and leaves the channel; bytes that were written may still be on their way. */
  #leave(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { clock, registry, bindings, work } = this.#context
    clock.clear(this.#loginTimeout)
    this.#responses.end()
    if (this.#channel !== undefined) registry.detach(this.#channel, this)
    this.#quota?.leave()
    const unbound = work.run({ tenant: this.tenant }, bindings.endAllUnbound([...this.unboundInstances]))
    if (unbound instanceof Promise) unbound.catch((error) => this.#report(error))
    this.#ended(this)
  }

  /** The store of a server that stops is closed, maybe while values are read for a connection that has ended: that is no fault. */
  #report(error: unknown): void {
    if (this.#isOver && error instanceof StorageError) return
    this.#context.faults.report('session', error, { peer: this.address })
  }
}

function afterAuth<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('only an authenticated session has an identity and a channel')
  return part
}
