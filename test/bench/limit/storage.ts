/**
 * The storage of a limit server: bytes and COMMITs gather while a transaction is under way, and are the next one, as in the
 * server itself. Two halves of shared memory take turns.
 */
import { Worker } from 'node:worker_threads'
import type { FromStorage, LimitJob, StorageJob, ToStorage } from './job.ts'

const HALF_BYTES = 32 << 20

export interface StorageEvents {
  /** A transaction begins: it stands for what has come until now. */
  begins(): void
  /** It is on the disk. */
  stored(): void
}

export class LimitStorage {
  readonly #worker: Worker
  readonly #halves = [0, 1].map(() => new Uint8Array(new SharedArrayBuffer(HALF_BYTES)))
  readonly #events: StorageEvents
  readonly #reads: ((data: ArrayBuffer | undefined) => void)[] = []
  #half = 0
  #length = 0
  #isWriting = false
  #isWanted = false
  #committed = 0

  constructor({ storage, directory, frameBytes, values }: LimitJob, events: StorageEvents) {
    this.#events = events
    const halves = this.#halves.map((half) => half.buffer as unknown as SharedArrayBuffer)
    this.#worker = new Worker(storage, { workerData: { directory, halves, frameBytes, values } satisfies StorageJob })
    this.#worker.on('message', (message: FromStorage) => {
      if (message.kind === 'stored') this.#stored()
      else this.#reads.shift()?.(message.data)
    })
  }

  /** No more should come for now. */
  get isFull(): boolean {
    return this.#length > HALF_BYTES / 2
  }

  /** Stores `length` bytes: those of the chunks, as often as it takes. */
  append(chunks: readonly Uint8Array[], length: number): void {
    this.#isWanted = true
    let left = Math.min(length, HALF_BYTES - this.#length)
    while (left > 0) {
      for (const chunk of chunks) {
        const part = chunk.length <= left ? chunk : chunk.subarray(0, left)
        this.#halves[this.#half]?.set(part, this.#length)
        this.#length += part.length
        left -= part.length
      }
    }
  }

  committed(count: number): void {
    this.#committed += count
    this.#isWanted = true
  }

  /** The end of a turn. */
  flush(): void {
    if (this.#isWriting || !this.#isWanted) return
    this.#isWanted = false
    this.#isWriting = true
    this.#events.begins()
    this.#post({ kind: 'store', half: this.#half, length: this.#length, committed: this.#committed })
    this.#half = 1 - this.#half
    this.#length = 0
  }

  read(block: number): Promise<ArrayBuffer | undefined> {
    this.#post({ kind: 'read', block })
    return new Promise((resolve) => this.#reads.push(resolve))
  }

  #stored(): void {
    this.#isWriting = false
    this.#events.stored()
    this.flush()
  }

  #post(message: ToStorage): void {
    this.#worker.postMessage(message)
  }
}
