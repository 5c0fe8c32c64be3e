/**
 * Values of a feed to every consumer that has subscribed. What came in a turn leaves in one write to each, and a share of it
 * is stored. The feed waits while consumers or the disk do not keep up, since nothing is queued.
 */
import type { Socket } from 'node:net'
import { type ConsumerEvents, LimitConsumer } from './consumer.ts'
import { FrameRun } from './frame-run.ts'
import { ID_AT, type LimitJob } from './job.ts'
import { SmonValues } from './smon-values.ts'
import { LimitStorage } from './storage.ts'
import { valueFrame } from './value-frame.ts'

const MAX_UNSENT_BYTES = 4 << 20
const MAX_WAITING = 65_536
/** Written in one turn, to all consumers together: more would keep the event loop from everybody else for too long. */
const TURN_BYTES = 4 << 20

export class Delivery implements ConsumerEvents {
  readonly answer = undefined
  readonly #job: LimitJob
  readonly #storage: LimitStorage
  readonly #frames: FrameRun
  readonly #consumers = new Set<LimitConsumer>()
  /** Those that wait for OKs: of the next transaction, and of the one under way. */
  #committing = new Set<LimitConsumer>()
  #sealed = new Set<LimitConsumer>()
  #feed: Socket | undefined
  /** Values that came and were not passed on. */
  #waiting = 0
  #lastId = 0
  #begun = 0
  #stored = 0
  #isTurnScheduled = false

  constructor(job: LimitJob) {
    this.#job = job
    this.#frames = new FrameRun(valueFrame(job.frameBytes), ID_AT)
    this.#storage = new LimitStorage(job, { begins: () => this.#begins(), stored: () => this.#isStored() })
  }

  consumer(socket: Socket): void {
    const consumer = new LimitConsumer(socket, this)
    socket.on('close', () => this.#consumers.delete(consumer))
    socket.on('drain', () => this.#flow())
  }

  feed(socket: Socket): void {
    const values = new SmonValues(this.#job.definitions)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      this.#feed = socket
      this.#waiting += values.count(chunk)
      this.#schedule()
    })
  }

  subscribed(consumer: LimitConsumer): void {
    this.#consumers.add(consumer)
  }

  committed(consumer: LimitConsumer, count: number): void {
    this.#committing.add(consumer)
    this.#storage.committed(count)
    this.#schedule()
  }

  stored(): number {
    return this.#stored
  }

  #schedule(): void {
    if (this.#isTurnScheduled) return
    this.#isTurnScheduled = true
    setImmediate(() => this.#turn())
  }

  #turn(): void {
    this.#isTurnScheduled = false
    const { frameBytes, storedShare } = this.#job
    const bytesOfValue = frameBytes * Math.max(1, this.#consumers.size)
    const count = Math.min(this.#waiting, Math.max(1, Math.floor(TURN_BYTES / bytesOfValue)))
    if (count > 0) {
      this.#waiting -= count
      for (let added = 0; added < count; added++) this.#frames.add(++this.#lastId)
      const chunks = this.#frames.take()
      for (const consumer of this.#consumers) consumer.write(chunks)
      this.#storage.append(chunks, Math.round(count * bytesOfValue * storedShare))
    }
    this.#storage.flush()
    this.#flow()
    if (this.#waiting > 0) this.#schedule()
  }

  #flow(): void {
    if (this.#feed === undefined) return
    let unsent = 0
    for (const { socket } of this.#consumers) unsent = Math.max(unsent, socket.writableLength)
    if (unsent > MAX_UNSENT_BYTES || this.#storage.isFull || this.#waiting > MAX_WAITING) this.#feed.pause()
    else this.#feed.resume()
  }

  #begins(): void {
    this.#begun = this.#lastId
    for (const consumer of this.#committing) consumer.seal()
    const sealed = this.#committing
    this.#committing = this.#sealed
    this.#sealed = sealed
  }

  #isStored(): void {
    this.#stored = this.#begun
    for (const consumer of this.#sealed) consumer.release()
    this.#sealed.clear()
    this.#flow()
  }
}
