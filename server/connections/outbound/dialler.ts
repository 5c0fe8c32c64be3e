/**
 * Connections that the producer makes [MON 14]: for each dialled channel one attempt after the other, while nobody else has
 * the channel. Everything is judged again at each: the owner, its right, the operator's list, every address of the name.
 * An attempt is in the audit log before a packet of it leaves. Why one came to nothing is in the log and the audit log; the
 * owner of the channel sees `waiting` or `failed`, so that nobody learns from it what answers where.
 */
import type { Account } from '../../../auth/mechanism.ts'
import type { Identity } from '../../../auth/permissions.ts'
import type { ScramVerifier } from '../../../auth/scram/keys.ts'
import { NoticeCode } from '../../../protocol/monitor/constants.ts'
import type { AuditEntry } from '../../accounts/audit/log.ts'
import type { Channel } from '../../channels/channel.ts'
import type { ChannelConnection } from '../../channels/outbox.ts'
import type { ChannelDialler } from '../../commands/services.ts'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../core/log.ts'
import type { IncomingConnection } from '../../sessions/incoming-connection.ts'
import type { AllowList } from './allow-list.ts'
import type { Reached } from './connect.ts'
import { type Destination, parseDestination } from './destination.ts'
import { Dial } from './dial.ts'
import { channelDoor, secretVerifier, whileWanted } from './door.ts'
import { isOwn, type OwnPort, type Resolver } from './resolve.ts'

/** From the question for addresses to an open connection; the session gives the peer 10 s more. */
const OPEN_MS = 10_000
const MAX_ATTEMPTS = 64
/** A way without answers is looked for anew so often: names move, and rights are judged again. */
const RENEW_MS = 3_600_000

export interface DiallerOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly audit: { record(entry: AuditEntry): void }
  /** Everything changed so far is stored. */
  readonly stored: () => Promise<void>
  readonly allow: AllowList
  /** By the rules that are in force. */
  readonly mayDial: (identity: Identity, url: string) => boolean
  readonly account: (userId: number) => Account | undefined
  /** Of the owner's tenant: how long the next attempt has to wait, ms, and that it is made. */
  readonly rate: (tenant: string) => { readonly waitMs: number; take(): void }
  readonly resolve: Resolver
  readonly reach: (destination: Destination, address: string, signal: AbortSignal) => Promise<Reached>
  /** A way to send a channel's values without a session; `ended` is told once. */
  readonly oneWay: (channel: Channel, destination: Destination, address: string) => Promise<ChannelConnection>
  readonly attach: (channel: Channel, connection: ChannelConnection) => void
  readonly serverSecret: Uint8Array
  /** 0..1 */
  readonly random: () => number
}

/** Refused here, before anything was sent. */
class Refused extends Error {}

export class Dialler implements ChannelDialler {
  readonly #options: DiallerOptions
  readonly #dials = new Map<number, Dial>()
  readonly #queue: Dial[] = []
  #own: readonly OwnPort[] = []
  #accept: (arrival: IncomingConnection) => void = ({ link }) => link.destroy()
  #running = false
  #attempts = 0

  constructor(options: DiallerOptions) {
    this.#options = options
  }

  /** Where a URL leads. Throws StatusError INVALID_ARGUMENT. */
  destination(url: string): Destination {
    return parseDestination(url)
  }

  /** By the operator's list. No name is asked for. */
  permits(url: string): boolean {
    return this.#options.allow.permits(parseDestination(url))
  }

  verifierOf(secret: Uint8Array): Promise<ScramVerifier> {
    return secretVerifier(secret)
  }

  /** A channel with a URL is there. `verifier`: of its secret; undefined where it has none. */
  watch(channel: Channel, verifier: ScramVerifier | undefined): void {
    const { clock, account, serverSecret } = this.#options
    const destination = parseDestination(channel.row.url)
    const owner = (): Account | undefined => account(channel.owner.userId)
    const now = (): number => clock.monotonicMs()
    const door = verifier && channelDoor({ owner, verifier, serverSecret, now })
    const dial = new Dial(channel, destination, door)
    this.#dials.set(channel.id, dial)
    channel.onConnectionChange = () => this.#moved(dial)
    if (this.#running) this.#due(dial)
  }

  /** Begins to dial. `own`: the producer's own ports, which are never dialled; `accept` takes the connections. */
  start(own: readonly OwnPort[], accept: (arrival: IncomingConnection) => void): void {
    this.#own = own
    this.#accept = accept
    this.#running = true
    for (const dial of this.#dials.values()) this.#due(dial)
  }

  /** Ends every attempt, and what was made without a session; sessions end by themselves. */
  stop(): void {
    this.#running = false
    for (const dial of this.#dials.values()) {
      this.#rest(dial)
      dial.oneWay?.end()
    }
  }

  /** Rules or accounts have changed: connections that would not be made now end. */
  review(): void {
    for (const dial of this.#dials.values()) {
      const { channel, destination } = dial
      if (!dial.isOurs || channel.connection === undefined || this.#mayDial(channel, destination)) continue
      channel.connection.notice(NoticeCode.WITHDRAWN, channel.id, 'this destination may not be dialled any more')
      channel.connection.end()
    }
  }

  #mayDial({ owner }: Channel, destination: Destination): boolean {
    const { account, mayDial, allow } = this.#options
    return account(owner.userId) !== undefined && mayDial(owner, destination.url) && allow.permits(destination)
  }

  /** A connection took the channel or left it, or it is gone. */
  #moved(dial: Dial): void {
    const { channel } = dial
    this.#rest(dial)
    dial.isOurs = dial.isAboutToHave && channel.connection !== undefined
    dial.isAboutToHave = false
    if (channel.deleted) dial.oneWay?.end()
    if (channel.deleted) this.#dials.delete(channel.id)
    else this.#later(dial)
  }

  #rest(dial: Dial): void {
    this.#options.clock.clear(dial.timer)
    dial.timer = undefined
    dial.attempt?.abort(new Error('given up: the channel was taken or deleted, or the producer stops'))
  }

