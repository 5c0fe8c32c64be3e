/**
 * The end of a turn of the event loop: first responses go out, then values, then what changed goes to the store.
 * A task is scheduled once per phase and turn; awaits and system calls are per turn, never per value.
 */
export type Phase = 'respond' | 'send' | 'store'

export interface Task {
  atTurnEnd(): void
}

export class TurnScheduler {
  readonly #tasks: Readonly<Record<Phase, Set<Task>>> = { respond: new Set(), send: new Set(), store: new Set() }
  #scheduled = false
  /** Counts the beginnings and ends of turns. */
  #number = 0

  schedule(phase: Phase, task: Task): void {
    this.#tasks[phase].add(task)
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
    for (const phase of ['respond', 'send', 'store'] as const) {
      const due = [...this.#tasks[phase]]
      this.#tasks[phase].clear()
      for (const task of due) task.atTurnEnd()
    }
  }
}
