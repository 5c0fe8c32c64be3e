/**
 * Password hashes (bcrypt), computed in one worker thread, because one hash keeps a processor busy for about 0.1 s. This file
 * is also the thread's program. The thread starts at first use and keeps the process alive only while a job waits for it.
 * bcrypt uses only the first 72 bytes, so a longer password is refused instead of being truncated silently.
 */
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { compareSync, hashSync } from 'bcryptjs'
import { AuthError } from './errors.ts'

export const MAX_PASSWORD_BYTES = 72

/** The `workerData` of the thread. */
const BCRYPT_THREAD = 'cinnabar-bcrypt'
/** 2^10 rounds: about 93 ms on the machine where this was chosen. */
const DEFAULT_ROUNDS = 10
/** 64 hashes take some 6 s, and a peer has 10 s from connecting to success [MON 11]. */
const DEFAULT_MAX_WAITING = 64

export interface PasswordHasherOptions {
  /** Binary logarithm of bcrypt's cost, 4..31. */
  readonly rounds?: number
  /** Jobs that may be under way or waiting at once. */
  readonly maxWaiting?: number
}

type BcryptTask = { readonly password: string } & ({ readonly rounds: number } | { readonly hash: string })
type BcryptJob = BcryptTask & { readonly id: number }
type BcryptAnswer = { readonly id: number } & ({ readonly value: string | boolean } | { readonly error: string })

interface Waiting {
  readonly resolve: (value: string | boolean) => void
  readonly reject: (error: Error) => void
}

if (workerData === BCRYPT_THREAD) {
  parentPort?.on('message', (job: BcryptJob) => parentPort?.postMessage(answer(job)))
}

export class PasswordHasher {
  readonly #rounds: number
  readonly #maxWaiting: number
  /** Waiting callers by job id; ids are never reused, so that an answer reaches its own caller only. */
  readonly #queue = new Map<number, Waiting>()
  #lastId = 0
  #worker: Worker | undefined
  #closed = false

  constructor({ rounds = DEFAULT_ROUNDS, maxWaiting = DEFAULT_MAX_WAITING }: PasswordHasherOptions = {}) {
    this.#rounds = rounds
    this.#maxWaiting = maxWaiting
  }

  /** Jobs under way or waiting. */
  get waiting(): number {
    return this.#queue.size
  }

  /** A bcrypt hash, 60 characters. Rejects with AuthError BAD_PASSWORD, HASHER_BUSY or HASHER_CLOSED. */
  async hash(password: string): Promise<string> {
    checkPassword(password)
    return String(await this.#run({ password, rounds: this.#rounds }))
  }

  /** Without a `hash` there is no such user: the result is false after the same work. Rejects as `hash` does. */
  async verify(password: string, hash: string | undefined): Promise<boolean> {
    checkPassword(password)
    const matches = await this.#run({ password, hash: hash ?? this.#unmatchable() })
    return matches === true && hash !== undefined
  }

  /** Stops the thread; waiting callers get HASHER_CLOSED. */
  async close(): Promise<void> {
    this.#closed = true
    this.#giveUp(new AuthError('HASHER_CLOSED', 'passwords are no longer checked: the server is stopping'))
    await this.#worker?.terminate()
  }

  #run(task: BcryptTask): Promise<string | boolean> {
    if (this.#closed) throw new AuthError('HASHER_CLOSED', 'passwords are no longer checked: the server is stopping')
    if (this.#queue.size >= this.#maxWaiting) {
      throw new AuthError('HASHER_BUSY', `${this.#queue.size} passwords are waiting to be checked: try again later`)
    }
    this.#worker ??= this.#start()
    const worker = this.#worker
    const job: BcryptJob = { ...task, id: ++this.#lastId }
    return new Promise((resolve, reject) => {
      this.#queue.set(job.id, { resolve, reject })
      worker.ref()
      worker.postMessage(job)
    })
  }

  #start(): Worker {
    const worker = startWorker()
    worker.on('message', (answer: BcryptAnswer) => {
      const job = this.#queue.get(answer.id)
      this.#queue.delete(answer.id)
      if (this.#queue.size === 0) worker.unref()
      if ('error' in answer) job?.reject(new Error(`bcrypt refused the stored hash: ${answer.error}`))
      else job?.resolve(answer.value)
    })
    worker.on('error', (cause) => this.#lost(worker, cause))
    worker.on('exit', (code) => this.#lost(worker, new Error(`exit code ${code}`)))
    return worker
  }

  /** The next job starts a new thread. */
  #lost(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    this.#giveUp(new Error('the thread that checks passwords ended', { cause }))
  }

  #giveUp(error: Error): void {
    for (const job of this.#queue.values()) job.reject(error)
    this.#queue.clear()
  }

  /** A well-formed hash with the cost of a real one that no password matches. */
  #unmatchable(): string {
    return `$2b$${String(this.#rounds).padStart(2, '0')}$${'.'.repeat(53)}`
  }
}

/** Throws AuthError BAD_PASSWORD for an empty password and for one of more than 72 bytes of UTF-8, which bcrypt would cut. */
export function checkPassword(password: string): void {
  const bytes = Buffer.byteLength(password)
  if (bytes === 0) throw new AuthError('BAD_PASSWORD', 'the password is empty')
  if (bytes > MAX_PASSWORD_BYTES) {
    throw new AuthError('BAD_PASSWORD', `the password has ${bytes} bytes, at most ${MAX_PASSWORD_BYTES} are possible`)
  }
}

function startWorker(): Worker {
  return new Worker(new URL(import.meta.resolve('#bcrypt-worker')), { name: 'bcrypt', workerData: BCRYPT_THREAD })
}

function answer(job: BcryptJob): BcryptAnswer {
  try {
    const value = 'hash' in job ? compareSync(job.password, job.hash) : hashSync(job.password, job.rounds)
    return { id: job.id, value }
  } catch (error) {
    return { id: job.id, error: String(error) }
  }
}
