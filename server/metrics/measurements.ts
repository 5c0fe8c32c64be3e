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

export class Measurements {
  readonly #clock: Clock
  /** By user id: what is under way, by selection, so that a shared reading counts once. */
  readonly #outstanding = new Map<number, Map<string, Promise<Measured>>>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Begins to measure. Throws StatusError BUSY when too much of this identity is under way. */
  begin(selection: Selection): Reading {
    const { userId } = selection.identity
    const shared = this.#outstanding.get(userId)
    const key = `${selection.name} ${selection.args.map(({ name, value }) => `${name}=${String(value)}`).join(' ')}`
    const underWay = shared?.get(key)
    if (underWay !== undefined) return this.#waitFor(underWay, selection.deadlineMs)
    if (shared !== undefined && shared.size >= MAX_OUTSTANDING) {
      throw new StatusError('BUSY', `${MAX_OUTSTANDING} measurements are under way; wait for some of them`)
    }
    const measured = measure(selection, this.#clock.microseconds())
    if (!(measured instanceof Promise)) return (done) => done(measured)
    const mine = shared ?? new Map<string, Promise<Measured>>()
    this.#outstanding.set(userId, mine)
    mine.set(key, measured)
    const end = (): void => {
      mine.delete(key)
      if (mine.size === 0) this.#outstanding.delete(userId)
    }
    const reading = this.#waitFor(measured, selection.deadlineMs, end)
    void measured.then(end)
    return reading
  }

  #waitFor(measured: Promise<Measured>, deadlineMs: number, late?: () => void): Reading {
    const first = new Promise<Measured>((resolve) => {
      const timer = this.#clock.setTimeout(() => {
        late?.()
        resolve({ value: VOID, time: this.#clock.microseconds() })
      }, deadlineMs)
      void measured.then((value) => {
        this.#clock.clear(timer)
        resolve(value)
      })
    })
    return (done) => void first.then(done)
  }
}
