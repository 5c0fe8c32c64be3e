/** The time in which a node follows the log: until it is decided that it leads, or looks at the log again. */
import type { LogPlace } from '../../storage/replicated/place.ts'
import { Lag } from './lag.ts'
import type { Replica } from './replica.ts'

/** `again`: the newest log has to be looked for. */
export type FollowDecision = 'lead' | 'again'

export interface FollowingTimeOptions {
  readonly replica: Pick<Replica, 'follow'>
  /** The number of the newest log. */
  readonly log: number
  readonly now: () => number
  /** How exact the lag is. */
  readonly everyMs: number
  readonly onPlace: (place: LogPlace) => void
}

export class FollowingTime {
  /** The number of the newest log when it began. */
  readonly log: number
  readonly #options: FollowingTimeOptions
  readonly #lag: Lag
  readonly #decided: Promise<FollowDecision>
  #decide: (decision: FollowDecision) => void = () => {}
  #obstacle: string | undefined = 'it has not yet read the log'

  constructor(options: FollowingTimeOptions) {
    this.#options = options
    this.log = options.log
    this.#lag = new Lag(options.now, options.everyMs)
    this.#decided = new Promise((resolve) => {
      this.#decide = resolve
    })
  }

  /** Why the database cannot be led now, as a sentence. */
  get obstacle(): string | undefined {
    return this.#obstacle
  }

  get lagMs(): number {
    return this.#lag.ms
  }

  /** The lag, now that the log is known to end at `last`. */
  lagAt(last: number): number {
    this.#lag.endsAt(last)
    return this.#lag.ms
  }

  /** Only the first decision counts. */
  decide(decision: FollowDecision): void {
    this.#decide(decision)
  }

  /** Follows until something is decided; the database is closed then. Rejects as `Replica.follow` does. */
  async run(): Promise<FollowDecision> {
    const { replica, onPlace } = this.#options
    const stop = new AbortController()
    const events = {
      onPlace: (place: LogPlace, last: number) => {
        if (stop.signal.aborted) return
        this.#obstacle = undefined
        this.#lag.reached(place.sequence, last)
        onPlace(place)
      },
      onObstacle: (obstacle: string | undefined) => {
        this.#obstacle = obstacle
      },
    }
    const followed = replica.follow(events, stop.signal)
    try {
      return await Promise.race([this.#decided, followed.then((): FollowDecision => 'again')])
    } finally {
      stop.abort()
      await followed
    }
  }
}
