/** A process that runs tests of a folder, one order after the other. After an order that breaks it or has no end, there is a new one. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { compiled } from '../support/compiled.ts'
import type { NamedTest } from './mutant.ts'
import type { TestRun } from './vitest-host.ts'

export class TestHost {
  readonly #directory: string
  #child: ChildProcess | undefined
  /** What the process has written. */
  #output = ''

  constructor(directory: string) {
    this.#directory = directory
  }

  /** Throws if there is no result within `limitMs`. */
  async run(tests: readonly NamedTest[], limitMs: number): Promise<TestRun> {
    this.#child ??= this.#start()
    const child = this.#child
    const over = new AbortController()
    const gone = once(child, 'close', over).then(() => {
      throw new Error(`the process of vitest has ended:\n${this.#output}`)
    })
    const limit = setTimeout(() => {
      this.#output += `There was no result after ${limitMs} ms.`
      void this.stop()
    }, limitMs)
    try {
      const answered = once(child, 'message', over)
      child.send(tests)
      const [run] = await Promise.race([answered, gone])
      return run as TestRun
    } finally {
      clearTimeout(limit)
      over.abort()
    }
  }

  /** In the short form of the tests. */
  #start(): ChildProcess {
    const { TEST_LONG, TEST_REPORT, VITEST, ...env } = process.env
    const child = fork(compiled('test/mutants/vitest-host.ts'), [this.#directory], {
      cwd: this.#directory,
      env,
      execArgv: [],
      silent: true,
      // A group of its own: a test that does not end is a process that it has started.
      detached: true,
    })
    this.#output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text
      })
    }
    child.once('close', () => {
      if (this.#child === child) this.#child = undefined
    })
    return child
  }

  /** Ends the process, and all that it has started. */
  async stop(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    process.kill(-child.pid, 'SIGKILL')
    await ended
  }
}
