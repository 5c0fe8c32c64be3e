/**
 * Connections that the producer makes [MON 14]: each channel with a URL gets one attempt after another while no connection
 * has it. Every attempt checks everything again: the owner, its rights, the operator's list, and every address of the name.
 * An attempt is in the audit log before its first packet leaves. Why it failed is in the log and the audit log only; the
 * owner of the channel sees `waiting`, so that nobody can use channels to find out which hosts answer, or what names resolve to.
 *
 * The pauses between attempts are those of `protocol/kept/`, the loop is not: an attempt also waits for the connection that has the
 * channel, for the rate limit of the tenant and for a free place, and a connection may leave the channel to another one.
 */
import type { Account } from '../../../auth/mechanism.ts'
import { AuthMethods } from '../../../auth/mechanism.ts'
import type { Identity } from '../../../auth/permissions.ts'
import type { ScramVerifier } from '../../../auth/scram/keys.ts'
import { Backoff, TO_PEER } from '../../../protocol/kept/backoff.ts'
import { unlessAborted } from '../../../protocol/kept/pause.ts'
import { NoticeCode } from '../../../protocol/monitor/constants.ts'
import type { AuditEntry } from '../../kernel/accounts/audit/log.ts'
import type { Channel } from '../../kernel/channels/channel.ts'
import type { ChannelConnection } from '../../kernel/channels/outbox.ts'
import type { ChannelDialler, DialProof } from '../../kernel/commands/services.ts'
import type { Clock, Timer } from '../../kernel/core/clock.ts'
import type { Logger } from '../../kernel/core/log.ts'
import type { AuthProvider, IncomingConnection } from '../../kernel/sessions/incoming-connection.ts'
import type { PushDestination } from '../../kit/push.ts'
import type { AllowList } from './allow-list.ts'
import { channelAuth, secretVerifier, untilAborted } from './channel-auth.ts'
import { type Destination, parseDestination, parseRequestOrigin, type RequestOrigin } from './destination.ts'
import type { OpenedConnection } from './open-connection.ts'
import { isOwnListener, type OwnPort, type Resolver } from './resolve.ts'

/** From resolving the name to an open connection; after that the session gives the peer another 10 s to log in. */
const OPEN_MS = 10_000
const MAX_ATTEMPTS = 64
/** A connection without a session is renewed this often, to resolve the name and check the rights again. */
const RENEW_MS = 3_600_000

/** Nobody logs in where a certificate was the proof. */
const NO_METHODS = new AuthMethods([])

export interface DiallerOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly audit: { record(entry: AuditEntry): void }
  /** Resolves when everything that has changed so far is stored. */
  readonly stored: () => Promise<void>
  readonly allow: AllowList
  /** Whether the current rules permit the URL. */
  readonly mayDial: (identity: Identity, url: string) => boolean
  readonly account: (userId: number) => Account | undefined
  /** The rate limit of a tenant: the delay before its next attempt, ms; `take` counts an attempt. */
  readonly rate: (tenant: string) => { readonly waitMs: number; take(): void }
  readonly resolve: Resolver
  readonly connect: (destination: Destination, address: string, signal: AbortSignal) => Promise<OpenedConnection>
  /** The authorities that the operator has chosen for certificates (`dial.ca`), the path of a PEM file. */
  readonly ca: string | undefined
  readonly attach: (channel: Channel, connection: ChannelConnection) => void
  readonly detach: (channel: Channel, connection: ChannelConnection) => void
  readonly serverSecret: Uint8Array
  /** 0..1 */
  readonly random: () => number
}

/** A channel whose connections the producer makes, and the state of its attempts. */
class OutboundTarget {
  readonly channel: Channel
  readonly destination: Destination
  /** undefined if the target has no session, in which case nobody logs in. */
  auth: AuthProvider | undefined
  /** True if the certificate of the peer is its proof. */
  isByCertificate = false
  /** What the producer shows where it delivers by HTTP. */
  bearer: Uint8Array | undefined
  timer: Timer | undefined
  /** The attempt in progress: from resolving the name until the peer has logged in. */
  attempt: AbortController | undefined
  /** True while it waits for a free attempt. */
  isQueued = false
  /** True from when a connection that the producer made is ready until it takes the channel. */
  willAttach = false
  /** True while such a connection has the channel. */
  isAttached = false
  /** The connection of a target without a session, which must be ended from here. */
  push: ChannelConnection | undefined
  /** The last attempt was refused here, which is recorded once. */
  isRefused = false
  /** When such a connection took the channel. */
  attachedMs = 0
  readonly backoff: Backoff
  /** All attempts; they use the addresses of a name in rotation. */
  attempts = 0

