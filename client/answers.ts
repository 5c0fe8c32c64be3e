/** Values that somebody waits for: the answer to a QUERY, which dies with the connection, and the result of an EXECUTE. */
import type { CommandArguments } from '../protocol/monitor/commands/index.ts'
import type { ValueMessage } from '../protocol/monitor/message.ts'
import type { ClientClock, ClientTimer } from './clock.ts'
import type { Asking, Request } from './commands.ts'
import { ConnectionError } from './errors.ts'

interface Answer {
  readonly resolve: (value: ValueMessage) => void
  readonly reject: (error: Error) => void
  /** Waits for a result that is kept on the channel. */
  readonly isKept: boolean
  readonly timer: ClientTimer | undefined
}

export class Answers {
  readonly #clock: ClientClock
  readonly #waiting = new Map<number, Answer>()

  constructor(clock: ClientClock) {
    this.#clock = clock
  }

  /** Sends a command and waits for the value whose id its response gives. */
  ask<N extends Asking>(
    request: Request,
    name: N,
    values: CommandArguments<N>,
    { isKept, deadlineMs }: { readonly isKept: boolean; readonly deadlineMs?: number | undefined },
  ): Promise<ValueMessage> {
    return new Promise((resolve, reject) => {
      const expect = (id: number) => {
        const late = () => {
          this.#waiting.delete(id)
          reject(new ConnectionError('TIMEOUT', `${name}: the value did not come within ${deadlineMs} ms`))
        }
        const timer = deadlineMs === undefined ? undefined : this.#clock.setTimeout(late, deadlineMs)
        this.#waiting.set(id, { resolve, reject, isKept, timer })
      }
      request(name, values, expect).catch(reject)
    })
  }

  /** Whether somebody waited for this value. */
  take(message: ValueMessage): boolean {
    const answer = this.#waiting.size > 0 ? this.#waiting.get(message.metric) : undefined
    if (!answer) return false
    this.#waiting.delete(message.metric)
    answer.timer?.cancel()
    answer.resolve(message)
    return true
  }

  /** `keeps`: what is kept on the channel is still waited for. */
  reject(error: Error, keeps: boolean): void {
    for (const [id, { reject, isKept, timer }] of this.#waiting) {
      if (keeps && isKept) continue
      this.#waiting.delete(id)
      timer?.cancel()
      reject(error)
    }
  }
}
