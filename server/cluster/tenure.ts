/** The time in which a node leads: from the attempt to take over until the server on its store has ended. */
import { StorageError } from '../../storage/store.ts'
import type { Clock, Timer } from '../kernel/core/clock.ts'
import type { AliveRole } from './alive.ts'
import type { Leading } from './node-options.ts'

/** A server that cannot be stopped in this time keeps the node from going on as a follower. */
const STOP_MS = 20_000

export type TenureEnding =
  | { readonly why: 'deposed'; readonly detail: string }
  | { readonly why: 'hand-over' }
  | { readonly why: 'failed'; readonly error: Error }

export class Tenure {
  /** The wall clock, in ms, at which it began. */
  readonly since: number
  /** Fulfilled by the first call of `end`. */
  readonly ending: Promise<TenureEnding>
  role: Exclude<AliveRole, 'follower'> = 'starting'
  readonly #clock: Clock
  #end: (ending: TenureEnding) => void = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
    this.since = clock.wallMs()
    this.ending = new Promise((resolve) => {
      this.#end = resolve
    })
  }

  end(ending: TenureEnding): void {
    this.#end(ending)
  }

  /** Storing failed: because another node leads, or for good. */
  fail(error: Error): void {
    this.#end(isOneOf(error, 'DEPOSED') ? { why: 'deposed', detail: error.message } : { why: 'failed', error })
  }

  /** Ends the server. Rejects if that takes too long. */
  async close(leading: Leading, { why }: TenureEnding): Promise<void> {
    let timer: Timer | undefined
    const late = new Promise<never>((_, reject) => {
      timer = this.#clock.setTimeout(() => reject(new Error('the server could not be stopped')), STOP_MS)
    })
    try {
      await Promise.race([why === 'deposed' ? leading.depose() : leading.stop(), late])
    } finally {
      this.#clock.clear(timer)
    }
  }
}

/** Whether it is a StorageError with one of the codes. */
export function isOneOf(error: unknown, ...codes: readonly StorageError['code'][]): error is StorageError {
  return error instanceof StorageError && codes.includes(error.code)
}
