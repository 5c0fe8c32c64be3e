/** Keeps one connection to an upstream: a lost one is made again, but not while something speaks against it. */
import { TO_PRODUCER } from '../../../protocol/kept/backoff.ts'
import { type ConnectionAttempt, KeptConnection } from '../../../protocol/kept/kept-connection.ts'
import { onAbort, pause } from '../../../protocol/kept/pause.ts'
import type { Capabilities } from '../../../protocol/monitor/capabilities.ts'
import type { Gap } from '../../../protocol/monitor/message.ts'
import type { Clock } from '../../kit/running.ts'
import { shownProblem, type UpstreamSession } from './session.ts'

/** How often it is asked whether something still speaks against a connection, beside whenever `look` is called. */
const LOOK_MS = 500

/** What is done with the connection. */
export interface LinkUser {
  /** Why there must be none now; empty if there may be. */
  readonly hindrance: string
  /** The connection is logged in. Rejects if it cannot be used. */
  begin(session: UpstreamSession): Promise<void>
  value(metric: number, bytes: Uint8Array, start: number, end: number, view: DataView): boolean
  gap(gap: Gap): void
  capabilities(caps: Capabilities): void
  /** The connection is there and in use (empty), or why not. */
  changed(problem: string): void
  /** Nothing more comes over the connection that there was. The next one is made when it settles; it must not reject. */
  over(): void | Promise<void>
}

export interface LinkOptions {
  readonly clock: Clock
  /** A connection that is logged in. Rejects if there is none, and with the reason of `signal`. */
  readonly open: (signal: AbortSignal) => Promise<UpstreamSession>
}

export class UpstreamLink {
  readonly #options: LinkOptions
  readonly #user: LinkUser
  readonly #kept: KeptConnection
  /** Ends the pause before the next look at what speaks against a connection. */
  #look: () => void = () => {}

  constructor(options: LinkOptions, user: LinkUser) {
    this.#options = options
    this.#user = user
    this.#kept = new KeptConnection({
      clock: options.clock,
      intervals: TO_PRODUCER,
      run: (attempt) => this.#connection(attempt),
      changed: (state) => {
        if (state.is === 'connected') user.changed('')
        if (state.is === 'waiting') user.changed(shownProblem(state.lost.message))
      },
    })
  }

  start(): void {
    this.#kept.start()
  }

  /** What spoke against a connection may be over: it is not waited for until that is noticed. */
  look(): void {
    this.#look()
  }

  /** Ends the connection that there is; the next one is made after a pause. */
  drop(reason: Error): void {
    this.#kept.drop(reason)
  }

  stop(): Promise<void> {
    return this.#kept.stop(new Error('the server ends'))
  }

  /** One connection, from its beginning to its end. Resolves with the reason of that. */
  async #connection({ signal, connected }: ConnectionAttempt): Promise<Error> {
    await this.#unhindered(signal)
    const user = this.#user
    let session: UpstreamSession | undefined
    const close = (): void => session?.close(signal.reason)
    signal.addEventListener('abort', close)
    try {
      session = await this.#options.open(signal)
      const ended = this.#receive(session)
      if (signal.aborted) close()
      await user.begin(session)
      connected()
      return await ended
    } catch (error) {
      session?.close()
      throw error
    } finally {
      signal.removeEventListener('abort', close)
      await user.over()
    }
  }

  /** Has what comes over the connection go to the user. Settles when it has ended, with the reason. */
  #receive(session: UpstreamSession): Promise<Error> {
    const user = this.#user
    return new Promise((ended) => {
      session.receive({
        value: (metric, bytes, start, end, view) => user.value(metric, bytes, start, end, view),
        gap: (gap) => user.gap(gap),
        capabilities: (caps) => user.capabilities(caps),
        ended,
      })
    })
  }

  /** Settles when nothing speaks against a connection any more. Rejects with the reason of `signal`. */
  async #unhindered(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    for (let { hindrance } = this.#user; hindrance !== ''; { hindrance } = this.#user) {
      this.#user.changed(hindrance)
      const looked = new AbortController()
      this.#look = () => looked.abort()
      // Not by `AbortSignal.any`: this may go on for as long as the server runs, and each would leave something at `signal`.
      const release = onAbort(signal, this.#look)
      await pause(this.#options.clock, LOOK_MS, looked.signal)
      release()
      signal.throwIfAborted()
    }
  }
}
