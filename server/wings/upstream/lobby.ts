/** Connections of one upstream that has announced itself: both sides are proven, and they wait until one is needed. */
import type { Clock } from '../../kit/running.ts'
import type { UpstreamSession } from './session.ts'

/** The upstream keeps two; what is more is left from one that it gave up. */
const MAX_WAITING = 2
/** After this time it is reported that none has come. */
const PATIENCE_MS = 10_000

export class Lobby {
  readonly #clock: Clock
  readonly #waiting: UpstreamSession[] = []
  /** Who takes the next ones. */
  readonly #takers: ((session: UpstreamSession) => void)[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(session: UpstreamSession): void {
    const taker = this.#takers.shift()
    if (taker !== undefined) {
      taker(session)
      return
    }
    this.#waiting.push(session)
    session.whenOver(() => this.#remove(session))
    if (this.#waiting.length > MAX_WAITING)
      this.#waiting[0]?.close(new Error('there is no use for so many connections'))
  }

  /** The connection that has waited longest, or the next one. Rejects with the reason of `signal`, or if none comes for long. */
  async next(signal: AbortSignal): Promise<UpstreamSession> {
    signal.throwIfAborted()
    return this.#waiting.shift() ?? this.#coming(signal)
  }

  close(): void {
    for (const session of [...this.#waiting]) session.close()
  }

  #coming(signal: AbortSignal): Promise<UpstreamSession> {
    return new Promise((resolve, reject) => {
      const over = (): void => {
        this.#clock.clear(timer)
        signal.removeEventListener('abort', refuse)
      }
      const take = (session: UpstreamSession): void => {
        over()
        resolve(session)
      }
      const refuse = (): void => {
        over()
        this.#takers.splice(this.#takers.indexOf(take), 1)
        reject(signal.aborted ? signal.reason : new Error('it does not announce itself'))
      }
      const timer = this.#clock.setTimeout(refuse, PATIENCE_MS)
      signal.addEventListener('abort', refuse)
      this.#takers.push(take)
    })
  }

  #remove(session: UpstreamSession): void {
    const index = this.#waiting.indexOf(session)
    if (index >= 0) this.#waiting.splice(index, 1)
  }
}
