/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Consumers to which the producer connects: a channel is defined with a URL, and the producer connects to that whenever the
 * channel has no connection [MON 14]. It has to prove that it knows the channel's secret, and learns nothing else from us. A
 * channel without a secret has only our certificate as a proof, and its connections only receive.
 */
import { LabelledReader } from '../protocol/monitor/labelled.ts'
import type { Gap, Notice, ValueMessage } from '../protocol/monitor/message.ts'
import { type ClientClock, realClock } from './clock.ts'
import { RESPONSE_DEADLINE_MS } from './connect.ts'
import type { ClientConnection, ConnectionListener } from './connection.ts'
import { Consumer } from './consumer.ts'
import type { PasswordCredentials } from './credentials.ts'
import { ConnectionError, isTransient } from './errors.ts'
import { type ClientSession, inTime, openSession, type SessionSource } from './session.ts'
import type { TlsOptions, Transport } from './transport.ts'
import type { Place } from './values.ts'

/** The number of connections that may be logging in at once. */
const MAX_LOGINS = 64
const MIN_SECRET_LENGTH = 16

export interface ListenOptions {
  /** `tcp://host:port` or `tls://host:port`; port 0 takes a free one. */
  readonly url: string
  /** The owner of the channels: `tenant/user`, or `user` for the tenant `default`. Goes with `secret`. */
  readonly identity?: string | undefined
  /**
   * The `secret` that the channel was defined with: at least 16 printable ASCII characters. Without it, only connections for
   * channels without a secret are taken, over `tls://`: their values can be received and committed, and nothing says who
   * sent them unless `tls.ca` is given.
   */
  readonly secret?: string | undefined
  /** For `tls://`: our certificate. With `ca`, producers have to show a certificate that it signed. */
  readonly tls?: TlsOptions | undefined
  readonly wrap?: readonly 'deflate'[] | undefined
  /** How far an earlier run has come on a channel. */
  readonly after?: ((channel: number) => Place | undefined) | undefined
  /** With `explicit` only the `commit` method commits. */
  readonly commit?: 'automatic' | 'explicit' | undefined
  /** Called for each connection that did not become a session: the other end did not know the secret, or disconnected. */
  readonly refused?: ((error: ConnectionError) => void) | undefined
  readonly deadlineMs?: number | undefined
  readonly clock?: ClientClock | undefined
}

/** An open listening socket. */
export interface InboundListener {
  readonly address: Address
  /** Accepts no more connections. */
  close(): Promise<void>
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** `accepted` is called with each connection and its remote address, `refused` with errors before there was a connection. */
export type OpenInboundListener = (
  url: string,
  options: Pick<ListenOptions, 'tls' | 'wrap'>,
  accepted: (transport: Transport, from: string) => void,
  refused: (error: ConnectionError) => void,
) => Promise<InboundListener>

/** The consumers to which producers connect. Later connections for the same channel go to the same consumer. */
export class Calls implements AsyncIterable<Consumer> {
  readonly #options: ListenOptions
  readonly #clock: ClientClock
  readonly #deadlineMs: number
  readonly #credentials: PasswordCredentials | undefined
  readonly #byChannel = new Map<number, InboundSessions>()
  readonly #consumers = new Set<Consumer>()
  readonly #abort = new AbortController()
  #listener: InboundListener | undefined
  #new: Consumer[] = []
  #logins = 0
  #wake: (() => void) | undefined

  /** Use `listen`. Throws RangeError for an invalid secret or none where there has to be one, and what `openListener` throws. */
  static async open(options: ListenOptions, openListener: OpenInboundListener): Promise<Calls> {
    const calls = new Calls(options)
    const refused = (error: ConnectionError) => options.refused?.(error)
    const accepted = (transport: Transport, from: string) => void calls.#accepted(transport, from)
    calls.#listener = await openListener(options.url, options, accepted, refused)
    return calls
  }

  private constructor(options: ListenOptions) {
    const { clock = realClock(), deadlineMs = RESPONSE_DEADLINE_MS } = options
    this.#options = options
    this.#clock = clock
    this.#deadlineMs = deadlineMs
    this.#credentials = credentialsOf(options)
  }

