/** The jobs of the thread of queries: each asks the history of the server, and gives its answer in pieces as these are wanted. */
import type { Clock } from '../../../kernel/core/clock.ts'
import type { FairWork, Steps } from '../../../kernel/core/fair-work.ts'
import { answers } from '../../http/query/api.ts'
import { givenIn } from '../../http/query/parameters.ts'
import { nextPiece, type Piece, type PiecedAnswer, piecesOf } from '../../http/query/pieces.ts'
import { CrowdedQuery, problemOf, QueryProblem } from '../problems.ts'
import type { QueryRequest } from '../run.ts'
import { DistantHistory, HistoryCalls } from './distant-history.ts'
import type { AskedAnswer, FromQueries, ToQueries } from './messages.ts'
import { expressionRecords, foundTexts } from './records.ts'

/** The server learns of what a job holds when it is so much more or less. */
const REPORTED_BYTES = 256 << 10

export interface JobServices {
  /** The memory of the buffers goes over to the server. */
  readonly post: (message: FromQueries, buffers?: readonly ArrayBuffer[]) => void
  readonly clock: Clock
  readonly work: FairWork
}

interface Job {
  readonly tenant: string
  readonly ended: AbortController
  readonly refused: AbortController
  /** Bytes that the server does not know of yet. */
  held: number
  /** Those of its answer, once the server has that. */
  pieces: Iterator<Piece, void, void> | undefined
}

export class QueryJobs {
  readonly #services: JobServices
  readonly #calls: HistoryCalls
  readonly #jobs = new Map<number, Job>()

  constructor(services: JobServices) {
    this.#services = services
    this.#calls = new HistoryCalls(services.post)
  }

  handle(message: ToQueries): void {
    if (message.kind === 'item') this.#calls.take(message)
    else if (message.kind === 'begin') void this.#begin(message.job, message.answer)
    else if (message.kind === 'more') void this.#more(message.job)
    else this.#end(message.job, message.isCrowded)
  }

  async #begin(number: number, answer: AskedAnswer): Promise<void> {
    const { tenant, timeoutMs } = answer
    const { clock, work } = this.#services
    const [ended, refused] = [new AbortController(), new AbortController()]
    const job: Job = { tenant, ended, refused, held: 0, pieces: undefined }
    this.#jobs.set(number, job)
    const memory = {
      refused: refused.signal,
      took: (bytes: number): void => {
        job.held += bytes
        if (Math.abs(job.held) >= REPORTED_BYTES) this.#report(number, job)
      },
    }
    try {
      const request: QueryRequest = {
        ...answer,
        history: new DistantHistory(this.#calls, number, answer.elsewhere),
        run: { tenant, work, clock, timeoutMs, ended: ended.signal, memory },
      }
      // It begins with what takes one long step: an expression is parsed.
      const { type, encoding, pieces } = await work.run(job, begun(answer, request))
      const first = owned(await work.run(job, nextPiece(pieces)))
      if (ended.signal.aborted) throw new QueryProblem('canceled', 'query was canceled')
      this.#report(number, job)
      job.pieces = pieces
      this.#post({ kind: 'answer', job: number, type, encoding, first }, first)
    } catch (error) {
      this.#failed(number, error)
    }
  }

  async #more(number: number): Promise<void> {
    const job = this.#jobs.get(number)
    if (job?.pieces === undefined) return
    try {
      const piece = owned(await this.#services.work.run(job, nextPiece(job.pieces)))
      if (piece === undefined) this.#jobs.delete(number)
      this.#post({ kind: 'piece', job: number, piece }, piece)
    } catch (error) {
      this.#failed(number, error)
    }
  }

  #end(number: number, isCrowded: boolean): void {
    const job = this.#jobs.get(number)
    if (isCrowded) job?.refused.abort()
    else job?.ended.abort()
    // What is evaluated ends with its next step, and says so.
    if (job?.pieces !== undefined) this.#jobs.delete(number)
  }

  #failed(number: number, error: unknown): void {
    if (!this.#jobs.delete(number)) return
    const { post } = this.#services
    const problem = problemOf(error)
    if (problem === undefined) {
      const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
      post({ kind: 'failed', job: number, message, stack })
      return
    }
    const { type, message, range } = problem
    const isCrowded = problem instanceof CrowdedQuery
    post({ kind: 'problem', job: number, problem: { type, message, range, isCrowded } })
  }

  #post(message: FromQueries, piece: Piece | undefined): void {
    this.#services.post(message, piece instanceof Uint8Array ? [piece.buffer as ArrayBuffer] : [])
  }

  #report(number: number, job: Job): void {
    if (job.held !== 0) this.#services.post({ kind: 'held', job: number, bytes: job.held })
    job.held = 0
  }
}

// biome-ignore lint/correctness/useYield: one step
function* begun({ asked, waitedMs }: AskedAnswer, request: QueryRequest): Steps<Promise<PiecedAnswer>> {
  if (asked.name === 'records') return expressionRecords(request, asked)
  if (asked.name === 'texts') return foundTexts(request, asked)
  return answers[asked.name]({ ...request, ...asked, given: givenIn(asked), waitedMs }).then(piecesOf)
}

/** Bytes in memory that can be given away, as it holds nothing else. */
function owned(piece: Piece | undefined): Piece | undefined {
  const isPart = piece instanceof Uint8Array && piece.byteLength < piece.buffer.byteLength
  return isPart ? new Uint8Array(piece) : piece
}
