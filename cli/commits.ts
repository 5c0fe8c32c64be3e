/** COMMITs what has been dealt with, one at a time and each through the latest: many values, few commands. */
import type { Consumer } from '../client/index.ts'

export class Commits {
  readonly #consumer: Pick<Consumer, 'commit'>
  #latest = 0
  #running: Promise<void> | undefined
  #failed: { readonly error: unknown } | undefined

  constructor(consumer: Pick<Consumer, 'commit'>) {
    this.#consumer = consumer
  }

  /** `transaction` and everything before it; 0 is nothing. Throws what an earlier COMMIT was refused with. */
  add(transaction: number): void {
    if (this.#failed) throw this.#failed.error
    this.#latest = Math.max(this.#latest, transaction)
    this.#running ??= this.#run()
  }

  /** Settles when everything is committed; rejects where something could not be. */
  async settled(): Promise<void> {
    await this.#running
    if (this.#failed) throw this.#failed.error
  }

  async #run(): Promise<void> {
    try {
      for (let done = 0; done < this.#latest; ) {
        const through = this.#latest
        await this.#consumer.commit(through, { through: true })
        done = through
      }
    } catch (error) {
      this.#failed = { error }
    } finally {
      this.#running = undefined
    }
  }
}
