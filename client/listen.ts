/**
 * Consumers that are called: a channel is defined with a URL, and the producer connects to it whenever it is not connected
 * [MON 14]. What calls proves that it knows the channel's secret, and is shown nothing else of us.
 */
import { type ClientClock, realClock } from './clock.ts'
import { DEADLINE_MS } from './connect.ts'
import { Consumer } from './consumer.ts'
import type { PasswordCredentials } from './credentials.ts'
import type { ConnectionError } from './errors.ts'
import { Call, Line } from './line.ts'
import type { TlsOptions } from './security.ts'
import { inTime, openSession } from './session.ts'
import type { Transport } from './transport.ts'
import { putOn } from './wrap.ts'

/** Callers that may be logging in at once. */
const MAX_STRANGERS = 64
const MIN_SECRET = 16

export interface ListenOptions {
  /** `tcp://host:port` or `tls://host:port`; port 0 takes any that is free. */
  readonly url: string
  /** Whose channels these are: `tenant/user`, or `user` for the tenant `default`. */
  readonly identity: string
  /** The text that the channel was defined with as `secret`: 16 printable ASCII characters or more. */
  readonly secret: string
  /** For `tls://`: our certificate. With `ca`, callers have to have one that it signed. */
  readonly tls?: TlsOptions | undefined
  readonly wrap?: readonly 'deflate'[] | undefined
  /** The highest transaction id of a channel that an earlier run has handled: nothing up to it is handed out again. */
  readonly after?: ((channel: number) => number | undefined) | undefined
  /** `explicit`: nothing is committed but by `commit`. */
  readonly commit?: 'automatic' | 'explicit' | undefined
  /** Told of a call that came to nothing: whoever it was did not know the secret, or broke off. */
  readonly refused?: ((error: ConnectionError) => void) | undefined
  readonly deadlineMs?: number | undefined
  readonly clock?: ClientClock | undefined
}

export interface Door {
  readonly address: Address
  /** Takes no more calls. */
  close(): Promise<void>
}

export interface Address {
  readonly host: string
  readonly port: number
}

/** `called` has each connection, and where it comes from; `refused` what ended before it was one. */
export type OpenDoor = (
  url: string,
  options: Pick<ListenOptions, 'tls' | 'wrap'>,
  called: (transport: Transport, from: string) => void,
  refused: (error: ConnectionError) => void,
) => Promise<Door>

/** The consumers that are called, each once, at its first call; later calls for its channel go to the same one. */
export class Calls implements AsyncIterable<Consumer> {
  readonly #options: ListenOptions
  readonly #clock: ClientClock
  readonly #deadlineMs: number
  readonly #credentials: PasswordCredentials
  readonly #lines = new Map<number, Line>()
  readonly #consumers = new Set<Consumer>()
  readonly #abort = new AbortController()
  #door: Door | undefined
  #new: Consumer[] = []
  #strangers = 0
  #wake: (() => void) | undefined

  /** Use `listen`. Throws RangeError for a secret that cannot be one, and as `openDoor` does. */
  static async open(options: ListenOptions, openDoor: OpenDoor): Promise<Calls> {
    const calls = new Calls(options)
    const refused = (error: ConnectionError) => options.refused?.(error)
    const called = (transport: Transport, from: string) => void calls.#called(transport, from)
    calls.#door = await openDoor(options.url, options, called, refused)
    return calls
  }

  private constructor(options: ListenOptions) {
    const { identity, secret, clock = realClock(), deadlineMs = DEADLINE_MS } = options
    // Of other text there is more than one spelling in bytes, and a secret is bytes to the producer.
    if (secret.length < MIN_SECRET || !/^[\x20-\x7e]*$/.test(secret)) {
      throw new RangeError(`a secret has to have ${MIN_SECRET} printable ASCII characters or more`)
    }
    this.#options = options
    this.#clock = clock
    this.#deadlineMs = deadlineMs
    this.#credentials = { identity, password: secret, methods: ['scram-sha-256-plus', 'scram-sha-256'] }
  }

  /** Where producers can call. */
  get address(): Address {
    return (this.#door as Door).address
  }

  /** For one reader at a time; ends with `close`. To leave the loop ends nothing. */
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

  /** Takes no more calls, and closes all consumers as their own `close` does. */
  async close(): Promise<void> {
    const closed = this.#door?.close()
    this.#abort.abort()
    this.#wake?.()
    await Promise.all([...this.#consumers].map((consumer) => consumer.close()))
    for (const line of this.#lines.values()) line.close()
    await closed
  }

  async #called(transport: Transport, from: string): Promise<void> {
    const { signal } = this.#abort
    if (signal.aborted || this.#strangers === MAX_STRANGERS) {
      transport.open({ data: () => {}, closed: () => {} })
      transport.close()
      return
    }
    this.#strangers++
    const peer = `${this.#options.url} as ${this.#credentials.identity}, called from ${from}`
    try {
      const call = new Call()
      const session = await inTime({ clock: this.#clock, signal, peer }, (signal) =>
        openSession(transport, {
          peer,
          clock: this.#clock,
          deadlineMs: this.#deadlineMs,
          proof: this.#credentials,
          wrap: this.#options.wrap ?? [],
          putOn,
          signal,
          listener: call,
        }),
      )
      session.connection.hold(true, false)
      this.#lineOf(session.channel).ring(call.came(session))
    } catch (error) {
      this.#refused(error)
    } finally {
      this.#strangers--
    }
  }

  #lineOf(channel: number): Line {
    const known = this.#lines.get(channel)
    if (known) return known
    const line = new Line(this.#options.url)
    this.#lines.set(channel, line)
    void this.#answer(channel, line)
    return line
  }

  /** Until there is a consumer, or nobody calls any more. */
  async #answer(channel: number, line: Line): Promise<void> {
    const { after, commit } = this.#options
    const options = { channel, after: after?.(channel), commit, clock: this.#clock, deadlineMs: this.#deadlineMs }
    do {
      try {
        const consumer = await Consumer.open({ ...options, sessions: line }, this.#abort.signal)
        this.#consumers.add(consumer)
        consumer.on('closed', () => {
          this.#consumers.delete(consumer)
          this.#lines.delete(channel)
        })
        this.#new.push(consumer)
        this.#wake?.()
        return
      } catch (error) {
        this.#refused(error)
      }
    } while (line.isRinging)
    this.#lines.delete(channel)
  }

  #refused(error: unknown): void {
    if (!this.#abort.signal.aborted) this.#options.refused?.(error as ConnectionError)
  }
}
