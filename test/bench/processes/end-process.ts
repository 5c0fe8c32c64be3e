/** The benchmark's side of `program.ts`: starts an end in a process of its own and hears of it. */
import { Child } from '../../support/child.ts'
import { compiled } from '../../support/compiled.ts'
import type { Done, Job, Told } from './end.ts'

export class EndProcess {
  readonly #job: Job
  readonly #child: Child

  private constructor(job: Job) {
    this.#job = job
    const args = [compiled('test/bench/processes/program.ts'), JSON.stringify(job)]
    this.#child = new Child(process.execPath, args, { hasChannel: true })
  }

  /** Connected and ready. */
  static async start(job: Job): Promise<EndProcess> {
    const end = new EndProcess(job)
    end.#expect('ready', await end.#child.message())
    return end
  }

  async run(): Promise<Done> {
    return this.#expect('done', await this.#child.ask('go'))
  }

  async close(): Promise<void> {
    if (this.#child.process.connected) this.#child.process.disconnect()
    await this.#child.end()
  }

  #expect<K extends Told['kind']>(kind: K, message: unknown): Extract<Told, { kind: K }> {
    const told = message as Told
    if (told.kind !== kind) throw new Error(`${this.#job.end} said ${told.kind} where ${kind} was due`)
    return told as Extract<Told, { kind: K }>
  }
}
