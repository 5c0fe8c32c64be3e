/**
 * Measurements under way for QUERY and GET: a deadline each, so that nobody waits for ever, and a bound per identity
 * [MON 8 Answers]. Most sensors answer at once and are never under way.
 */
import { VOID } from '../../protocol/monitor/value.ts'
import type { Clock } from '../clock.ts'
import { StatusError } from '../errors.ts'
import { measure } from './answer.ts'
import type { Measured } from './metric.ts'
import type { Selection } from './selection.ts'

const MAX_OUTSTANDING = 1024

/** Calls back once: with the value, or VOID at the deadline. */
export type Reading = (done: (measured: Measured) => void) => void

/** One reading of a sensor, shared by all who asked for the same while it was under way. */
interface Shared {
  readonly measured: Promise<Measured>
  /** Who has neither the value nor VOID. */
  waiting: number
}

export class Measurements {
  readonly #clock: Clock
  /** By user id, then by what is measured: a shared reading counts once. */
  readonly #outstanding = new Map<number, Map<string, Shared>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Begins to measure. Throws StatusError BUSY when too much of this identity is under way. */
  begin(selection: Selection): Reading {
    const { userId } = selection.identity
    const mine = this.#outstanding.get(userId)
    const key = selection.key
    const underWay = mine?.get(key)
    if (underWay !== undefined) return this.#waitFor(underWay, selection, key)
    if (mine !== undefined && mine.size >= MAX_OUTSTANDING) {
      throw new StatusError('BUSY', `${MAX_OUTSTANDING} measurements are under way; wait for some of them`)
    }
    const measured = measure(selection, this.#clock.microseconds())
    if (!(measured instanceof Promise)) return (done) => done(measured)
    const shared = { measured, waiting: 0 }
    if (mine === undefined) this.#outstanding.set(userId, new Map([[key, shared]]))
    else mine.set(key, shared)
    return this.#waitFor(shared, selection, key)
  }

  #waitFor(shared: Shared, { deadlineMs, identity }: Selection, key: string): Reading {
    shared.waiting++
    const first = new Promise<Measured>((resolve) => {
      const timer = this.#clock.setTimeout(() => {
        if (--shared.waiting === 0) this.#end(identity.userId, key, shared)
        resolve({ value: VOID, time: this.#clock.microseconds() })
      }, deadlineMs)
      void shared.measured.then((measured) => {
        this.#clock.clear(timer)
        this.#end(identity.userId, key, shared)
        resolve(measured)
      })
    })
    return (done) => void first.then(done)
  }

  /** It is there, or nobody waits for it any more. */
  #end(userId: number, key: string, shared: Shared): void {
    const mine = this.#outstanding.get(userId)
    if (mine?.get(key) !== shared) return
    mine.delete(key)
    if (mine.size === 0) this.#outstanding.delete(userId)
  }
}
