/** Who waits until everything is stored that was accepted before: a mark in the channel of each recording, which it passes in the end. */
import type { Recording } from './recording.ts'

type Marked = Pick<Recording, 'progress' | 'isOver'>

interface Waiting {
  readonly marks: ReadonlyMap<Marked, number>
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

export class Marks {
  readonly #waiting = new Set<Waiting>()

  /** Settles when the recordings have stored what they have accepted by now. Rejects when the history ends. */
  reached(recordings: readonly Marked[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const marks = new Map(recordings.map((recording) => [recording, recording.progress.accepted]))
      this.#waiting.add({ marks, resolve, reject })
      this.look()
    })
  }

  /** To be called when something was stored. */
  look(): void {
    for (const waiting of this.#waiting) {
      const isPassed = [...waiting.marks].every(([one, mark]) => one.isOver || one.progress.settled >= mark)
      if (!isPassed) continue
      this.#waiting.delete(waiting)
      waiting.resolve()
    }
  }

  ended(): void {
    for (const { reject } of this.#waiting) reject(new Error('the history ends'))
    this.#waiting.clear()
  }
}