  constructor(channel: Channel, destination: Destination, backoff: Backoff) {
    this.channel = channel
    this.destination = destination
    this.backoff = backoff
  }

  get isIdle(): boolean {
    return this.timer === undefined && this.attempt === undefined && !this.isQueued
  }
}

/** The producer itself refused the destination, before anything was sent. */
class Refused extends Error {}

export class Dialler implements ChannelDialler {
  readonly #options: DiallerOptions
  readonly #targets = new Map<number, OutboundTarget>()
  readonly #queue: OutboundTarget[] = []
  /** By the schemes of their URLs. */
  readonly #pushes = new Map<string, PushDestination>()
  #own: readonly OwnPort[] = []
  #accept: (connection: IncomingConnection) => void = ({ link }) => link.destroy()
  #running = false
  #attempts = 0

  constructor(options: DiallerOptions) {
    this.#options = options
  }

  /** Has channels delivered by a destination without a session. */
  offer(push: PushDestination): void {
    for (const scheme of push.schemes) this.#pushes.set(scheme, push)
  }

  /** Throws StatusError INVALID_ARGUMENT. */
  destination(url: string): Destination {
    return parseDestination(url)
  }

  /** Whether the operator's list permits a URL; its name is not resolved. */
  permits(url: string): boolean {
    return this.#options.allow.permits(parseDestination(url))
  }

  /** Whether the operator's list permits requests to `scheme://host:port`; its name is not resolved. */
  permitsOrigin(origin: string): boolean {
    const parsed = parseRequestOrigin(origin)
    return parsed !== undefined && this.#options.allow.permits(parsed)
  }

