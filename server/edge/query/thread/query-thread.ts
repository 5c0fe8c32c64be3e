/**
 * Queries are answered in a thread of their own: it parses, evaluates and encodes, and the server does nothing for that but judge
 * the series that it hands over, and pass bytes on. All tenants share the thread and take turns there. It begins with the first
 * query, and ends when it has had nothing to do for a while.
 */
import { Readable } from 'node:stream'
import { Worker } from 'node:worker_threads'
import type { Clock, Timer } from '../../../kernel/core/clock.ts'
import { StatusError } from '../../../kernel/core/errors.ts'
import type { Piece } from '../../http/query/pieces.ts'
import type { MemoryPlace } from '../../memory-room.ts'
import type { AskedHistory, ReadableSeries } from '../asked-history.ts'
import { CrowdedQuery, QueryProblem } from '../problems.ts'
import type { AskedAnswer, FromQueries, HistoryCall, SentProblem, ToQueries } from './messages.ts'

/** Rules of alerts ask every minute, and so do pages. */
const IDLE_MS = 300_000
/** Columns are outside of the heap: it has labels, trees and texts. */
const RESOURCES = { maxOldGenerationSizeMb: 256, maxYoungGenerationSizeMb: 16 }
/** Of an answer, what may wait here: bytes, or lists of records or texts. */
const [AHEAD_BYTES, AHEAD_LISTS] = [128 << 10, 2]

/** Whose answer it is, and what it may use. */
export interface JobOptions {
  readonly history: AskedHistory
  /** Aborted when nobody wants the answer any more. */
  readonly ended: AbortSignal
  readonly memory?: Pick<MemoryPlace, 'refused' | 'took'> | undefined
}

/** An answer on its way. */
export interface BegunAnswer<P extends Piece = Uint8Array> {
  /** Of bytes, as HTTP names it; empty otherwise. */
  readonly type: string
  /** What the bytes are encoded in already; undefined: nothing. */
  readonly encoding: string | undefined
  /** Undefined if there is none. */
  readonly first: P | undefined
  /** With the first one. */
  readonly pieces: Readable
}

interface Job extends JobOptions {
  readonly resolve: (answer: BegunAnswer<never>) => void
  readonly reject: (error: Error) => void
  /** No longer listens to signals. */
  readonly forget: () => void
  readonly calls: Set<number>
  /** Undefined until there is an answer. */
  pieces: Readable | undefined
}

interface Call {
  readonly job: number
  readonly items: AsyncGenerator<unknown, void, void>
  readonly ended: AbortController
}

export class QueryThread {
  readonly #clock: Pick<Clock, 'setTimeout' | 'clear'>
  #worker: Worker | undefined
  readonly #jobs = new Map<number, Job>()
  readonly #calls = new Map<number, Call>()
  #lastJob = 0
  #timer: Timer | undefined
  #isClosed = false

  constructor(clock: Pick<Clock, 'setTimeout' | 'clear'>) {
    this.#clock = clock
  }

  /** Resolves when the answer begins. Rejects with QueryProblem, and with faults. */
  answer<P extends Piece = Uint8Array>(
    asked: Omit<AskedAnswer, 'elsewhere'>,
    options: JobOptions,
  ): Promise<BegunAnswer<P>> {
    if (this.#isClosed) return Promise.reject(new QueryProblem('unavailable', 'the server ends'))
    this.#clock.clear(this.#timer)
    const { elsewhere } = options.history
    const number = ++this.#lastJob
    return new Promise((resolve, reject) => {
      const end = (): void => this.#end(number, false)
      const crowd = (): void => this.#end(number, true)
      const { ended, memory } = options
      const forget = (): void => {
        ended.removeEventListener('abort', end)
        memory?.refused.removeEventListener('abort', crowd)
      }
      ended.addEventListener('abort', end)
      memory?.refused.addEventListener('abort', crowd)
      this.#jobs.set(number, { ...options, resolve, reject, forget, calls: new Set(), pieces: undefined })
      try {
        this.#worker ??= this.#start()
        const answer = { ...asked, elsewhere: elsewhere && { scope: elsewhere.scope } }
        this.#worker.postMessage({ kind: 'begin', job: number, answer } satisfies ToQueries)
      } catch (error) {
        // The system has no thread to give, for example.
        this.#leave(number)
        reject(new Error('the thread of queries cannot be used', { cause: error }))
        return
      }
      if (ended.aborted) end()
    })
  }

  /** Ends the thread, and what it does. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#stop(new QueryProblem('unavailable', 'the server ends'))
  }

  #start(): Worker {
    const worker = new Worker(new URL(import.meta.resolve('#query-worker')), {
      name: 'queries',
      resourceLimits: RESOURCES,
    })
    worker.unref()
    worker.on('message', (message: FromQueries) => {
      if (worker === this.#worker) this.#take(message)
    })
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const isMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      this.#failed(worker, isMemory ? tooMuchMemory() : new Error('the thread of queries failed', { cause: error }))
    })
    worker.on('exit', (code) => this.#failed(worker, new Error(`the thread of queries ended with exit code ${code}`)))
    return worker
  }

  #send(message: ToQueries, buffers: readonly ArrayBuffer[] = []): void {
    this.#worker?.postMessage(message, [...buffers])
  }

  #take(message: FromQueries): void {
    if (message.kind === 'call') this.#call(message.job, message.call, message.asked)
    else if (message.kind === 'next') void this.#deliver(message.call)
    else if (message.kind === 'return') this.#return(message.call)
    else this.#ofJob(message)
  }

  #ofJob(message: Extract<FromQueries, { readonly job: number }>): void {
    const { job: number } = message
    const job = this.#jobs.get(number)
    if (job === undefined) return
    if (message.kind === 'held') job.memory?.took(message.bytes)
    else if (message.kind === 'answer') this.#begin(number, job, message)
    else if (message.kind === 'piece') {
      if (message.piece === undefined) this.#leave(number)
      job.pieces?.push(message.piece ?? null)
    } else if (message.kind === 'problem') this.#fail(number, job, problemFrom(message.problem))
    else if (message.kind === 'failed')
      this.#fail(number, job, Object.assign(new Error(message.message), { stack: message.stack }))
  }

  #begin(number: number, job: Job, { type, encoding, first }: Extract<FromQueries, { readonly kind: 'answer' }>): void {
    const isList = Array.isArray(first)
    const pieces = new Readable({
      objectMode: isList,
      highWaterMark: isList ? AHEAD_LISTS : AHEAD_BYTES,
      read: () => this.#send({ kind: 'more', job: number }),
      destroy: (error, done) => {
        this.#end(number, false)
        done(error)
      },
    })
    job.pieces = pieces
    if (first !== undefined) pieces.push(first)
    job.resolve({ type, encoding, first: first as never, pieces })
  }

  /** Nobody wants it any more, or it holds too much. What is evaluated says itself that it has ended. */
  #end(number: number, isCrowded: boolean): void {
    const job = this.#jobs.get(number)
    if (job === undefined) return
    this.#send({ kind: 'end', job: number, isCrowded })
    if (job.pieces !== undefined) this.#leave(number)
  }

