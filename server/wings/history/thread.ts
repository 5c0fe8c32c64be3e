/** The thread of the history, as the server has it. It ends when it fails, and is never made again by itself. */
import { Worker } from 'node:worker_threads'
import type { FromThread, ThreadOptions, ToThread } from './messages.ts'

/** A page under way, a commit and the caches of SQLite. */
const RESOURCES = { maxYoungGenerationSizeMb: 16 }

export interface ThreadListener {
  readonly message: (message: FromThread) => void
  /** It is gone, and was not closed. */
  readonly failed: (error: Error) => void
}

export class HistoryThread {
  readonly #worker: Worker
  readonly #listener: ThreadListener
  /** Settled when it is gone. */
  readonly #ended: Promise<void>
  #isOver = false

  constructor(options: ThreadOptions, listener: ThreadListener) {
    this.#listener = listener
    this.#worker = new Worker(
      new URL(import.meta.resolve(options.shared === undefined ? '#history-worker' : '#shared-history-worker')),
      {
        name: 'history',
        workerData: options,
        resourceLimits: RESOURCES,
      },
    )
    this.#worker.on('message', (message: FromThread) => {
      if (!this.#isOver) listener.message(message)
    })
    this.#worker.on('error', (error: Error) => this.#failed(error))
    this.#ended = new Promise((resolve) => {
      this.#worker.on('exit', (code) => {
        resolve()
        this.#failed(new Error(`the thread of the history ended with exit code ${code}`))
      })
    })
  }

  /** Does nothing if it is gone. */
  send(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  /** The memory of the bytes goes over to the thread. */
  sendValues(connection: number, bytes: Uint8Array<ArrayBuffer>): void {
    const message: ToThread = { kind: 'values', connection, bytes }
    this.#worker.postMessage(message, [bytes.buffer])
  }

  /** Stores what was taken, and ends. Never rejects. */
  async close(): Promise<void> {
    this.#isOver = true
    this.#worker.postMessage({ kind: 'close' } satisfies ToThread)
    await this.#ended
  }

  #failed(error: Error): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#listener.failed(error)
  }
}
