/** Warnings about what may happen very often, such as refused connections: of each at most one a minute is logged. */
import type { Clock } from './clock.ts'
import type { Logger } from './log.ts'

const MINUTE_MS = 60_000

interface LastWarning {
  readonly atMs: number
  unlogged: number
}

export class RareWarnings {
  readonly #log: Pick<Logger, 'warn'>
  readonly #clock: Pick<Clock, 'monotonicMs'>
  /** By their messages. */
  readonly #last = new Map<string, LastWarning>()

  constructor(log: Pick<Logger, 'warn'>, clock: Pick<Clock, 'monotonicMs'>) {
    this.#log = log
    this.#clock = clock
  }

  /** `message` is one of a few; what differs from time to time is in `details`. */
  warn(message: string, details: object): void {
    const nowMs = this.#clock.monotonicMs()
    const last = this.#last.get(message)
    if (last !== undefined && nowMs - last.atMs < MINUTE_MS) {
      last.unlogged++
      return
    }
    const unlogged = last?.unlogged ?? 0
    this.#last.set(message, { atMs: nowMs, unlogged: 0 })
    this.#log.warn({ ...details, ...(unlogged > 0 && { unlogged }) }, message)
  }
}