  #fail(number: number, { pieces, reject }: Job, error: Error): void {
    this.#leave(number)
    if (pieces === undefined) reject(error)
    else pieces.destroy(error)
  }

  /** The job is over. */
  #leave(number: number): void {
    const job = this.#jobs.get(number)
    if (job === undefined) return
    this.#jobs.delete(number)
    job.forget()
    for (const call of job.calls) this.#return(call)
    if (this.#jobs.size === 0 && !this.#isClosed)
      this.#timer = this.#clock.setTimeout(() => void this.#stop(new Error('the thread of queries ends')), IDLE_MS)
  }

  #call(number: number, call: number, asked: HistoryCall): void {
    const job = this.#jobs.get(number)
    if (job === undefined) {
      this.#send({ kind: 'item', call, outcome: { isOver: true } })
      return
    }
    const ended = new AbortController()
    job.calls.add(call)
    this.#calls.set(call, { job: number, items: itemsOf(job.history, asked, ended.signal), ended })
    void this.#deliver(call)
  }

  async #deliver(number: number): Promise<void> {
    const call = this.#calls.get(number)
    try {
      const next = await call?.items.next()
      if (next?.done === false) {
        this.#send({ kind: 'item', call: number, outcome: { item: next.value } }, buffersOf(next.value))
        return
      }
      this.#send({ kind: 'item', call: number, outcome: { isOver: true } })
    } catch (error) {
      const { message } = error instanceof Error ? error : new Error(String(error))
      const status = error instanceof StatusError ? error.status : undefined
      this.#send({ kind: 'item', call: number, outcome: { error: { status, message } } })
    }
    this.#forget(number)
  }

  #return(number: number): void {
    const call = this.#calls.get(number)
    call?.ended.abort()
    call?.items.return().catch(() => {})
    this.#forget(number)
  }

  #forget(number: number): void {
    const call = this.#calls.get(number)
    this.#calls.delete(number)
    if (call !== undefined) this.#jobs.get(call.job)?.calls.delete(number)
  }

  #failed(worker: Worker, error: Error): void {
    if (worker === this.#worker) void this.#stop(error)
  }

  async #stop(error: Error): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    for (const [number, job] of [...this.#jobs]) this.#fail(number, job, error)
    this.#clock.clear(this.#timer)
    await worker?.terminate()
  }
}

async function* itemsOf(
  history: AskedHistory,
  asked: HistoryCall,
  signal: AbortSignal,
): AsyncGenerator<unknown, void, void> {
  if (asked.kind === 'select') yield* history.select(asked.selection)
  else if (asked.kind === 'losses') yield await history.losses(asked.asked)
  else if (history.elsewhere !== undefined) {
    const { status, pieces } = await history.elsewhere.ask(asked.path, new URLSearchParams(asked.form), signal)
    yield status
    yield* pieces
  }
}

/** The memory of columns goes over to the thread; that of pieces is often a part of something else. */
function buffersOf(item: unknown): readonly ArrayBuffer[] {
  if (!Array.isArray(item)) return []
  const buffers = new Set<ArrayBuffer>()
  for (const { times, windows } of item as readonly Partial<ReadableSeries>[]) {
    for (const column of [times, windows?.ends])
      if (column !== undefined && column.byteLength > 0) buffers.add(column.buffer as ArrayBuffer)
  }
  return [...buffers]
}

function problemFrom({ type, message, range, isCrowded }: SentProblem): QueryProblem {
  return isCrowded ? new CrowdedQuery() : new QueryProblem(type, message, range)
}

function tooMuchMemory(): QueryProblem {
  return new QueryProblem('execution', 'queries need more memory than there is for them: ask for less')
}
