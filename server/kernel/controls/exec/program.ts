/**
 * Runs a program in a process group of its own. Whatever is left of the group after the program has ended or timed out is
 * killed, and a pipe that another process holds open is not waited for.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Clock } from '../../core/clock.ts'

/** Time between SIGTERM and SIGKILL. */
const GRACE_MS = 2_000
/** Time to read the rest of the pipes after the program has ended; they stay open longer only if another process holds them. */
const DRAIN_MS = 250

export interface Program {
  /** An absolute path. */
  readonly path: string
  readonly argv: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly directory: string
  /** undefined for the server's own user. */
  readonly user: { readonly uid: number; readonly gid: number } | undefined
  readonly stdin: string | undefined
  readonly timeoutMs: number
  /** Maximum bytes of both outputs together. */
  readonly maxOutput: number
}

export interface Ended {
  /** The exit code, the signal that ended the program, or the reason why it was not started. */
  readonly end: { readonly exit: number } | { readonly signal: string } | { readonly error: string }
  readonly cause: 'itself' | 'timeout' | 'stop'
  readonly stdout: string
  readonly stderr: string
  readonly truncated: boolean
}

/** Never rejects. `signal` is aborted when the server stops. */
export function runProgram(
  program: Program,
  clock: Pick<Clock, 'setTimeout' | 'clear'>,
  signal: AbortSignal,
): Promise<Ended> {
  return new Promise((resolve) => new Running(program, clock, signal, resolve))
}

class Running {
  readonly #clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly #child: ChildProcess
  readonly #signal: AbortSignal
  readonly #done: (ended: Ended) => void
  readonly #output: { readonly stdout: Buffer[]; readonly stderr: Buffer[] } = { stdout: [], stderr: [] }
  readonly #onStop = (): void => this.#terminate('stop')
  #timer: ReturnType<Clock['setTimeout']> | undefined
  #room: number
  #truncated = false
  #cause: Ended['cause'] = 'itself'
  #end: Ended['end'] | undefined
  #isDone = false

  constructor(
    program: Program,
    clock: Pick<Clock, 'setTimeout' | 'clear'>,
    signal: AbortSignal,
    done: (ended: Ended) => void,
  ) {
    const { path, argv, environment, directory, user, stdin, timeoutMs, maxOutput } = program
    this.#clock = clock
    this.#signal = signal
    this.#done = done
    this.#room = maxOutput
    const child = spawn(path, argv, {
      cwd: directory,
      env: environment,
      detached: true,
      shell: false,
      stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      ...user,
    })
    this.#child = child
    child.once('error', (error) => this.#failed(error))
    child.once('exit', (code, by) => this.#exited(code === null ? { signal: by ?? 'unknown' } : { exit: code }))
    child.once('close', () => this.#finish())
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]?.on('data', (chunk: Buffer) => this.#collect(name, chunk))
    }
    // The program need not read its input.
    child.stdin?.on('error', () => {})
    child.stdin?.end(stdin)
    if (child.pid === undefined) return
    this.#timer = clock.setTimeout(() => this.#terminate('timeout'), timeoutMs)
    signal.addEventListener('abort', this.#onStop)
  }

  #collect(name: 'stdout' | 'stderr', chunk: Buffer): void {
    const kept = chunk.subarray(0, this.#room)
    if (kept.length < chunk.length) this.#truncated = true
    if (kept.length === 0) return
    this.#room -= kept.length
    this.#output[name].push(Buffer.from(kept))
  }

  #terminate(cause: 'timeout' | 'stop'): void {
    if (this.#end !== undefined || this.#cause !== 'itself') return
    this.#cause = cause
    this.#clock.clear(this.#timer)
    this.#kill('SIGTERM')
    this.#timer = this.#clock.setTimeout(() => this.#kill('SIGKILL'), GRACE_MS)
  }

  #kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#child
    if (pid === undefined) return
    try {
      process.kill(-pid, signal)
    } catch (error) {
      // No process is left, or it now belongs to a user whose processes the server may not signal.
      if (!(error instanceof Error && 'code' in error && (error.code === 'ESRCH' || error.code === 'EPERM')))
        throw error
    }
  }

  #exited(end: Ended['end']): void {
    this.#end = end
    this.#clock.clear(this.#timer)
    this.#kill('SIGKILL')
    this.#timer = this.#clock.setTimeout(() => this.#drain(), DRAIN_MS)
  }

  /**
   * Somebody else may hold the output, so that its end is not waited for. What the program itself has written is there, but a
   * busy event loop may not have read it yet: it is read until a turn brings nothing more.
   */
  #drain(roomBefore?: number): void {
    setImmediate(() => {
      const room = this.#room
      if (room > 0 && room !== roomBefore) this.#drain(room)
      else this.#finish()
    })
  }

  /** The program could not be started. */
  #failed(error: Error): void {
    if (this.#child.pid !== undefined) return
    this.#end = { error: error.message }
    this.#finish()
  }

  #finish(): void {
    if (this.#isDone || this.#end === undefined) return
    this.#isDone = true
    this.#clock.clear(this.#timer)
    this.#signal.removeEventListener('abort', this.#onStop)
    for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream?.destroy()
    this.#done({
      end: this.#end,
      cause: this.#cause,
      stdout: Buffer.concat(this.#output.stdout).toString('utf8'),
      stderr: Buffer.concat(this.#output.stderr).toString('utf8'),
      truncated: this.#truncated,
    })
  }
}
