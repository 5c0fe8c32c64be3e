/** What the thread of the history does once when it is asked: it drops series and imports samples, in slices, and copies its files. */
import type { HistoryStore } from '../../../storage/history/store.ts'
import { type ImportStore, importText } from './import.ts'
import type { ImportCounts, ImportedText, ThreadAnswer, ThreadRequest } from './messages.ts'

const ENDING = 'the server ends'
/** One slice of an import. */
const SLICE_MS = 10

export interface TaskStore extends ImportStore, Pick<HistoryStore, 'drop' | 'backUp'> {
  /** Whether `commit` waits for something else, and returns false until that is there. */
  readonly isWaiting?: boolean
}

export interface TaskServices {
  readonly post: (answer: ThreadAnswer) => void
  /** Has something done after the messages that are there. */
  readonly later: (act: () => void) => void
  /** Milliseconds since 1970. */
  readonly wallMs: () => number
}

export class ThreadTasks {
  readonly #store: TaskStore
  readonly #services: TaskServices
  #isClosed = false
  /** Settled when no copy is made any more; undefined if none was. */
  #copying: Promise<void> | undefined

  constructor(store: TaskStore, services: TaskServices) {
    this.#store = store
    this.#services = services
  }

  handle({ request, task }: ThreadRequest): void {
    const answer = (count: number, problem = '') => this.#services.post({ kind: 'answer', request, count, problem })
    if (task.kind === 'backUp') this.#backUp(task.directory, answer)
    else if (task.kind === 'import') this.#import(request, task)
    else {
      const { tenants, matchers } = task
      this.#drop(
        tenants.map((tenant) => this.#store.drop({ tenant, matchers })),
        answer,
      )
    }
  }

  /** To be called before the store is closed. Undefined if that may be at once. */
  close(): Promise<void> | undefined {
    this.#isClosed = true
    return this.#copying
  }

  /** `series`: how many were dropped before. */
  #drop(
    rest: readonly ReturnType<HistoryStore['drop']>[],
    answer: (count: number, problem?: string) => void,
    series = 0,
  ): void {
    const [steps, ...others] = rest
    if (steps === undefined) {
      answer(series)
      return
    }
    try {
      if (this.#isClosed) {
        steps.return(0)
        answer(0, ENDING)
        return
      }
      const step = steps.next()
      const [left, dropped] = step.done === true ? [others, series + step.value] : [rest, series]
      this.#services.later(() => this.#drop(left, answer, dropped))
    } catch (error) {
      answer(0, messageOf(error))
    }
  }

  #import(request: number, text: ImportedText): void {
    const steps = importText(this.#store, text, this.#services.wallMs())
    const answer = (problem: string, imported?: ImportCounts): void =>
      this.#services.post({ kind: 'answer', request, count: 0, problem, imported })
    const next = (): void => {
      if (this.#isClosed) {
        answer(ENDING)
        return
      }
      try {
        // What else waits is taken between any two slices.
        const until = performance.now() + SLICE_MS
        let step = steps.next()
        while (step.done !== true && performance.now() < until && this.#store.isWaiting !== true) step = steps.next()
        if (step.done === true) answer('', step.value)
        else this.#services.later(next)
      } catch (error) {
        answer(messageOf(error))
      }
    }
    next()
  }

  #backUp(directory: string, answer: (count: number, problem?: string) => void): void {
    const copy = this.#store.backUp(directory, { isCancelled: () => this.#isClosed })
    const copying = copy.then(answer, (error: unknown) => answer(0, messageOf(error)))
    this.#copying = Promise.all([this.#copying, copying]).then(() => {})
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
