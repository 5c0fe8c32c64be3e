/** The receiver as a process that is killed and started again, and the journal that it leaves. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { Child } from '../../support/child.ts'

const PROGRAM = new URL('./receiver.mjs', import.meta.url).pathname

/** A request as the journal has it. */
export interface Received {
  readonly path: string
  readonly key: string
  readonly time: string
  /** Undefined if it is not signed. */
  readonly signature?: string
  readonly body: string
}

export class Receiver {
  readonly #journal: string
  readonly #port: number
  #child: Child | undefined

  constructor(journal: string, port: number) {
    this.#journal = journal
    this.#port = port
  }

  async start(): Promise<void> {
    const child = new Child(process.execPath, [PROGRAM, this.#journal, String(this.#port)])
    this.#child = child
    if (!(await child.hasPrinted('listening'))) throw new Error(`the receiver did not start: ${child.errors}`)
  }

  async kill(): Promise<void> {
    await this.#child?.end('SIGKILL')
  }

  get journalBytes(): number {
    return statSync(this.#journal).size
  }

  /** Everything that it has written, in order. What a kill has cut is no request: it was not answered. */
  received(): Received[] {
    if (!existsSync(this.#journal)) return []
    const lines = readFileSync(this.#journal, 'utf8').split('\n')
    return lines.flatMap((line) => {
      try {
        return [JSON.parse(line) as Received]
      } catch {
        return []
      }
    })
  }
}
