/**
 * The end of a turn of the event loop: first responses go out, then values, then what changed goes to the store.
 * A task is scheduled once per phase and turn; awaits and system calls are per turn, never per value. What a task throws
 * costs its owner: the other tasks run on.
 */
import type { Clock } from '../core/clock.ts'
import { type FaultOwner, runOwned } from '../core/faults.ts'

export type Phase = 'respond' | 'send' | 'store'

export interface Task extends FaultOwner {
  atTurnEnd(): void
}

/** The time for sending in one turn. Connections that are left over are the first of the next turn. */
const SEND_MS = 5
/**
 * The same while feeds have more than a turn can process, which they use for 5 ms. What is not sent collects, so that each
 * write has some hundreds of values. With writes of 50 values a value cost three times as much.
 */
const SEND_MS_WHILE_FEEDING = 0.25

export class TurnScheduler {
  readonly #tasks: Readonly<Record<Phase, Set<Task>>> = { respond: new Set(), send: new Set(), store: new Set() }
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #isFeeding: () => boolean
  #scheduled = false
  /** Counts the beginnings and ends of turns. */
  #number = 0

  /** `isFeeding`: feeds have more to process than fits into this turn. */
  constructor(clock: Pick<Clock, 'monotonicMs'>, isFeeding: () => boolean = () => false) {
    this.#clock = clock
    this.#isFeeding = isFeeding
  }

  schedule(phase: Phase, task: Task): void {
    this.#tasks[phase].add(task)
    this.#scheduleEnd()
  }

  #scheduleEnd(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#number++
    setImmediate(() => this.run())
  }

  /** A clock that is read once per turn: reading it for each value costs a twentieth of what a value costs. */
  once(clock: () => number): () => number {
    let readIn = -1
    let read = 0
    return () => {
      if (readIn === this.#number && this.#scheduled) return read
      readIn = this.#number
      read = clock()
      return read
    }
  }

  /** Runs what is due. A task that is scheduled again for the same or an earlier phase waits for the next turn. */
  run(): void {
    this.#scheduled = false
    this.#number++
    this.#runAll('respond')
    this.#runAll('send', this.#clock.monotonicMs() + (this.#isFeeding() ? SEND_MS_WHILE_FEEDING : SEND_MS))
    this.#runAll('store')
    if (this.#tasks.send.size > 0) this.#scheduleEnd()
  }

  #runAll(phase: Phase, untilMs = Number.POSITIVE_INFINITY): void {
    const tasks = this.#tasks[phase]
    for (const task of [...tasks]) {
      tasks.delete(task)
      runOwned(task, () => task.atTurnEnd())
      if (untilMs !== Number.POSITIVE_INFINITY && this.#clock.monotonicMs() >= untilMs) return
    }
  }
}