  /**
   * The address to which a request to `scheme://host:port` may go now. Rejects with an error for people, which does not say why: why not
   * is in the log only, so that nobody finds out what names resolve to.
   */
  async addressFor(origin: string): Promise<string> {
    try {
      const parsed = parseRequestOrigin(origin)
      if (parsed === undefined || !this.#options.allow.permits(parsed))
        throw new Refused('`dial.allow` does not permit it')
      const [address] = await this.#permitted(parsed)
      return address as string
    } catch (error) {
      this.#options.log.info({ url: origin, detail: (error as Error).message }, 'a request is not made')
      throw new Refused(`the server may not connect to ${origin}, or does not find it`, { cause: error })
    }
  }

  verifierOf(secret: Uint8Array): Promise<ScramVerifier> {
    return secretVerifier(secret)
  }

  provesItself(url: string): boolean {
    const { scheme } = parseDestination(url)
    return this.#options.ca !== undefined && (scheme === 'tls' || scheme === 'wss')
  }

  /**
   * Takes a channel that has a URL, or gives one another proof: the last one given is also the one that is stored. `proof` is
   * undefined if nobody gets in, or if nobody has to.
   */
  watch(channel: Channel, proof: DialProof | undefined): void {
    const { clock, account, serverSecret } = this.#options
    const destination = parseDestination(channel.row.url)
    const owner = (): Account | undefined => account(channel.owner.userId)
    const now = (): number => clock.monotonicMs()
    const bearer = typeof proof === 'object' && 'bearer' in proof ? proof.bearer : undefined
    const isByCertificate = proof === 'certificate'
    const verifier = typeof proof === 'object' && 'storedKey' in proof ? proof : undefined
    const auth = isByCertificate ? NO_METHODS : verifier && channelAuth({ owner, verifier, serverSecret, now })
    const known = this.#targets.get(channel.id)
    if (known !== undefined) {
      Object.assign(known, { auth, isByCertificate, bearer })
      return
    }
    const target = new OutboundTarget(channel, destination, new Backoff(TO_PEER, this.#options.random))
    Object.assign(target, { auth, isByCertificate, bearer })
    this.#targets.set(channel.id, target)
    channel.onConnectionChange = () => this.#connectionChanged(target)
  }

  dial(channel: Channel): void {
    const target = this.#targets.get(channel.id)
    if (this.#running && target !== undefined) this.#enqueue(target)
  }

  /** Begins to connect. `own` are the producer's own ports, to which it never connects; `accept` takes the connections. */
  start(own: readonly OwnPort[], accept: (connection: IncomingConnection) => void): void {
    this.#own = own
    this.#accept = accept
    this.#running = true
    for (const target of this.#targets.values()) this.#enqueue(target)
  }

  /** Ends every attempt and every connection without a session; sessions are ended elsewhere. */
  stop(): void {
    this.#running = false
    for (const target of this.#targets.values()) {
      this.#cancel(target)
      target.push?.end()
    }
  }

  /** Puts another list in the place of the operator's, and ends connections to what it does not permit. */
  allow(patterns: readonly string[]): void {
    this.#options.allow.replace(patterns)
    this.review()
  }

  /** Ends connections that would not be permitted any more, after rules or accounts have changed. */
  review(): void {
    for (const target of this.#targets.values()) {
      const { channel, destination } = target
      if (!target.isAttached || channel.connection === undefined || this.#mayDial(channel, destination)) continue
      channel.connection.notice(NoticeCode.WITHDRAWN, channel.id, 'this destination may no longer be dialled')
      channel.connection.end()
    }
  }

  #mayDial({ owner }: Channel, destination: Destination): boolean {
    const { account, mayDial, allow } = this.#options
    return account(owner.userId) !== undefined && mayDial(owner, destination.url) && allow.permits(destination)
  }

  /** A connection took or left the channel, or the channel was deleted. */
  #connectionChanged(target: OutboundTarget): void {
    const { channel } = target
    const nowMs = this.#options.clock.monotonicMs()
    this.#cancel(target)
    if (target.isAttached && nowMs - target.attachedMs >= TO_PEER.steadyMs) target.backoff.reset()
    target.isAttached = target.willAttach && channel.connection !== undefined
    if (target.isAttached) target.attachedMs = nowMs
    target.willAttach = false
    if (channel.deleted) target.push?.end()
    if (channel.deleted) this.#targets.delete(channel.id)
    else this.#schedule(target)
  }

  #cancel(target: OutboundTarget): void {
    this.#options.clock.clear(target.timer)
    target.timer = undefined
    target.attempt?.abort(
      new Error('given up: another connection took the channel, it was deleted, or the producer stops'),
    )
  }

  /** Without `delayMs` it is the next pause. */
  #schedule(target: OutboundTarget, delayMs?: number): void {
    if (!this.#running || !target.isIdle || target.channel.deleted || target.channel.connection !== undefined) return
    target.timer = this.#options.clock.setTimeout(() => {
      target.timer = undefined
      this.#enqueue(target)
    }, delayMs ?? target.backoff.next())
  }

  /** Waits for the rate limit of the tenant, then for a free attempt. */
  #enqueue(target: OutboundTarget): void {
    if (!target.isIdle || target.channel.deleted || target.channel.connection !== undefined) return
    const rate = this.#options.rate(target.channel.owner.tenant)
    const { waitMs } = rate
    if (waitMs > 0) {
      this.#schedule(target, waitMs)
      return
    }
    rate.take()
    target.isQueued = true
    this.#queue.push(target)
    this.#startNext()
  }

