/**
 * Values that somebody hands over in one request, and waits for a yes: OTLP and remote write. Whether the store can take them
 * is judged before the first; what begins is taken whole. After the last, one mark is taken, and the yes is given when it is
 * durable: every value is on the disk, committed, or dropped by the limits of a channel and reported there. A consumer or a
 * tenant at its own limit makes nobody wait, and a channel that is not durable has no part in it.
 */
import type { Sensor } from '../metrics/metric.ts'
import type { Journal } from './journal.ts'
import type { QueueHost } from './queue-host.ts'

/** Why values cannot be taken, or were not all taken: whoever sent them has to send them again. */
export interface IntakeRefusal {
  readonly reason: 'full' | 'behind' | 'stopping'
  /** For people. */
  readonly detail: string
  /** Seconds after which it is worth another try. */
  readonly retryAfterS: number
}

/** The disk looks for room four times a second, but it is people who make it. */
const FULL: IntakeRefusal = { reason: 'full', detail: 'the disk is full', retryAfterS: 30 }
const BEHIND: IntakeRefusal = { reason: 'behind', detail: 'too much waits to be stored', retryAfterS: 1 }
const STOPPING: IntakeRefusal = { reason: 'stopping', detail: 'the server is stopping', retryAfterS: 5 }

export interface IntakeOptions {
  readonly host: Pick<QueueHost, 'refusing' | 'unstored' | 'refused'>
  readonly journal: Pick<Journal, 'whenStored'>
  readonly storage: {
    readonly state: 'ok' | 'full' | 'failed'
    /** Whether more than 16 MiB, or half of what the disk has room for, waits to be stored. */
    isBehind(unstored: number): boolean
  }
  /** When everybody who wants the new series of a sensor has the values that came so far; undefined if that is now. */
  readonly whenAsked: (sensor: Sensor) => Promise<void> | undefined
}

/** The values of one request, from before the first. */
export interface Taking {
  /**
   * To be called after the last value. Resolves with undefined when all of them are stored, committed or dropped by the limits
   * of a channel; on a full disk that may take until there is room. Resolves with a refusal if some were refused because the
   * disk became full meanwhile, or if the server ends before. Never rejects.
   */
  stored(): Promise<IntakeRefusal | undefined>
}

type Answer = (refusal: IntakeRefusal | undefined) => void

export class Intake {
  readonly #options: IntakeOptions
  /** Those who wait for a mark. */
  readonly #waiting = new Set<Answer>()
  #isStopping = false

  constructor(options: IntakeOptions) {
    this.#options = options
  }

  /** Why no values can be taken now; to be asked before the first. */
  get refusal(): IntakeRefusal | undefined {
    const { host, storage } = this.#options
    if (this.#isStopping || storage.state === 'failed') return STOPPING
    if (storage.state === 'full') return FULL
    // More than there is room for is soon less: that is no full disk yet.
    return host.refusing !== undefined || storage.isBehind(host.unstored) ? BEHIND : undefined
  }

  /** Whether a value that came now would be dropped. As long as the storage is only behind, it would not. */
  get isClosed(): boolean {
    const { host, storage } = this.#options
    return this.#isStopping || storage.state !== 'ok' || host.refusing !== undefined
  }

  /** The number of requests that wait for their mark. */
  get waiting(): number {
    return this.#waiting.size
  }

  /** Begins to take the values of a request, all of which are values of one sensor. */
  begin(sensor: Sensor): Taking {
    const { refused } = this.#options.host
    return { stored: () => this.#stored(sensor, refused) }
  }

  /** The server stops: nothing new is begun, and no new mark is taken, since values find no channels from now on. */
  stop(): void {
    this.#isStopping = true
  }

  /** Nothing more will be stored: nobody waits in vain. */
  end(): void {
    this.stop()
    for (const answer of this.#waiting) answer(STOPPING)
  }

  #stored(sensor: Sensor, refusedBefore: number): Promise<IntakeRefusal | undefined> {
    if (this.#isStopping) return Promise.resolve(STOPPING)
    return new Promise((resolve) => {
      const answer: Answer = (refusal) => {
        this.#waiting.delete(answer)
        resolve(refusal)
      }
      this.#waiting.add(answer)
      const { host, journal, whenAsked } = this.#options
      const mark = (): void => {
        // Values that others had refused meanwhile count too: it errs on the side of sending again.
        if (host.refused > refusedBefore) answer(this.refusal ?? BEHIND)
        else void journal.whenStored().then(() => answer(undefined))
      }
      // Until then some channels do not have the values of new series yet, and the mark would not be theirs.
      const asked = whenAsked(sensor)
      if (asked === undefined) mark()
      else void asked.then(() => (this.#isStopping ? answer(STOPPING) : mark()))
    })
  }
}
