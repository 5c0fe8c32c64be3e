/**
 * Which readers of texts are written to: hundreds may have waited for the same one, and to write to all of them at once would take
 * every turn of the event loop, and as many buffers of the system. So few of a tenant have their turn at a time, each for a short
 * while: whoever reads slowly waits for its next one after that, and whoever takes nothing at all is disconnected.
 */
import type { Clock } from '../../../kernel/core/clock.ts'
import { Turns } from '../../turns.ts'

/** Readers of a tenant that are written to, those that wait for their first turn, and for how long. */
const OF_TENANT = { atOnce: 8, waiting: 1_000, patienceMs: 9_500 }
/** Eight readers that take what comes have texts of ten megabytes in about this time. */
const TURN_MS = 200
/** A reader that has not taken within this time what was written to it is disconnected. */
const STALL_MS = 30_000

export interface TextReaderOptions {
  readonly tenant: string
  /** Aborted when the reader has its text, or has gone. */
  readonly gone: AbortSignal
  /** Ends its connection. */
  readonly disconnect: () => void
}

/** A reader, as far as it has to wait. */
export interface TextReader {
  /** Whether it is written to now: waits for its turn if it has none. False if its first does not come in time, or it has gone. */
  inTurn(): Promise<boolean>
  /** It was written to, and calls `inTurn` when it has taken that. */
  wrote(): void
}

export class Readers {
  readonly #clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly #turns: Turns
  readonly #refused: () => void

  /** `refused`: a reader has not got its text, because no turn came or it took nothing. */
  constructor(clock: Pick<Clock, 'setTimeout' | 'clear'>, refused: () => void) {
    this.#clock = clock
    this.#turns = new Turns({ ...OF_TENANT, clock })
    this.#refused = refused
  }

  reader({ tenant, gone, disconnect }: TextReaderOptions): TextReader {
    const clock = this.#clock
    let [hasTurn, isBegun] = [false, false]
    let stalled: ReturnType<Clock['setTimeout']> | undefined
    const heard = (): void => clock.clear(stalled)
    gone.addEventListener('abort', heard)
    const turn = (begun: (isTurn: boolean) => void): void => {
      const act = (): Promise<true> =>
        new Promise((ended) => {
          hasTurn = isBegun = true
          const end = (): void => {
            hasTurn = false
            clock.clear(timer)
            gone.removeEventListener('abort', end)
            ended(true)
          }
          const timer = clock.setTimeout(end, TURN_MS)
          gone.addEventListener('abort', end)
          begun(true)
        })
      // Once it has begun, this is too late to say anything.
      void this.#turns.take(tenant, gone, act, { isBegun }).then(() => begun(false))
    }
    return {
      inTurn: async () => {
        heard()
        if (gone.aborted) return false
        const isTurn = hasTurn || (await new Promise(turn))
        if (!isTurn && !gone.aborted) this.#refused()
        return isTurn
      },
      wrote: () => {
        if (gone.aborted) return
        stalled = clock.setTimeout(() => {
          this.#refused()
          disconnect()
        }, STALL_MS)
      },
    }
  }
}