  /** The address that producers connect to. */
  get address(): Address {
    return (this.#listener as InboundListener).address
  }

  /** For one reader at a time; ends with `close`. Leaving the loop closes nothing. */
  [Symbol.asyncIterator](): AsyncIterator<Consumer, undefined> {
    return {
      next: async () => {
        while (this.#new.length === 0) {
          if (this.#abort.signal.aborted) return { done: true, value: undefined }
          await new Promise<void>((resolve) => {
            this.#wake = resolve
          })
        }
        return { done: false, value: this.#new.shift() as Consumer }
      },
    }
  }

  /** Accepts no more connections, and closes all consumers as their own `close` does. */
  async close(): Promise<void> {
    const closed = this.#listener?.close()
    this.#abort.abort()
    this.#wake?.()
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()))
    for (const sessions of this.#byChannel.values()) sessions.close()
    await closed
  }

  /** `await using calls = await listen(...)` closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  async #accepted(transport: Transport, from: string): Promise<void> {
    const { signal } = this.#abort
    if (signal.aborted || this.#logins === MAX_LOGINS) {
      transport.open({ data: () => {}, closed: () => {} })
      transport.close()
      return
    }
    this.#logins++
    const { url, wrap = [] } = this.#options
    const [clock, deadlineMs, proof] = [this.#clock, this.#deadlineMs, this.#credentials]
    const peer = `${url}${proof ? ` as ${proof.identity}` : ''}, connection from ${from}`
    try {
      const listener = new HeldMessages()
      const session = await inTime({ clock, signal, peer }, (signal) =>
        openSession(transport, {
          peer,
          clock,
          deadlineMs,
          proof,
          wrap,
          signal,
          listener,
          reader: new LabelledReader(),
        }),
      )
      session.connection.hold(true, false)
      this.#sessionsOf(session.channel).accept({ ...session, held: listener })
    } catch (error) {
      this.#refused(error)
    } finally {
      this.#logins--
    }
  }

  #sessionsOf(channel: number): InboundSessions {
    const known = this.#byChannel.get(channel)
    if (known) return known
    const sessions = new InboundSessions(this.#options.url)
    this.#byChannel.set(channel, sessions)
    void this.#open(channel, sessions)
    return sessions
  }

  /** Opens the consumer of a channel. A failure is final only if no other connection waits by then. */
  async #open(channel: number, sessions: InboundSessions): Promise<void> {
    const { after, commit } = this.#options
    const options = { channel, after: after?.(channel), commit, clock: this.#clock, deadlineMs: this.#deadlineMs }
    do {
      try {
        const consumer = await Consumer.open({ ...options, sessions }, this.#abort.signal)
        this.#consumers.add(consumer)
        consumer.on('closed', () => {
          this.#consumers.delete(consumer)
          this.#byChannel.delete(channel)
        })
        this.#new.push(consumer)
        this.#wake?.()
        return
      } catch (error) {
        this.#refused(error)
      }
    } while (sessions.isWaiting)
    this.#byChannel.delete(channel)
  }

  #refused(error: unknown): void {
    if (!this.#abort.signal.aborted) this.#options.refused?.(error as ConnectionError)
  }
}

/** Throws RangeError. Undefined if our certificate is the only proof. */
function credentialsOf({ url, identity, secret }: ListenOptions): PasswordCredentials | undefined {
  if (identity === undefined && secret === undefined) {
    if (/^tls:/i.test(url)) return undefined
    throw new RangeError('without `identity` and `secret` the URL must begin with tls://: the certificate is the proof')
  }
  if (identity === undefined || secret === undefined) throw new RangeError('`identity` and `secret` go together')
  // Other text can be spelled in bytes in several ways, and to the producer a secret is bytes.
  if (secret.length < MIN_SECRET_LENGTH || !/^[\x20-\x7e]*$/.test(secret)) {
    throw new RangeError(`a secret must have at least ${MIN_SECRET_LENGTH} printable ASCII characters`)
  }
  return { identity, password: secret, methods: ['scram-sha-256-plus', 'scram-sha-256'] }
}

/** A session that a producer has opened. `held` is the listener of its connection. */
interface InboundSession extends ClientSession {
  readonly held: HeldMessages
}

/** The sessions of one channel, each of which continues where the one before ended. */
class InboundSessions implements SessionSource {
  readonly url: string
  readonly hasSeveralAddresses = false
  #waiting: InboundSession | undefined
  #current: ClientConnection | undefined
  #wake: (() => void) | undefined

  constructor(url: string) {
    this.url = url
  }

  /** Whether a session waits to be taken. */
  get isWaiting(): boolean {
    return this.#waiting !== undefined && this.#waiting.connection.ended === undefined
  }

  /** Takes a new session. The producer has no more use for earlier ones. */
  accept(session: InboundSession): void {
    const again = new ConnectionError('CLOSED', `${this.url}: the producer has connected again`)
    this.#waiting?.connection.close(again)
    this.#waiting = session
    this.#current?.close(again)
    this.#wake?.()
  }

  async next(listener: ConnectionListener, signal?: AbortSignal): Promise<ClientSession> {
    while (!this.isWaiting) await this.#accepted(signal)
    const { held, ...session } = this.#waiting as InboundSession
    this.#waiting = undefined
    this.#current = session.connection
    held.handOver(listener)
    session.connection.hold(false, false)
    return { ...session, release: () => held.release() }
  }

  /** Waiting does no harm: it is the producer that connects, and it will not do so if it must not. */
  mayContinue(reason: ConnectionError): boolean {
    return isTransient(reason) || reason.code === 'SUPERSEDED' || reason.code === 'WITHDRAWN'
  }

  /** Closes the session that waits, which nobody is going to take. */
  close(): void {
    this.#waiting?.connection.close()
  }

  #accepted(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const abort = () => reject(signal?.reason)
      if (signal?.aborted) abort()
      signal?.addEventListener('abort', abort, { once: true })
      this.#wake = () => {
        signal?.removeEventListener('abort', abort)
        resolve()
      }
    })
  }
}

/** Holds back the values of the channel until `release`. Little of them is read until then. */
class HeldMessages implements ConnectionListener {
  #listener: ConnectionListener | undefined
  #held: (ValueMessage | Gap)[] | undefined = []

  handOver(listener: ConnectionListener): void {
    this.#listener = listener
  }

  release(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const message of held) this.#listener?.message(message)
  }

  message(message: ValueMessage | Gap): void {
    // A value without a transaction is the answer to the query for the names.
    const isAnswer = message.kind === 'value' && message.transaction === 0 && this.#listener
    if (this.#held && !isAnswer) this.#held.push(message)
    else this.#listener?.message(message)
  }

  notice(notice: Notice): void {
    this.#listener?.notice(notice)
  }

  closed(connection: ClientConnection, reason: ConnectionError, isOurs: boolean): void {
    this.#listener?.closed(connection, reason, isOurs)
  }
}
