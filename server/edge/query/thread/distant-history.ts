/** The history as the thread of queries has it: whatever is asked of it is asked of the server, which judges what may be read. */
import { StatusError } from '../../../kernel/core/errors.ts'
import type { EngineAnswer, LossesAsked, RememberedLoss, RememberedSelection } from '../../../kit/history.ts'
import type { AskedHistory, ReadableSeries, ScopedEngine } from '../asked-history.ts'
import type { AskedAnswer, CallAnswer, CallError, FromQueries, HistoryCall } from './messages.ts'

type Take = (outcome: CallAnswer['outcome']) => void

/** What is asked of the server, for all jobs. */
export class HistoryCalls {
  readonly #post: (message: FromQueries) => void
  readonly #waiting = new Map<number, Take>()
  #last = 0

  constructor(post: (message: FromQueries) => void) {
    this.#post = post
  }

  /** Rejects with StatusError, and with other errors for people. `signal` ends what is waited for. */
  async *items<Item>(job: number, asked: HistoryCall, signal?: AbortSignal): AsyncGenerator<Item, void, void> {
    const call = ++this.#last
    let isOver = false
    // The server answers what it was asked for before, and so what waits goes on.
    const end = (): void => this.#post({ kind: 'return', call })
    signal?.addEventListener('abort', end)
    try {
      for (let message: FromQueries = { kind: 'call', job, call, asked }; ; message = { kind: 'next', call }) {
        const outcome = await this.#asked(call, message)
        isOver = !('item' in outcome)
        if ('error' in outcome) throw errorOf(outcome.error)
        if (!('item' in outcome)) return
        yield outcome.item as Item
      }
    } finally {
      signal?.removeEventListener('abort', end)
      if (!isOver) end()
    }
  }

  #asked(call: number, message: FromQueries): Promise<CallAnswer['outcome']> {
    return new Promise((resolve) => {
      this.#waiting.set(call, resolve)
      this.#post(message)
    })
  }

  take({ call, outcome }: CallAnswer): void {
    const waiting = this.#waiting.get(call)
    this.#waiting.delete(call)
    waiting?.(outcome)
  }
}

function errorOf({ status, message }: CallError): Error {
  return status === undefined ? new Error(message) : new StatusError(status, message)
}

/** What a job asks. */
export class DistantHistory implements AskedHistory {
  readonly #calls: Pick<HistoryCalls, 'items'>
  readonly #job: number
  readonly elsewhere: ScopedEngine | undefined

  constructor(calls: Pick<HistoryCalls, 'items'>, job: number, elsewhere: AskedAnswer['elsewhere']) {
    this.#calls = calls
    this.#job = job
    this.elsewhere = elsewhere && {
      scope: elsewhere.scope,
      ask: (path, form, signal) => this.#ask(path, form, signal),
    }
  }

  select(selection: RememberedSelection): AsyncGenerator<readonly ReadableSeries[], void, void> {
    return this.#calls.items(this.#job, { kind: 'select', selection })
  }

  async losses(asked: LossesAsked): Promise<readonly RememberedLoss[]> {
    const { value = [] } = await this.#calls
      .items<readonly RememberedLoss[]>(this.#job, { kind: 'losses', asked })
      .next()
    return value
  }

  async #ask(path: string, form: URLSearchParams, signal: AbortSignal): Promise<EngineAnswer> {
    const asked = { kind: 'ask', path, form: form.toString() } as const
    const items = this.#calls.items<number | Uint8Array>(this.#job, asked, signal)
    const { value: status } = await items.next()
    return { status: Number(status), pieces: items as AsyncGenerator<Uint8Array> }
  }
}
