/** A program as a child of this process: what it has printed, how it is ended, and when it is gone. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { finished } from 'node:stream/promises'

export interface ChildOptions {
  readonly cwd?: string
  /** Beside the environment of this process. */
  readonly env?: Readonly<Record<string, string>> | undefined
  /** `pipe`: it reads what is written to `process.stdin`. */
  readonly stdin?: 'pipe'
  /** It answers messages: a Node program with a channel to this process. */
  readonly hasChannel?: boolean
}

export class Child {
  readonly process: ChildProcess
  /** All that it has printed, and all that it has written to standard error. */
  out = ''
  errors = ''
  /** Resolves when it is gone, or was never there; by then `out` and `errors` have all of it. */
  readonly exited: Promise<unknown>
  #isGone = false
  #changed: () => void = () => {}

  constructor(program: string, args: readonly string[], options: ChildOptions = {}) {
    const { cwd, env, stdin = 'ignore', hasChannel = false } = options
    const stdio: StdioOptions = [stdin, 'pipe', 'pipe', ...(hasChannel ? (['ipc'] as const) : [])]
    this.process = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio })
    this.process.stdout?.on('data', (chunk: Buffer) => {
      this.out += chunk.toString()
      this.#changed()
    })
    this.process.stderr?.on('data', (chunk: Buffer) => {
      this.errors += chunk.toString()
      this.#changed()
    })
    // A run that fails leaves nothing running.
    const orphaned = (): boolean => this.process.kill('SIGKILL')
    process.once('exit', orphaned)
    const { stdout, stderr } = this.process
    const read = [stdout, stderr].map((stream) => stream && finished(stream).catch(() => {}))
    // `close` never comes after a channel that this process has closed.
    this.exited = Promise.all([once(this.process, 'exit'), ...read]).then(
      () => {},
      (error: Error) => {
        this.errors += error.message
      },
    )
    void this.exited.then(() => {
      process.off('exit', orphaned)
      this.#isGone = true
      this.#changed()
    })
  }

  /** 0 if it could not be started. */
  get pid(): number {
    return this.process.pid ?? 0
  }

  get isRunning(): boolean {
    const { pid, exitCode, signalCode } = this.process
    return pid !== undefined && exitCode === null && signalCode === null
  }

  /** Undefined while it runs, null if a signal has ended it. */
  get exitCode(): number | null | undefined {
    return this.isRunning ? undefined : this.process.exitCode
  }

  /** Resolves when it has printed this: true; or when it is gone: false. To be awaited by one at a time. */
  async hasPrinted(text: string, to: 'out' | 'errors' = 'out'): Promise<boolean> {
    while (!this[to].includes(text) && !this.#isGone) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve
      })
    }
    return this[to].includes(text)
  }

  /** The next message that it sends. Rejects with what it has written if it ends before. */
  async message(): Promise<unknown> {
    const gone = this.exited.then(() => {
      throw new Error(
        `${this.process.spawnfile} ended with exit code ${this.process.exitCode}:\n${this.out}${this.errors}`,
      )
    })
    const [message] = await Promise.race([once(this.process, 'message'), gone])
    return message
  }

  /** Sends it a message that it answers; gives the answer. */
  ask(message: string | object): Promise<unknown> {
    const answer = this.message()
    this.process.send(message)
    return answer
  }

  /** Sends it a signal, unless it is gone. */
  signal(name: NodeJS.Signals): void {
    if (this.isRunning) this.process.kill(name)
  }

  /** Ends it and waits until it is gone; without a signal it ends by itself. Gives its exit code, null after a signal. */
  async end(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal !== undefined) this.signal(signal)
    await this.exited
    return this.process.exitCode
  }
}
