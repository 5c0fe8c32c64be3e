/** The blocks of a database to the consumer that takes the channel, one after the other, and OKs for its COMMITs. */
import type { Socket } from 'node:net'
import { type ConsumerEvents, LimitConsumer } from './consumer.ts'
import type { LimitJob } from './job.ts'
import { LimitStorage } from './storage.ts'

const MAX_UNSENT_BYTES = 4 << 20

export class Drain implements ConsumerEvents {
  readonly answer = undefined
  readonly #storage: LimitStorage
  #consumer: LimitConsumer | undefined
  #nextBlock = 0
  #isReading = false

  constructor(job: LimitJob) {
    this.#storage = new LimitStorage(job, {
      begins: () => this.#consumer?.seal(),
      stored: () => this.#consumer?.release(),
    })
  }

  /** The database is there. */
  async filled(): Promise<void> {
    await this.#storage.read(this.#nextBlock)
  }

  consumer(socket: Socket): void {
    new LimitConsumer(socket, this)
    socket.on('drain', () => void this.#read())
  }

  subscribed(consumer: LimitConsumer): void {
    this.#consumer = consumer
    void this.#read()
  }

  committed(_: LimitConsumer, count: number): void {
    this.#storage.committed(count)
    // What has come in this turn is in the same transaction.
    setImmediate(() => this.#storage.flush())
  }

  stored(): number {
    return 0
  }

  async #read(): Promise<void> {
    const consumer = this.#consumer
    if (this.#isReading || consumer === undefined || consumer.socket.writableLength > MAX_UNSENT_BYTES) return
    this.#isReading = true
    const data = await this.#storage.read(this.#nextBlock++)
    this.#isReading = false
    if (data === undefined) return
    consumer.write([new Uint8Array(data)])
    void this.#read()
  }
}