  #startNext(): void {
    while (this.#attempts < MAX_ATTEMPTS) {
      const target = this.#queue.shift()
      if (target === undefined) return
      target.isQueued = false
      if (!this.#running || target.channel.deleted || target.channel.connection !== undefined) continue
      this.#attempts++
      void this.#attempt(target).finally(() => {
        this.#attempts--
        this.#schedule(target)
        this.#startNext()
      })
    }
  }

  /** Never rejects. */
  async #attempt(target: OutboundTarget): Promise<void> {
    const { clock, log, stored } = this.#options
    const { channel, destination } = target
    const attempt = new AbortController()
    const { signal } = attempt
    target.attempt = attempt
    const timer = clock.setTimeout(() => attempt.abort(new Error('the attempt took too long')), OPEN_MS)
    let address = ''
    log.debug({ channel: channel.id, url: destination.url }, 'dialling begins')
    try {
      address = await this.#addressFor(target, signal)
      this.#record(target, address, 'begun')
      await stored()
      signal.throwIfAborted()
      target.isRefused = false
      if (destination.isPush) await this.#openPush(target, address, signal)
      else await this.#openSession(target, address, signal, () => clock.clear(timer))
      // Where a certificate is the proof, the peer need not have done anything yet: the connection has to last.
      if (!target.isByCertificate) target.backoff.reset()
      this.#record(target, address, 'ok')
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      const isRefused = error instanceof Refused
      if (address !== '') this.#record(target, address, 'failed', detail)
      else if (isRefused && !target.isRefused) this.#record(target, address, 'refused', detail)
      if (!channel.deleted && channel.connection === undefined) target.isRefused = isRefused
      log.info({ channel: channel.id, url: destination.url, address, detail }, 'dialling failed')
    } finally {
      clock.clear(timer)
      target.attempt = undefined
    }
  }

  /** Checks everything and returns the address to connect to. Throws Refused, or an error of the resolver. */
  async #addressFor(target: OutboundTarget, signal: AbortSignal): Promise<string> {
    const { channel, destination } = target
    if (!this.#mayDial(channel, destination)) throw new Refused('the owner may no longer dial this destination')
    const addresses = await unlessAborted(signal, this.#permitted(destination))
    return addresses[target.attempts++ % addresses.length] as string
  }

  /** All addresses of a destination, of which there is at least one. Rejects if one of them may not be connected to. */
  async #permitted(destination: Destination | RequestOrigin): Promise<readonly string[]> {
    const { allow, resolve } = this.#options
    const addresses = destination.isAddress ? [destination.host] : await resolve(destination.host)
    for (const address of addresses) {
      if (!allow.permitsAddress(destination, address)) throw new Refused(`\`dial.allow\` does not permit ${address}`)
      if (isOwnListener(destination, address, this.#own))
        throw new Refused(`${address} is a listener of the producer itself`)
    }
    if (addresses.length === 0) throw new Error('the name has no address')
    return addresses
  }

  /** Resolves when the peer has logged in. Rejects if it does not. */
  async #openSession(target: OutboundTarget, address: string, signal: AbortSignal, onOpen: () => void): Promise<void> {
    const { connect, account } = this.#options
    const { channel, destination, isByCertificate } = target
    const auth = target.auth && untilAborted(target.auth, signal)
    if (auth === undefined) throw new Refused('the verifier of its secret is missing')
    if (isByCertificate && !this.provesItself(destination.url)) {
      throw new Refused('it has no secret, and `dial.ca` is not set: no certificate is enough')
    }
    const opened = await connect(destination, address, signal)
    signal.throwIfAborted()
    onOpen()
    const owner = isByCertificate ? account(channel.owner.userId) : undefined
    await new Promise<void>((resolve, reject) => {
      const { socket } = opened
      socket.once('close', () => reject(signal.aborted ? signal.reason : new Error('the peer did not log in')))
      opened.handOver((connection) =>
        this.#accept({
          ...connection,
          outbound: { auth, channel, destination: originOf(destination), owner },
          admitted: () => {
            connection.admitted?.()
            // From here on the connection is a session like any other and takes the channel.
            target.attempt = undefined
            target.willAttach = true
            resolve()
          },
        }),
      )
    })
  }

  async #openPush(target: OutboundTarget, address: string, signal: AbortSignal): Promise<void> {
    const { clock, ca, attach, detach } = this.#options
    const { channel } = target
    const { scheme, url, port } = target.destination
    const push = this.#pushes.get(scheme)
    if (push === undefined) throw new Refused(`this server delivers nothing by ${scheme}`)
    const connection = await push.open({
      channel,
      name: channel.row.name || String(channel.id),
      url,
      address,
      port,
      bearer: () => target.bearer,
      ca,
      left: (connection) => detach(channel, connection),
    })
    if (signal.aborted) {
      connection.end()
      throw signal.reason
    }
    target.attempt = undefined
    target.willAttach = true
    target.push = connection
    attach(channel, connection)
    target.timer = clock.setTimeout(() => connection.end(), RENEW_MS)
  }

  #record(target: OutboundTarget, address: string, outcome: string, detail = ''): void {
    const { channel, destination } = target
    const args = { channel: channel.id }
    const entry = { action: 'dial', identity: channel.owner, address, object: destination.url, args, outcome, detail }
    this.#options.audit.record(entry)
  }
}

/** scheme://host:port, as rules name it. */
function originOf({ url, path }: Destination): string {
  return url.slice(0, url.length - path.length)
}
