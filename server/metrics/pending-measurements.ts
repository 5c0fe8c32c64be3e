/**
 * Measurements that QUERY and GET wait for. Each has a deadline, and their number per identity is bounded [MON 8 Answers].
 * Most sensors answer at once, so that nothing is ever pending.
 */
import { VOID } from '../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import { type MeasuringHub, measure } from './measure.ts'
import type { Measurement } from './metric.ts'
import type { Selection } from './selection.ts'

const MAX_OUTSTANDING = 1024
/** Everyone who waits for a shared measurement takes memory too. */
const MAX_WAITING = 65_536

/**
 * Calls `done` once: with the measurement, or with VOID at the deadline. Throws what `done` throws, or returns a promise that
 * rejects with it.
 */
export type AwaitedMeasurement = (done: (measured: Measurement) => void) => void | Promise<void>

/** One measurement by a sensor, shared by all requests for the same that arrive while it is pending. */
interface Shared {
  readonly measured: Promise<Measurement>
  /** The number of requests that have neither the value nor VOID. */
  waiting: number
}

/** The pending requests of one identity. */
interface Pending {
  /** By the key of the selection; a shared measurement counts once. */
  readonly shared: Map<string, Shared>
  waiting: number
}

export class PendingMeasurements {
  readonly #clock: Clock
  readonly #hub: MeasuringHub
  /** By user id. */
  readonly #pending = new Map<number, Pending>()

  constructor(clock: Clock, hub: MeasuringHub) {
    this.#clock = clock
    this.#hub = hub
  }

  /** Begins a measurement. Throws StatusError BUSY if this identity has too many pending. */
  begin(selection: Selection): AwaitedMeasurement {
    const { userId } = selection.identity
    const mine = this.#pending.get(userId) ?? { shared: new Map<string, Shared>(), waiting: 0 }
    const existing = mine.shared.size === 0 ? undefined : mine.shared.get(selection.key)
    if (existing === undefined ? mine.shared.size >= MAX_OUTSTANDING : mine.waiting >= MAX_WAITING) {
      throw new StatusError('BUSY', 'too many measurements are pending; wait for some of them')
    }
    if (existing !== undefined) return this.#waitFor(existing, mine, selection)
    const measured = measure(selection, this.#clock.microseconds(), this.#hub)
    if (!(measured instanceof Promise)) return (done) => done(measured)
    const shared = { measured, waiting: 0 }
    mine.shared.set(selection.key, shared)
    this.#pending.set(userId, mine)
    return this.#waitFor(shared, mine, selection)
  }

  #waitFor(shared: Shared, mine: Pending, selection: Selection): AwaitedMeasurement {
    shared.waiting++
    mine.waiting++
    const first = new Promise<Measurement>((resolve) => {
      const timer = this.#clock.setTimeout(() => {
        resolve({ value: VOID, time: this.#clock.microseconds() })
      }, selection.deadlineMs)
      void shared.measured.then((measured) => {
        this.#clock.clear(timer)
        resolve(measured)
      })
    })
    void first.then(() => this.#leave(shared, mine, selection))
    return (done) => first.then(done)
  }

  /** One request has its answer. The last one removes the shared measurement, and the identity's entry. */
  #leave(shared: Shared, mine: Pending, { identity, key }: Selection): void {
    shared.waiting--
    mine.waiting--
    if (shared.waiting === 0) mine.shared.delete(key)
    if (mine.waiting === 0) this.#pending.delete(identity.userId)
  }
}
