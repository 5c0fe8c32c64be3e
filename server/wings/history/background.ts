/** What a history does when nothing else is to be done: it merges, and removes what is too old, in slices. */
import { HistoryReadError, type HistoryStore } from '../../../storage/history/store.ts'
import { StorageError } from '../../kit/running.ts'

/** One slice; what else waits is done after each. */
const SLICE_MS = 10
/** After a failure: a merge that finds no room would fill the disk again and again, and others need room, too. */
const AGAIN_MS = 30_000

export interface BackgroundServices {
  readonly monotonicMs: () => number
  /** Has the next slice done after what waits. */
  readonly later: (act: () => void) => void
  /** `BackgroundWork.problem` has changed. */
  readonly changed: () => void
}

export class BackgroundWork {
  readonly #store: Pick<HistoryStore, 'work'>
  readonly #services: BackgroundServices
  #problem = ''
  #againMs = 0
  #isWorking = false
  #isOver = false

  constructor(store: Pick<HistoryStore, 'work'>, services: BackgroundServices) {
    this.#store = store
    this.#services = services
  }

  /** Why it has failed; empty if it has not. */
  get problem(): string {
    return this.#problem
  }

  /** To be called now and then. What it throws, nothing but a new thread can mend. */
  begin(): void {
    if (this.#isWorking || this.#services.monotonicMs() < this.#againMs) return
    this.#isWorking = true
    const next = (): void => {
      this.#isWorking = !this.#isOver && this.#slice()
      if (this.#isWorking) this.#services.later(next)
    }
    next()
  }

  /** The store is closed. */
  end(): void {
    this.#isOver = true
  }

  /** Returns whether there is more to do now. */
  #slice(): boolean {
    try {
      const hasMore = this.#store.work(SLICE_MS)
      // What failed before begins again, and may fail again.
      if (!hasMore) this.#changed('')
      return hasMore
    } catch (error) {
      this.#againMs = this.#services.monotonicMs() + AGAIN_MS
      this.#changed(passing(error))
      return false
    }
  }

  #changed(problem: string): void {
    if (problem === this.#problem) return
    this.#problem = problem
    this.#services.changed()
  }
}

/** What is wrong, if that may pass by itself; anything else is thrown. */
export function passing(error: unknown): string {
  if (error instanceof HistoryReadError) return error.message
  if (error instanceof StorageError && (error.code === 'FULL' || error.code === 'LOCKED')) return error.message
  throw error
}
