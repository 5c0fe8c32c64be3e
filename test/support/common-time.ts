/** The time of servers in one process that are connected to each other: it goes on only when all of them are quiet. */
import { expect } from 'vitest'
import { FakeClock } from './fake-clock.ts'
import { Quiet } from './quiet.ts'

/** It ends what would never come, before the limit of the test, which could not say why; it is no measure of speed. */
const PATIENCE_MS = 45_000

export class CommonTime {
  /** That of all these servers. */
  readonly clock = new FakeClock()
  readonly #quiet = new Quiet()

  /** Lets time go on until something holds: to one timer after the other, when everything under way has come to its end. */
  async until(holds: () => void | Promise<void>): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS
    for (;;) {
      await this.#quiet.reached()
      try {
        return await holds()
      } catch (error) {
        if (performance.now() > endMs || !this.clock.advanceToNext()) throw error
      }
    }
  }

  /** The same until a promise is settled; gives what it does. */
  async over<T>(asked: Promise<T>): Promise<T> {
    let isOver = false
    const end = (): void => {
      isOver = true
    }
    asked.then(end, end)
    await this.until(() => expect(isOver, 'what was asked is answered').toBe(true))
    return asked
  }

  /** To be called once: the whole process is watched until then. */
  end(): void {
    this.#quiet.end()
  }
}
