/** What the server has the thread of the history do once: the answer says how it went. */
import type { ThreadAnswer, ThreadRequest, ThreadTask } from './messages.ts'

interface Waiting {
  readonly resolve: (answer: ThreadAnswer) => void
  readonly reject: (error: Error) => void
}

export class ThreadRequests {
  readonly #send: (message: ThreadRequest) => boolean
  readonly #waiting = new Map<number, Waiting>()
  #last = 0

  /** `send` returns false if there is no thread. */
  constructor(send: (message: ThreadRequest) => boolean) {
    this.#send = send
  }

  /** Resolves when it is done. Rejects with an error for people. */
  ask(task: ThreadTask): Promise<ThreadAnswer> {
    const request = ++this.#last
    return new Promise((resolve, reject) => {
      this.#waiting.set(request, { resolve, reject })
      if (!this.#send({ kind: 'request', request, task })) this.take(gone(request))
    })
  }

  take(answer: ThreadAnswer): void {
    const { request, problem } = answer
    const waiting = this.#waiting.get(request)
    this.#waiting.delete(request)
    if (problem === '') waiting?.resolve(answer)
    else waiting?.reject(new Error(problem))
  }

  /** The thread is gone. */
  ended(): void {
    for (const request of [...this.#waiting.keys()]) this.take(gone(request))
  }
}

function gone(request: number): ThreadAnswer {
  return { kind: 'answer', request, count: 0, problem: GONE }
}

const GONE = 'the history is not there: it is off, or has failed, which the log of the server says'
