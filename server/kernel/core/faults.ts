/**
 * Faults: exceptions that the server's own code should not have thrown. A fault costs what it belongs to (a session, a
 * connection of a channel, one value of a sensor) and never the process. Each is counted, and logged with its stack. What
 * belongs to nobody is not caught: it ends the server (server/start/main.ts).
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Clock } from './clock.ts'
import type { Logger } from './log.ts'

/** Stacks that are logged per owner in a minute: a sensor may fail for each of 100,000 values a second. */
const LOGGED_PER_MINUTE = 10
const MINUTE_MS = 60_000

/** What the scheduler of turns and the journal call back. Without `failed` a fault belongs to nobody. */
export interface FaultOwner {
  /** Takes what the callback has thrown. */
  failed?(error: unknown): void
}

interface LoggedFaults {
  sinceMs: number
  logged: number
  /** Faults since the last that was logged. */
  unlogged: number
}

export class Faults {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #log: Pick<Logger, 'error'> | undefined
  /** By owner. */
  readonly #logged = new Map<string, LoggedFaults>()
  #count = 0

  /** Without a log they are only counted. */
  constructor(clock: Pick<Clock, 'monotonicMs'>, log?: Pick<Logger, 'error'>) {
    this.#clock = clock
    this.#log = log
  }

  /** The number of faults since the start. */
  get count(): number {
    return this.#count
  }

  /** `owner` is what the fault costs, such as `session`: there are only a few. `details` are for the log. */
  report(owner: string, error: unknown, details: object = {}): void {
    this.#count++
    const now = this.#clock.monotonicMs()
    const faults = this.#logged.get(owner) ?? { sinceMs: now, logged: 0, unlogged: 0 }
    this.#logged.set(owner, faults)
    if (now - faults.sinceMs >= MINUTE_MS) {
      faults.sinceMs = now
      faults.logged = 0
    }
    if (faults.logged >= LOGGED_PER_MINUTE) {
      faults.unlogged++
      return
    }
    const { unlogged } = faults
    faults.logged++
    faults.unlogged = 0
    this.#log?.error({ err: error, owner, ...details, ...(unlogged > 0 && { unlogged }) }, `unexpected error: ${owner}`)
  }
}

/** Calls `act`, and passes to `failed` what it throws. */
export function guarded<A extends unknown[]>(
  act: (...args: A) => void,
  failed: (error: unknown) => void,
): (...args: A) => void {
  return (...args) => {
    try {
      act(...args)
    } catch (error) {
      failed(error)
    }
  }
}

/** Calls a callback of an owner, which takes what the callback throws. Throws if there is nobody to take it. */
export function runOwned(owner: FaultOwner, act: () => void): void {
  try {
    act()
  } catch (error) {
    if (owner.failed === undefined) throw error
    owner.failed(error)
  }
}

/**
 * Code in this process that is not the server's runs in a context of its owner. So an exception that nobody catches, in a timer
 * or on a socket of that code, costs only its owner.
 */
export class ForeignCode {
  /** What takes the exceptions of the code that runs now; undefined for code of the server. */
  readonly #failed = new AsyncLocalStorage<((error: unknown) => void) | undefined>()

  /** Runs code whose exceptions `failed` takes if nobody else does, now and later. What it throws now is thrown. */
  enter<T>(failed: (error: unknown) => void, act: () => T): T {
    return this.#failed.run(failed, act)
  }

  /** Runs code of the server that foreign code has called. */
  leave<T>(act: () => T): T {
    return this.#failed.run(undefined, act)
  }

  /** To be called for an exception that nobody has caught. Returns false if it belongs to the server. */
  take(error: unknown): boolean {
    const failed = this.#failed.getStore()
    failed?.(error)
    return failed !== undefined
  }
}
