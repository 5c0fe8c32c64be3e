/**
 * Waits until this process is quiet: nothing is scheduled, and nothing that was handed to another thread, such as a key to
 * derive or a file to read, is on its way back. Timers do not count, since the clocks of tests are false; nor do sockets,
 * worker threads and compression, which are to be awaited for themselves.
 */
import { createHook } from 'node:async_hooks'

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

  /** Resolves when no promise, no stream, no immediate and no other thread has anything left to do. Rejects if that never is. */
  async reached(): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS
    do {
      await new Promise((resolve) => setImmediate(resolve))
      if (performance.now() > endMs) throw new Error(`the process is never quiet: ${[...this.#pending()].join(', ')}`)
    } while (this.#pending().next().done === false)
  }

  end(): void {
    this.#hook.disable()
  }

  *#pending(): Generator<string> {
    yield* process.getActiveResourcesInfo().filter((name) => name === 'Immediate' || name.startsWith('FSReq'))
    // A job that is done at once, in this thread, has nobody to call.
    for (const { type, job } of this.#jobs.values()) if ('ondone' in job) yield type
  }
}
