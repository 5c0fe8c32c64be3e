/**
 * A clock that stands still until a test moves it. Timers run inside `advance`, at their exact moment, the earlier made
 * first where two are due together; promises settle only when the test itself awaits.
 */
import type { Clock, Timer } from '../../server/kernel/core/clock.ts'

interface Pending {
  readonly callback: () => void
  readonly everyMs: number | undefined
  dueMs: number
}

export class FakeClock implements Clock {
  readonly #pending = new Map<Timer, Pending>()
  #monotonicMs = 0
  #wallMs: number

  constructor(wallMs = 1_700_000_000_000) {
    this.#wallMs = wallMs
  }

  wallMs(): number {
    return this.#wallMs
  }

  monotonicMs(): number {
    return this.#monotonicMs
  }

  microseconds(): number {
    return Math.floor(this.#wallMs * 1_000)
  }

  setTimeout(callback: () => void, delayMs: number): Timer {
    return this.#add(callback, delayMs, undefined)
  }

  setInterval(callback: () => void, intervalMs: number): Timer {
    return this.#add(callback, intervalMs, Math.max(1, intervalMs))
  }

  clear(timer: Timer | undefined): void {
    timer?.cancel()
  }

  /** Both clocks go on by `ms`, and every timer that falls due runs, also those made on the way. */
  advance(ms: number): void {
    this.#runUntil(this.#monotonicMs + ms)
  }

  /** Both clocks go on to the moment at which the next timer is due; false if there is none. */
  advanceToNext(): boolean {
    const next = this.#next(Number.POSITIVE_INFINITY)
    if (next === undefined) return false
    // To that moment itself: adding up what is left until then could end just before it.
    this.#runUntil(next[1].dueMs)
    return true
  }

  /**
   * Both clocks go on by `ms` at once, as when the process was suspended: what fell due in the meantime runs at the end, in
   * the order in which it was due, and an interval once. Days cost no more than a second.
   */
  leap(ms: number): void {
    this.#moveTo(this.#monotonicMs + ms)
    const overdue = [...this.#pending].filter(([, { dueMs }]) => dueMs <= this.#monotonicMs)
    for (const [timer, pending] of overdue.sort(([, one], [, other]) => one.dueMs - other.dueMs)) {
      pending.dueMs = this.#monotonicMs
      this.#pending.delete(timer)
      this.#pending.set(timer, pending)
    }
    this.advance(0)
  }

  /** Somebody sets the wall clock: it alone moves, no timer runs. */
  jumpWall(ms: number): void {
    this.#wallMs += ms
  }

  /** How many timers have neither run nor been cleared: 0 when everything was tidied up. */
  get timers(): number {
    return this.#pending.size
  }

  #add(callback: () => void, delayMs: number, everyMs: number | undefined): Timer {
    const timer: Timer = { cancel: () => this.#pending.delete(timer) }
    this.#pending.set(timer, { callback, everyMs, dueMs: this.#monotonicMs + Math.max(1, delayMs) })
    return timer
  }

  #runUntil(endMs: number): void {
    for (let next = this.#next(endMs); next; next = this.#next(endMs)) {
      const [timer, pending] = next
      this.#moveTo(pending.dueMs)
      this.#pending.delete(timer)
      if (pending.everyMs !== undefined) {
        this.#pending.set(timer, pending)
        pending.dueMs += pending.everyMs
      }
      pending.callback()
    }
    this.#moveTo(endMs)
  }

  #next(endMs: number): [Timer, Pending] | undefined {
    let next: [Timer, Pending] | undefined
    for (const entry of this.#pending) {
      if (entry[1].dueMs <= endMs && (!next || entry[1].dueMs < next[1].dueMs)) next = entry
    }
    return next
  }

  #moveTo(monotonicMs: number): void {
    this.#wallMs += monotonicMs - this.#monotonicMs
    this.#monotonicMs = monotonicMs
  }
}
