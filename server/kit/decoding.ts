/**
 * Bodies of requests become columns. Short ones are decoded in steps, where they are published; for longer ones there is a
 * thread, so that nobody waits while they are inflated and parsed, and so that what that needs of memory is bounded and given
 * back. Tenants take turns there, with one body each. The thread ends when it has had nothing to do for a while. Of all tenants
 * together, columns may take so much memory until they are published; what has no room yet waits, and tenants take turns at that.
 */
import { Worker } from 'node:worker_threads'
import { FairQueue, type QueuedJob } from '../../auth/fair-queue.ts'
import { ProtocolError, type ProtocolErrorCode } from '../../protocol/errors.ts'
import { snappyLength } from '../../protocol/prometheus/remote-write.ts'
import type { Clock, Timer } from '../kernel/core/clock.ts'
import type { FairWork, Steps } from '../kernel/core/fair-work.ts'
import { buffersOf, type Columns, MAX_COLUMNS_BYTES } from './columns.ts'
import { type Encoding, inflate, inflated } from './inflate.ts'
import { SeriesMemory } from './series-memory.ts'

/** A body of more bytes is for the thread. */
const MAX_SHORT = 64 << 10
/** Bodies that wait for the thread, of all tenants. */
const MAX_WAITING = 16
/** Short ones that wait for room. */
const MAX_SHORT_WAITING = 256
/** Of all columns that are not published yet. A body that is being decoded counts as the longest columns. */
const MAX_HELD = 4 * MAX_COLUMNS_BYTES
/** The thread always finds room when all columns of short bodies are published. */
const MAX_HELD_BY_SHORT = MAX_HELD - MAX_COLUMNS_BYTES
/** For how long a body waits for the thread, or for room. */
const PATIENCE_MS = 5_000
/** A thread that has not come to an end by then is ended. */
const MAX_MS = 10_000
const IDLE_MS = 10_000
/** What decoding may need: a body becomes many small objects before it is columns. */
const RESOURCES = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 }

/** What decodes the bodies of a door. It is a function of a module that the thread can load by its name. */
export interface Decoder<O> {
  /** A name of `imports` in package.json. */
  readonly module: string
  /** The function there that is `decode` here. */
  readonly name: string
  /** `memory` is the same for all bodies that it decodes in a thread. */
  readonly decode: (bytes: Uint8Array, options: O, memory: SeriesMemory<never>) => Steps<Columns>
  /** Bytes that a body may have to be decoded in steps, where that is less than for others. */
  readonly mostInSteps?: (options: O) => number
}

/** A body as it came. */
export interface EncodedBody {
  readonly tenant: string
  readonly bytes: Uint8Array
  readonly encoding: Encoding
  /** Bytes that it may have when it is inflated. */
  readonly most: number
  /** Whether nobody waits for it any more. */
  readonly isOver: () => boolean
}

/** What the thread gets. */
export interface DecodingTask {
  readonly module: string
  readonly name: string
  readonly bytes: Uint8Array
  readonly encoding: Encoding
  readonly most: number
  readonly options: unknown
}

/** What it gives back. */
export type DecodingAnswer =
  | { readonly columns: Columns }
  | { readonly refused: { readonly code: ProtocolErrorCode; readonly message: string; readonly offset: number } }

/** A place in a line. */
interface Waiting extends QueuedJob {
  /** To be called when its turn has come. */
  readonly begin: () => void
}

interface Job extends Waiting {
  readonly task: DecodingTask
  readonly settle: (outcome: Columns | Error) => void
}

export interface DecodingServices {
  readonly work: FairWork['run']
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
}

export class Decoding {
  readonly #services: DecodingServices
  /** What waits for the thread: tenants take turns. */
  readonly #waiting = new FairQueue<Job>(MAX_WAITING)
  /** What waits for room. */
  readonly #short = new FairQueue<Waiting>(MAX_SHORT_WAITING)
  /** Of decoders that work in steps, by their modules. */
  readonly #memories = new Map<string, SeriesMemory<never>>()
  /** Bytes of columns, and of what may become some. */
  #held = 0
  #current: Job | undefined
  #worker: Worker | undefined
  #timer: Timer | undefined
  #isClosed = false

