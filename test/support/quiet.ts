/**
 * Waits until this process is quiet: no stream and no promise has anything left to do, no immediate is pending, and nothing
 * that was handed to another thread, such as a key to derive or a file to read, is on its way back. Timers do not count, since
 * the clocks of tests are false; nor do sockets, worker threads and compression, which are to be awaited for themselves.
 *
 * It looks at the whole process, and so also sees what nobody has thought of. A file that leaves something running behind
 * would disturb all others: left-running.ts has that file fail.
 */
import { createHook } from 'node:async_hooks'
import { immediatesNow, isImmediatePending, nextTurn } from './immediates.ts'

/** It ends what would never come, before the limit of the test, which could not say why; it is no measure of speed. */
const PATIENCE_MS = 45_000

export class Quiet {
  /** Cryptographic work by its id: Node does not list it among the active resources. */
  readonly #jobs = new Map<number, { readonly type: string; readonly job: object }>()
  readonly #hook = createHook({
    init: (id, type, _trigger, job) => {
      if (type.endsWith('REQUEST')) this.#jobs.set(id, { type, job })
    },
    after: (id) => void this.#jobs.delete(id),
    destroy: (id) => void this.#jobs.delete(id),
  }).enable()

  /** Rejects if the process never is. */
  async reached(): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS
    do {
      await nextTurn()
      if (performance.now() > endMs) {
        const busy = [...this.#elsewhere(), ...(await immediatesNow())]
        throw new Error(`the process is never quiet:\n${busy.join('\n')}`)
      }
    } while (isImmediatePending() || this.#elsewhere().length > 0)
  }

  end(): void {
    this.#hook.disable()
  }

  /** What other threads are doing. */
  #elsewhere(): string[] {
    const jobs = [...this.#jobs.values()]
    return [
      // A job that is done at once, in this thread, has nobody to call.
      ...jobs.filter(({ job }) => 'ondone' in job).map(({ type }) => type),
      ...process.getActiveResourcesInfo().filter((name) => name.startsWith('FSReq')),
    ]
  }
}
