/**
 * Password hashes (bcrypt), computed in one worker thread, because one hash keeps a processor busy for about 0.1 s. This file
 * is also the thread's program. The thread starts at first use and keeps the process alive only while a job waits for it. With a
 * clock, which may keep the process alive, the thread ends after ten seconds without a job, since it takes some MiB. bcrypt uses
 * only the first 72 bytes, so a longer password is refused instead of being truncated silently.
 *
 * The thread gets one job at a time, in turn from three queues: passwords that are set, logins under names that have logged in
 * from the same network before, and all other logins. So a flood of logins delays the others by two jobs at most.
 */
import { parentPort, Worker, workerData } from 'node:worker_threads'
import { compareSync, hashSync } from 'bcryptjs'
import { AuthError } from './errors.ts'
import { FairQueue, type QueuedJob } from './fair-queue.ts'

export const MAX_PASSWORD_BYTES = 72

/** The `workerData` of the thread. */
const BCRYPT_THREAD = 'cinnabar-bcrypt'
/** 2^10 rounds: about 93 ms on the machine where this was chosen. */
const DEFAULT_ROUNDS = 10
const IDLE_MS = 10_000
/** If all queues are full, the last of `other` waits some 9 s: a peer has 10 s from connecting to success [MON 11]. */
const PLACES = { set: 64, known: 24, other: 32 } as const

export interface PasswordHasherOptions {
  /** Binary logarithm of bcrypt's cost, 4..31. */
  readonly rounds?: number
  /** Without a clock, the thread stays until `close`. */
  readonly clock?: IdleClock | undefined
}

/** The part of the server's clock that ends an idle thread. */
export interface IdleClock {
  setTimeout(callback: () => void, delayMs: number): { cancel(): void }
}

/** Who waits for the check of a password. */
export interface PasswordWaiter {
  /** Those of one lane take turns with those of another. */
  readonly lane: string
  /** Whether the name has logged in from the same network before. */
  readonly isKnown: boolean
  /** True once nobody waits any more: the check is left out. */
  readonly isGone: () => boolean
}

type BcryptTask = { readonly password: string } & ({ readonly rounds: number } | { readonly hash: string })
type BcryptAnswer = { readonly value: string | boolean } | { readonly error: string }

interface BcryptJob extends QueuedJob {
  readonly task: BcryptTask
  readonly resolve: (value: string | boolean) => void
  readonly reject: (error: Error) => void
}

const SOMEBODY: PasswordWaiter = { lane: '', isGone: () => false, isKnown: false }

if (workerData === BCRYPT_THREAD) {
  parentPort?.on('message', (task: BcryptTask) => parentPort?.postMessage(answer(task)))
}

export class PasswordHasher {
  readonly #rounds: number
  readonly #set = new FairQueue<BcryptJob>(PLACES.set)
  readonly #known = new FairQueue<BcryptJob>(PLACES.known)
  readonly #other = new FairQueue<BcryptJob>(PLACES.other)
  /** The queues in the order of their turns. */
  #turns = [this.#set, this.#known, this.#other]
  #current: BcryptJob | undefined
  #worker: Worker | undefined
  readonly #clock: IdleClock | undefined
  #idling: { cancel(): void } | undefined
  #closed = false
  /** The number of jobs that found no place. */
  refused = 0

  constructor({ rounds = DEFAULT_ROUNDS, clock }: PasswordHasherOptions = {}) {
    this.#rounds = rounds
    this.#clock = clock
  }

  /** Jobs under way or waiting. */
  get waiting(): number {
    return this.#turns.reduce((sum, { size }) => sum + size, this.#current === undefined ? 0 : 1)
  }

  /**
   * A bcrypt hash, 60 characters. Those who set passwords take turns: `setter` names one of them. Rejects with AuthError
   * BAD_PASSWORD, HASHER_BUSY or HASHER_CLOSED.
   */
  async hash(password: string, setter = ''): Promise<string> {
    checkPassword(password)
    // It waits for no connection: its user is made or changed in any case.
    const waiter = { lane: setter, isGone: () => false }
    return String(await this.#run({ password, rounds: this.#rounds }, this.#set, waiter))
  }

  /** Without a `hash` there is no such user: the result is false after the same work. Rejects as `hash` does. */
  async verify(password: string, hash: string | undefined, waiter = SOMEBODY): Promise<boolean> {
    checkPassword(password)
    const queue = waiter.isKnown ? this.#known : this.#other
    const matches = await this.#run({ password, hash: hash ?? this.#unmatchable() }, queue, waiter)
    return matches === true && hash !== undefined
  }

  /** Stops the thread; waiting callers get HASHER_CLOSED. */
  async close(): Promise<void> {
    this.#closed = true
    this.#giveUp(closedError())
    await this.#end()
  }

  #run(
    task: BcryptTask,
    queue: FairQueue<BcryptJob>,
    { lane, isGone }: Pick<PasswordWaiter, 'lane' | 'isGone'>,
  ): Promise<string | boolean> {
    if (this.#closed) throw closedError()
    return new Promise((resolve, reject) => {
      const drop = (): void => {
        if (!isGone()) this.refused++
        reject(new AuthError('HASHER_BUSY', 'too many passwords are waiting to be checked: try again later'))
      }
      queue.add({ task, lane, isGone, drop, resolve, reject })
      if (this.#current === undefined) this.#next()
    })
  }

  /** Gives the thread its next job. */
  #next(): void {
    this.#current = this.#take()
    this.#idling?.cancel()
    if (this.#current === undefined) {
      this.#worker?.unref()
      if (this.#worker !== undefined) this.#idling = this.#clock?.setTimeout(() => void this.#end(), IDLE_MS)
      return
    }
    try {
      this.#worker ??= this.#start()
      this.#worker.ref()
      this.#worker.postMessage(this.#current.task)
    } catch (cause) {
      this.#giveUp(new Error('the thread that checks passwords could not be started', { cause }))
    }
  }

  #take(): BcryptJob | undefined {
    for (const queue of this.#turns) {
      const job = queue.take()
      if (job === undefined) continue
      this.#turns = [...this.#turns.filter((other) => other !== queue), queue]
      return job
    }
    return undefined
  }

  #start(): Worker {
    const worker = startWorker()
    worker.on('message', (answer: BcryptAnswer) => {
      if (this.#worker !== worker) return
      const job = this.#current
      this.#next()
      if ('error' in answer) job?.reject(new Error(`bcrypt refused the stored hash: ${answer.error}`))
      else job?.resolve(answer.value)
    })
    worker.on('error', (cause) => this.#lost(worker, cause))
    worker.on('exit', (code) => this.#lost(worker, new Error(`exit code ${code}`)))
    return worker
  }

  /** Ends the thread; the next job starts a new one. */
  async #end(): Promise<void> {
    this.#idling?.cancel()
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }

  /** The next job starts a new thread. */
  #lost(worker: Worker, cause: unknown): void {
    if (this.#worker !== worker) return
    this.#worker = undefined
    this.#giveUp(new Error('the thread that checks passwords ended', { cause }))
  }

  #giveUp(error: Error): void {
    this.#current?.reject(error)
    this.#current = undefined
    for (let job = this.#take(); job !== undefined; job = this.#take()) job.reject(error)
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

function answer(task: BcryptTask): BcryptAnswer {
  try {
    return { value: 'hash' in task ? compareSync(task.password, task.hash) : hashSync(task.password, task.rounds) }
  } catch (error) {
    return { error: String(error) }
  }
}

function closedError(): AuthError {
  return new AuthError('HASHER_CLOSED', 'passwords are no longer checked: the server is stopping')
}