  #later(dial: Dial, delayMs = dial.backoffMs(this.#options.random())): void {
    if (!this.#running || !dial.isIdle || dial.channel.deleted || dial.channel.connection !== undefined) return
    dial.timer = this.#options.clock.setTimeout(() => {
      dial.timer = undefined
      this.#due(dial)
    }, delayMs)
  }

  /** Lets it wait for its tenant's rate, then for its turn. */
  #due(dial: Dial): void {
    if (!dial.isIdle || dial.channel.deleted || dial.channel.connection !== undefined) return
    const rate = this.#options.rate(dial.channel.owner.tenant)
    const { waitMs } = rate
    if (waitMs > 0) {
      this.#later(dial, waitMs)
      return
    }
    rate.take()
    dial.queued = true
    this.#queue.push(dial)
    this.#next()
  }

  #next(): void {
    while (this.#attempts < MAX_ATTEMPTS) {
      const dial = this.#queue.shift()
      if (dial === undefined) return
      dial.queued = false
      if (!this.#running || dial.channel.deleted || dial.channel.connection !== undefined) continue
      this.#attempts++
      void this.#attempt(dial).finally(() => {
        this.#attempts--
        this.#later(dial)
        this.#next()
      })
    }
  }

  /** Never rejects. */
  async #attempt(dial: Dial): Promise<void> {
    const { clock, log, stored } = this.#options
    const { channel, destination } = dial
    const attempt = new AbortController()
    const { signal } = attempt
    dial.attempt = attempt
    const timer = clock.setTimeout(() => attempt.abort(new Error('it took too long')), OPEN_MS)
    let address = ''
    log.debug({ channel: channel.id, url: destination.url }, 'dialling begins')
    try {
      address = await this.#addressFor(dial, signal)
      this.#record(dial, address, 'begun')
      await stored()
      signal.throwIfAborted()
      channel.refused = false
      if (destination.isOneWay) await this.#openOneWay(dial, address, signal)
      else await this.#openSession(dial, address, signal, () => clock.clear(timer))
      dial.failures = 0
      this.#record(dial, address, 'ok')
    } catch (error) {
      const detail = error instanceof Error ? error.message : String(error)
      const isRefused = error instanceof Refused
      if (address !== '') this.#record(dial, address, 'failed', detail)
      else if (isRefused && !channel.refused) this.#record(dial, address, 'refused', detail)
      if (!channel.deleted && channel.connection === undefined) {
        dial.failures++
        channel.refused = isRefused
      }
      log.info({ channel: channel.id, url: destination.url, address, detail }, 'dialling came to nothing')
    } finally {
      clock.clear(timer)
      dial.attempt = undefined
    }
  }

  /** Judges everything, and gives the address to go to. Throws Refused; or what the resolver throws. */
  async #addressFor(dial: Dial, signal: AbortSignal): Promise<string> {
    const { allow, resolve } = this.#options
    const { channel, destination } = dial
    if (!this.#mayDial(channel, destination)) throw new Refused('the owner may not dial this any more')
    const addresses = destination.isAddress
      ? [destination.host]
      : await unlessAborted(resolve(destination.host), signal)
    for (const address of addresses) {
      if (!allow.permitsAddress(destination, address)) throw new Refused(`\`dial.allow\` does not open ${address}`)
      if (isOwn(destination, address, this.#own)) throw new Refused(`${address} is a listener of the producer itself`)
    }
    const address = addresses[dial.attempts++ % addresses.length]
    if (address === undefined) throw new Error('the name has no address')
    return address
  }

  /** Until the peer has proven who it is. Rejects if it does not. */
  async #openSession(dial: Dial, address: string, signal: AbortSignal, opened: () => void): Promise<void> {
    const { reach } = this.#options
    const { channel, destination } = dial
    const door = dial.door && whileWanted(dial.door, signal)
    if (door === undefined) throw new Refused('the proof of its secret is lost')
    const reached = await reach(destination, address, signal)
    opened()
    await new Promise<void>((resolve, reject) => {
      const { socket } = reached
      socket.once('close', () => reject(signal.aborted ? signal.reason : new Error('it did not prove who it is')))
      reached.arrive((arrival) =>
        this.#accept({
          ...arrival,
          outbound: { auth: door, channel },
          admitted: () => {
            arrival.admitted?.()
            // From here on the connection is a session like any other, and has the channel.
            dial.attempt = undefined
            dial.isAboutToHave = true
            resolve()
          },
        }),
      )
    })
  }

  async #openOneWay(dial: Dial, address: string, signal: AbortSignal): Promise<void> {
    const { clock, oneWay, attach } = this.#options
    const connection = await oneWay(dial.channel, dial.destination, address)
    if (signal.aborted) {
      connection.end()
      throw signal.reason
    }
    dial.attempt = undefined
    dial.isAboutToHave = true
    dial.oneWay = connection
    attach(dial.channel, connection)
    dial.timer = clock.setTimeout(() => connection.end(), RENEW_MS)
  }

  #record(dial: Dial, address: string, outcome: string, detail = ''): void {
    const { channel, destination } = dial
    const args = { channel: channel.id }
    const entry = { action: 'dial', identity: channel.owner, address, object: destination.url, args, outcome, detail }
    this.#options.audit.record(entry)
  }
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
