/**
 * Measurements that QUERY and GET wait for. Each has a deadline, and their number per identity is bounded [MON 8 Answers].
 * Most sensors answer at once, so that nothing is ever pending.
 */
import { VOID } from '../../../protocol/monitor/value.ts'
import type { Clock } from '../core/clock.ts'
import { StatusError } from '../core/errors.ts'
import { type Effect, isSteps, type Steps } from '../core/fair-work.ts'
import { type Measured, type MeasuringHub, measure } from './measure.ts'
import type { Measurement } from './metric.ts'
import type { Selection } from './selection.ts'

const MAX_OUTSTANDING = 1024
/** Steps of the measurement of one metric that are done at once. It has more if very many series have its name. */
const STEPS_AT_ONCE = 64
/** Everyone who waits for a shared measurement takes memory too. */
const MAX_WAITING = 65_536

/** Takes a measurement once. */
export interface MeasurementTaker {
  /** What was measured, or VOID at the deadline. */
  take(measured: Measurement): void
  /** False if nobody wants it any more: a list is not made then. */
  isWanted(): boolean
  /** Takes what is to be done when sensors that did not answer at once have done so. What it throws costs the taker. */
  later(steps: Effect): void
}

/** Passes a measurement on. A list is made only now, in steps, so that none waits in memory. */
export type AwaitedMeasurement = (taker: MeasurementTaker) => Steps<void> | undefined

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
  /** Measurements that are done in steps, above all lists. They are never shared: each shows what was there when its turn came. */
  continued: number
  waiting: number
}

export class PendingMeasurements {
  readonly #clock: Clock
  readonly #hub: MeasuringHub
  readonly #now = (): number => this.#clock.microseconds()
  /** By user id. */
  readonly #pending = new Map<number, Pending>()

  constructor(clock: Clock, hub: MeasuringHub) {
    this.#clock = clock
    this.#hub = hub
  }

  /** Begins a measurement. Throws StatusError BUSY if this identity has too many pending. */
  begin(selection: Selection): AwaitedMeasurement {
    const { userId } = selection.identity
    const mine = this.#pending.get(userId) ?? { shared: new Map<string, Shared>(), continued: 0, waiting: 0 }
    const existing = mine.shared.size === 0 || selection.answersList() ? undefined : mine.shared.get(selection.key)
    const isRoom = mine.shared.size + mine.continued < MAX_OUTSTANDING
    if (existing === undefined ? !isRoom : mine.waiting >= MAX_WAITING) {
      throw new StatusError('BUSY', 'too many measurements are pending; wait for some of them')
    }
    if (selection.answersList()) return this.#continued(() => this.#measure(selection), selection, mine)
    if (existing !== undefined) return this.#waitFor(existing, mine, selection)
    const steps = this.#measure(selection)
    let step = steps.next()
    for (let n = 1; step.done !== true && n < STEPS_AT_ONCE; n++) step = steps.next()
    if (step.done !== true) return this.#continued(() => steps, selection, mine)
    const measured = step.value as Measurement | Promise<Measurement>
    if (!(measured instanceof Promise)) {
      return (taker) => {
        taker.take(measured)
        return undefined
      }
    }
    const shared = { measured, waiting: 0 }
    mine.shared.set(selection.key, shared)
    this.#pending.set(userId, mine)
    return this.#waitFor(shared, mine, selection)
  }

  #measure(selection: Selection): Steps<Measured> {
    return measure(selection, this.#now, this.#hub)
  }

  #continued(steps: () => Steps<Measured>, selection: Selection, mine: Pending): AwaitedMeasurement {
    this.#pending.set(selection.identity.userId, mine)
    mine.continued++
    mine.waiting++
    return (taker) => this.#inSteps(steps, selection, mine, taker)
  }

  *#inSteps(steps: () => Steps<Measured>, selection: Selection, mine: Pending, taker: MeasurementTaker): Steps<void> {
    let isWaiting = false
    try {
      if (!taker.isWanted()) return
      const measured = yield* steps()
      if (measured instanceof Promise) {
        isWaiting = true
        void this.#untilDeadline(measured, selection).then((answered) => {
          taker.later(() => this.#answered(answered, selection, mine, taker))
        })
      } else {
        taker.take(measured)
      }
    } finally {
      if (!isWaiting) this.#leaveContinued(selection, mine)
    }
  }

  *#answered(
    answered: Measurement | Steps<Measurement>,
    selection: Selection,
    mine: Pending,
    taker: MeasurementTaker,
  ): Steps<void> {
    try {
      taker.take(isSteps<Measurement>(answered) ? yield* answered : answered)
    } finally {
      this.#leaveContinued(selection, mine)
    }
  }

  #leaveContinued({ identity }: Selection, mine: Pending): void {
    mine.continued--
    mine.waiting--
    if (mine.waiting === 0) this.#pending.delete(identity.userId)
  }

  #waitFor(shared: Shared, mine: Pending, selection: Selection): AwaitedMeasurement {
    shared.waiting++
    mine.waiting++
    const first = this.#untilDeadline(shared.measured, selection)
    void first.then(() => this.#leave(shared, mine, selection))
    return (taker) => {
      void first.then((measured) => taker.later(() => taker.take(measured)))
      return undefined
    }
  }

  /** What a sensor answers, or VOID when the deadline of the selection has passed. */
  #untilDeadline<T>(measured: Promise<T>, { deadlineMs }: Selection): Promise<T | Measurement> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimeout(() => {
        resolve({ value: VOID, time: this.#clock.microseconds() })
      }, deadlineMs)
      void measured.then((answered) => {
        this.#clock.clear(timer)
        resolve(answered)
      })
    })
  }

  /** One request has its answer. The last one removes the shared measurement, and the identity's entry. */
  #leave(shared: Shared, mine: Pending, { identity, key }: Selection): void {
    shared.waiting--
    mine.waiting--
    if (shared.waiting === 0) mine.shared.delete(key)
    if (mine.waiting === 0) this.#pending.delete(identity.userId)
  }
}
