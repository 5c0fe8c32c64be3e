/** Keeps one connection to an upstream: a lost one is made again, at growing intervals, and as long as something speaks against it, not. */
import { Backoff } from '../../../client/reconnect.ts'
import type { Capabilities } from '../../../protocol/monitor/capabilities.ts'
import type { Gap } from '../../../protocol/monitor/message.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import { shownProblem, type UpstreamReceiver, type UpstreamSession } from './session.ts'

/** How often it is asked whether something still speaks against a connection. */
const LOOK_MS = 500
/** A connection that was shorter does not count as a success. */
const LASTED_MS = 1_000

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
  readonly #backoff: Backoff
  readonly #abort = new AbortController()
  #session: UpstreamSession | undefined
  #running: Promise<void> | undefined

  constructor(options: LinkOptions, user: LinkUser) {
    this.#options = options
    this.#user = user
    this.#backoff = new Backoff(options.clock)
  }

  start(): void {
    this.#running ??= this.#run()
  }

  /** Ends the connection that there is; the next one is made after a pause. */
  drop(reason: Error): void {
    this.#session?.close(reason)
  }

  async stop(): Promise<void> {
    this.#abort.abort(new Error('the server ends'))
    this.#session?.close()
    await this.#running
  }

  async #run(): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#abort
    while (!signal.aborted) {
      const { hindrance } = this.#user
      if (hindrance !== '') {
        this.#user.changed(hindrance)
        await this.#wait(LOOK_MS)
        continue
      }
      const begunMs = clock.monotonicMs()
      const reason = await this.#connection().catch((error: Error) => error)
      if (signal.aborted) return
      this.#user.changed(shownProblem(reason.message))
      if (clock.monotonicMs() - begunMs >= LASTED_MS) this.#backoff.reset()
      await this.#backoff.pause(signal, () => {})
    }
  }

  /** One connection, from its beginning to its end. Resolves with the reason of that. */
  async #connection(): Promise<Error> {
    const user = this.#user
    let end: (reason: Error) => void = () => {}
    const ended = new Promise<Error>((resolve) => {
      end = resolve
    })
    const receiver: UpstreamReceiver = {
      value: (metric, bytes, start, end, view) => user.value(metric, bytes, start, end, view),
      gap: (gap) => user.gap(gap),
      capabilities: (caps) => user.capabilities(caps),
      ended: (reason) => end(reason),
    }
    try {
      const session = await this.#options.open(this.#abort.signal)
      this.#session = session
      session.receive(receiver)
      await user.begin(session)
      user.changed('')
      return await ended
    } catch (error) {
      this.#session?.close()
      return error instanceof Error ? error : new Error(String(error))
    } finally {
      this.#session = undefined
      await user.over()
    }
  }

  #wait(delayMs: number): Promise<void> {
    const { clock } = this.#options
    const { signal } = this.#abort
    return new Promise((resolve) => {
      const done = (): void => {
        clock.clear(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = clock.setTimeout(done, delayMs)
      signal.addEventListener('abort', done)
      if (signal.aborted) done()
    })
  }
}