  constructor(services: DecodingServices) {
    this.#services = services
  }

  /**
   * Decodes a body for `use`, whose columns count as held until it settles. Undefined if too much waits, this has waited for too
   * long, the thread was closed, or nobody waits for this any more. Rejects with ProtocolError; TOO_LONG if it takes too much
   * memory or time.
   */
  async decode<O, T>(
    body: EncodedBody,
    decoder: Decoder<O>,
    options: O,
    use: (columns: Columns) => T | Promise<T>,
  ): Promise<T | undefined> {
    const most = Math.min(MAX_SHORT, decoder.mostInSteps?.(options) ?? MAX_SHORT)
    const short = await shortBody(body, most)
    const columns = await (short === undefined
      ? this.#inThread(body, decoder, options)
      : this.#inSteps(body, decoder.decode(short, options, this.#memoryOf(decoder.module))))
    if (columns === undefined) return undefined
    try {
      return await use(columns)
    } finally {
      this.#hold(-bytesOf(columns))
    }
  }

  async #inSteps(body: EncodedBody, steps: Steps<Columns>): Promise<Columns | undefined> {
    if (!(await this.#room(body))) return undefined
    const { tenant, isOver } = body
    let columns: Columns | undefined
    try {
      columns = await this.#services.work({ tenant }, whileWanted(steps, isOver))
      return columns
    } finally {
      this.#hold((columns === undefined ? 0 : bytesOf(columns)) - MAX_COLUMNS_BYTES)
    }
  }

  #memoryOf(module: string): SeriesMemory<never> {
    const memory = this.#memories.get(module) ?? new SeriesMemory<never>()
    this.#memories.set(module, memory)
    return memory
  }

  /** Holds room for the columns of a short body, as soon as it has its turn; false if it has none. */
  #room(body: EncodedBody): boolean | Promise<boolean> {
    if (this.#isClosed) return false
    return new Promise((resolve) => {
      this.#short.add(this.#inLine(this.#short, body, resolve))
      this.#beginShort()
    })
  }

  /** A place in a line for a body, which leaves it when its turn comes, or when it has waited for too long. */
  #inLine(
    line: Pick<FairQueue<Job>, 'dropGone'>,
    { tenant, isOver }: EncodedBody,
    settle: (isTurn: boolean) => void,
  ): Waiting {
    const { clock } = this.#services
    let isLate = false
    const late = clock.setTimeout(() => {
      isLate = true
      line.dropGone()
    }, PATIENCE_MS)
    const end = (isTurn: boolean): void => {
      clock.clear(late)
      settle(isTurn)
    }
    return { lane: tenant, isGone: () => isLate || isOver(), begin: () => end(true), drop: () => end(false) }
  }

