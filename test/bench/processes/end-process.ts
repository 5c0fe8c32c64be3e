/** The benchmark's side of `program.ts`: starts an end in a process of its own and hears of it. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { compiled } from '../../support/compiled.ts'
import type { Done, Job, Told } from './end.ts'

export class EndProcess {
  readonly #job: Job
  readonly #child: ChildProcess

  private constructor(job: Job) {
    this.#job = job
    this.#child = fork(compiled('test/bench/processes/program.ts'), [JSON.stringify(job)], { execArgv: [] })
  }

  /** Connected and ready. */
  static async start(job: Job): Promise<EndProcess> {
    const end = new EndProcess(job)
    await end.#reported('ready')
    return end
  }

  run(): Promise<Done> {
    this.#child.send('go')
    return this.#reported('done')
  }

  async close(): Promise<void> {
    const child = this.#child
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    if (child.connected) child.disconnect()
    await exit
  }

  #reported<K extends Told['kind']>(kind: K): Promise<Extract<Told, { kind: K }>> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null): void => {
        reject(
          new Error(`${this.#job.end} ended with exit code ${code} before it was ${kind}; its reason stands above`),
        )
      }
      this.#child.once('exit', onExit)
      this.#child.once('message', (message: Told) => {
        this.#child.off('exit', onExit)
        if (message.kind === kind) resolve(message as Extract<Told, { kind: K }>)
        else reject(new Error(`${this.#job.end} said ${message.kind} where ${kind} was due`))
      })
    })
  }
}
