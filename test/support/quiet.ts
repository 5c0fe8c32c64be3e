/**
 * Waits until this process is quiet: no stream and no promise has anything left to do, no immediate is pending, and nothing
 * that was handed to another thread, such as a key to derive or a file to read, is on its way back. Timers do not count, since
 * the clocks of tests are false; nor do sockets, worker threads and compression, which are to be awaited for themselves.
 *
 * It looks at the whole process, and so also sees what nobody has thought of. What only time can end does not hold it up: a
 * server that pauses for less than a millisecond looks at its clock in each turn until then.
 */
import { createHook } from 'node:async_hooks'
import { ENDLESS_TURNS, isImmediatePending, nextTurn } from './immediates.ts'
import { ownPatience } from './own-patience.ts'

/** Reading, writing, and closing of files. */
const FILE_WORK = /^(FSReq|CloseReq)/

/** Cryptographic work, as Node gives it to `init` before it is begun. */
interface Job {
  run(): unknown
}

export class Quiet {
  /** Cryptographic work by its id: Node does not list it among the active resources. */
  readonly #jobs = new Map<number, string>()
  // Without `destroy`, for which Node would follow every promise until it is collected.
  readonly #hook = createHook({
    init: (id, type, _trigger, job) => {
      if (isJob(type, job)) this.#watch(id, type, job)
    },
    after: (id) => void this.#jobs.delete(id),
  }).enable()

  /** Rejects if another thread never answers. */
  async reached(): Promise<void> {
    const isOver = ownPatience()
    for (let turn = 0; turn < ENDLESS_TURNS; turn++) {
      await nextTurn()
      const elsewhere = this.#elsewhere()
      if (elsewhere.length === 0 && !isImmediatePending()) return
      if (elsewhere.length > 0) turn = 0
      if (isOver()) throw new Error(`other threads never answer: ${elsewhere.join(', ')}`)
    }
  }

  end(): void {
    this.#hook.disable()
  }

  /** A job that is done at once, in this thread, returns an array. Nothing else tells them apart on every version of Node. */
  #watch(id: number, type: string, job: Job): void {
    const { run } = job
    job.run = () => {
      const result = run.call(job)
      const isDone = Array.isArray(result)
      if (!isDone) this.#jobs.set(id, type)
      return result
    }
  }

  /** What other threads are doing. */
  #elsewhere(): string[] {
    return [...this.#jobs.values(), ...process.getActiveResourcesInfo().filter((name) => FILE_WORK.test(name))]
  }
}

function isJob(type: string, resource: object): resource is Job {
  return type.endsWith('REQUEST') && 'run' in resource
}