  #beginShort(): void {
    while (this.#hasRoom(MAX_HELD_BY_SHORT)) {
      const next = this.#short.take()
      if (next === undefined) return
      this.#held += MAX_COLUMNS_BYTES
      next.begin()
    }
  }

  #hasRoom(most: number): boolean {
    return this.#held + MAX_COLUMNS_BYTES <= most
  }

  /** Counts bytes that are held from now on, or no more. */
  #hold(bytes: number): void {
    this.#held += bytes
    if (this.#isClosed) return
    this.#beginShort()
    if (this.#current === undefined && this.#waiting.size > 0) this.#next()
  }

  /** Ends the thread, and what waits for it. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#end()
    this.#giveUp()
  }

  #inThread<O>(body: EncodedBody, { module, name }: Decoder<O>, options: O): Promise<Columns | undefined> {
    const { bytes, encoding, most } = body
    if (this.#isClosed) return Promise.resolve(undefined)
    return new Promise((resolve, reject) => {
      const place = this.#inLine(this.#waiting, body, (isTurn) => {
        if (!isTurn) resolve(undefined)
      })
      this.#waiting.add({
        ...place,
        task: { module, name, bytes: ownMemory(bytes), encoding, most, options },
        settle: (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)),
      })
      if (this.#current === undefined) this.#next()
    })
  }

  #next(): void {
    const { clock } = this.#services
    clock.clear(this.#timer)
    const job = this.#hasRoom(MAX_HELD) ? this.#waiting.take() : undefined
    this.#current = job
    if (job === undefined) {
      this.#timer = clock.setTimeout(() => void this.#end(), IDLE_MS)
      return
    }
    const { task } = job
    job.begin()
    this.#held += MAX_COLUMNS_BYTES
    try {
      this.#worker ??= this.#start()
      // Its memory goes over to the thread.
      this.#worker.postMessage(task, [task.bytes.buffer as ArrayBuffer])
    } catch (error) {
      // The system has no thread to give, for example: that costs this body, and the next one tries again.
      this.#ended(new Error('the decoding thread cannot be used', { cause: error }))
      return
    }
    this.#timer = clock.setTimeout(() => this.#failed(this.#worker, tooMuch('time')), MAX_MS)
  }

  #start(): Worker {
    const worker = new Worker(new URL(import.meta.resolve('#decoding-worker')), {
      name: 'decoding',
      resourceLimits: RESOURCES,
    })
    worker.unref()
    worker.on('message', (decoded: DecodingAnswer) => {
      if (worker !== this.#worker) return
      if ('columns' in decoded) return this.#ended(decoded.columns)
      const { code, message, offset } = decoded.refused
      this.#ended(new ProtocolError(code, message, offset))
    })
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      this.#failed(worker, isMemory ? tooMuch('memory') : new Error('the decoding thread failed', { cause: error }))
    })
    worker.on('exit', (code) => this.#failed(worker, new Error(`the decoding thread ended with exit code ${code}`)))
    return worker
  }

  /** What the thread was about has failed; the next job gets a new one. */
  #failed(worker: Worker | undefined, error: Error): void {
    if (worker === undefined || worker !== this.#worker) return
    void this.#end()
    this.#ended(error)
  }

  /** The job of the thread has an outcome; the next one begins, if there is room. */
  #ended(outcome: Columns | Error): void {
    const job = this.#current
    this.#current = undefined
    if (job === undefined) return
    job.settle(outcome)
    this.#hold((outcome instanceof Error ? 0 : bytesOf(outcome)) - MAX_COLUMNS_BYTES)
    if (!this.#isClosed && this.#current === undefined) this.#next()
  }

  async #end(): Promise<void> {
    this.#services.clock.clear(this.#timer)
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }

  #giveUp(): void {
    this.#current?.drop()
    this.#current = undefined
    for (const queue of [this.#waiting, this.#short]) {
      for (let job: QueuedJob | undefined = queue.take(); job !== undefined; job = queue.take()) job.drop()
    }
  }
}

function bytesOf(columns: Columns): number {
  return buffersOf(columns).reduce((bytes, { byteLength }) => bytes + byteLength, 0)
}

/** The bytes in memory that can be given away, as it holds nothing else. */
function ownMemory(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes)
}

function tooMuch(what: 'memory' | 'time'): ProtocolError {
  return new ProtocolError('TOO_LONG', `the request takes too much ${what} to be decoded: send less at a time`)
}

/** The body if it has `most` bytes when inflated. */
async function shortBody({ bytes, encoding }: EncodedBody, most: number): Promise<Uint8Array | undefined> {
  if (bytes.length > most) return undefined
  if (encoding === 'identity') return bytes
  if (encoding === 'snappy') return snappyLength(bytes) > most ? undefined : inflated(bytes, encoding, most)
  try {
    return await inflate(bytes, encoding, most)
  } catch (error) {
    if (error instanceof ProtocolError && error.code === 'TOO_LONG') return undefined
    throw error
  }
}

/** Steps that end with undefined once nobody wants their result. */
function* whileWanted<T>(steps: Steps<T>, isOver: () => boolean): Steps<T | undefined> {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
    if (isOver()) {
      steps.return(undefined as never)
      return undefined
    }
    yield
  }
}
