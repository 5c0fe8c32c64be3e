/**
 * The time of servers in one process that are connected to each other: it goes on only when all of them are quiet. Nothing says
 * what is on its way between sockets; where servers are connected by those, time goes on in small steps, with a pause before
 * each, and so has to be asked for (`overSockets`).
 */
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import { FakeClock } from './fake-clock.ts'
import { ownPatience } from './own-patience.ts'
import { Quiet } from './quiet.ts'

/** Over sockets: one step of the time of servers, and the pause before it. */
const STEP_MS = 100
const PAUSE_MS = 10
const STEPS = 4_500

export class CommonTime {
  /** That of all these servers. */
  readonly clock = new FakeClock()
  readonly #quiet = new Quiet()
  readonly #overSockets: boolean

  constructor({ overSockets = false } = {}) {
    this.#overSockets = overSockets
  }

  /** Lets time go on until something holds, each time when everything under way has come to its end. */
  async until(holds: () => void | Promise<void>): Promise<void> {
    const isOver = ownPatience()
    for (let step = 1; ; step++) {
      await this.#quiet.reached()
      try {
        return await holds()
      } catch (error) {
        if (isOver() || (this.#overSockets && step === STEPS) || !(await this.#goOn())) throw error
      }
    }
  }

  /** False if no server waits for anything. */
  async #goOn(): Promise<boolean> {
    if (!this.#overSockets) return this.clock.advanceToNext()
    await pause(PAUSE_MS)
    await this.#quiet.reached()
    this.clock.advance(STEP_MS)
    return true
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
