/**
 * Measurements under way for QUERY and GET: a deadline each, so that nobody waits for ever, and a bound per identity
 * [MON 8 Answers]. Most sensors answer at once and are never under way.
 */
import { VOID } from '../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import { measure } from './answer.ts'
import type { Fences } from './fences.ts'
import type { Measurement } from './metric.ts'
import type { Selection } from './selection.ts'

const MAX_OUTSTANDING = 1024
/** Who waits for a shared reading takes memory too. */
const MAX_WAITING = 65_536

/** Calls back once: with the value, or VOID at the deadline. */
export type AwaitedMeasurement = (done: (measured: Measurement) => void) => void

/** One reading of a sensor, shared by all who asked for the same while it was under way. */
interface Shared {
  readonly measured: Promise<Measurement>
  /** Who has neither the value nor VOID. */
  waiting: number
}

/** What one identity has asked for. */
interface Asked {
  /** By what is measured: a shared reading counts once. */
  readonly readings: Map<string, Shared>
  waiting: number
}

export class PendingMeasurements {
  readonly #clock: Clock
  readonly #fences: Pick<Fences, 'has'> | undefined
  /** By user id. */
  readonly #asked = new Map<number, Asked>()

  constructor(clock: Clock, fences?: Pick<Fences, 'has'>) {
    this.#clock = clock
    this.#fences = fences
  }

  /** Begins to measure. Throws StatusError BUSY when too much of this identity is under way. */
  begin(selection: Selection): AwaitedMeasurement {
    const { userId } = selection.identity
    const mine = this.#asked.get(userId) ?? { readings: new Map<string, Shared>(), waiting: 0 }
    const underWay = mine.readings.size === 0 ? undefined : mine.readings.get(selection.key)
    if (underWay === undefined ? mine.readings.size >= MAX_OUTSTANDING : mine.waiting >= MAX_WAITING) {
      throw new StatusError('BUSY', 'too many measurements are under way; wait for some of them')
    }
    if (underWay !== undefined) return this.#waitFor(underWay, mine, selection)
    const measured = measure(selection, this.#clock.microseconds(), this.#fences)
    if (!(measured instanceof Promise)) return (done) => done(measured)
    const shared = { measured, waiting: 0 }
    mine.readings.set(selection.key, shared)
    this.#asked.set(userId, mine)
    return this.#waitFor(shared, mine, selection)
  }

  #waitFor(shared: Shared, mine: Asked, selection: Selection): AwaitedMeasurement {
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
    return (done) => void first.then(done)
  }

  /** One waits no more; the last one of a reading, and of an identity, takes it along. */
  #leave(shared: Shared, mine: Asked, { identity, key }: Selection): void {
    shared.waiting--
    mine.waiting--
    if (shared.waiting === 0) mine.readings.delete(key)
    if (mine.waiting === 0) this.#asked.delete(identity.userId)
  }
}
