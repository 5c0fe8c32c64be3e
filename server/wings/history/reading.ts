/** What the server asks the thread of the history: series with their samples, portion by portion. */
import type { HistoryFamily, HistoryFamilyPlace, HistoryLoss, HistorySeries } from '../../../storage/history/store.ts'
import { StatusError } from '../../kit/running.ts'
import { FollowedSelections } from './followed.ts'
import type { FollowedColumns } from './followed-columns.ts'
import type {
  HistorySelection,
  LossSelection,
  NewsAnswer,
  NewsAsked,
  QueryAnswer,
  QueryMessage,
  SelectedSamples,
  SentSamples,
} from './messages.ts'

/** Series that are asked for again and again. */
const MOST_KNOWN = 1 << 17

interface Waiting {
  readonly resolve: (answer: QueryAnswer) => void
  readonly reject: (error: Error) => void
}

/** A message, or several. */
type Send = (
  message: QueryMessage | NewsAsked | { readonly kind: 'queries'; readonly queries: readonly QueryMessage[] },
) => boolean

export class HistoryReading {
  /** Does nothing if there is no thread. */
  readonly #send: Send
  readonly #waiting = new Map<number, Waiting>()
  /** What was asked in this turn: it goes to the thread together, since each message costs more than a small answer. */
  #asked: QueryMessage[] = []
  readonly #known = new KnownTexts()
  readonly #followed: FollowedSelections
  #last = 0

  /** `send` returns false if there is no thread. */
  constructor(send: Send, nowMs: () => number) {
    this.#send = send
    this.#followed = new FollowedSelections({
      read: (selection) => this.#read(selection),
      ask: (asked) => send({ kind: 'news', ...asked }),
      nowMs,
    })
  }

  /**
   * What matches, in portions of which each took the thread at most 20 ms; one may be empty. It shows one state. End it with `return()`
   * if not all of it is wanted. Throws StatusError.
   */
  select(selection: HistorySelection): AsyncGenerator<readonly SelectedSamples[], void, void> {
    return this.#followed.takes(selection) ? this.#followed.select(selection) : this.#read(selection)
  }

  /** What was read of a selection that is asked for again and again, with all that has come of it; undefined if it has to be read. */
  current(selection: HistorySelection): Promise<Pick<FollowedColumns, 'has' | 'read'> | undefined> {
    return this.#followed.current(selection)
  }

  async *#read(selection: HistorySelection): AsyncGenerator<readonly SelectedSamples[], void, void> {
    const query = ++this.#last
    let isOver = false
    try {
      for (let message: QueryMessage = { kind: 'select', query, selection }; ; message = { kind: 'next', query }) {
        const answer = await this.#ask(query, message)
        isOver = answer.kind !== 'portion' || answer.isLast
        if (answer.kind === 'refused') throw new StatusError(answer.status, answer.detail)
        if (answer.kind === 'portion') yield answer.series.map((one) => this.#known.received(one))
        if (isOver) return
      }
    } finally {
      if (!isOver) this.#post({ kind: 'cancel', query })
    }
  }

  /** What is known to be missing, ascending. Throws StatusError. */
  async losses(selection: LossSelection): Promise<readonly HistoryLoss[]> {
    const query = ++this.#last
    const answer = await this.#ask(query, { kind: 'losses', query, selection })
    if (answer.kind === 'refused') throw new StatusError(answer.status, answer.detail)
    return answer.kind === 'lost' ? answer.losses : []
  }

  /** What is known of the metrics of a tenant, in portions. Throws StatusError. */
  async *families(tenant: string): AsyncGenerator<readonly (HistoryFamily & HistoryFamilyPlace)[], void, void> {
    for (let after: HistoryFamilyPlace | undefined; ; ) {
      const query = ++this.#last
      const answer = await this.#ask(query, { kind: 'families', query, tenant, after })
      if (answer.kind === 'refused') throw new StatusError(answer.status, answer.detail)
      if (answer.kind !== 'families' || answer.families.length === 0) return
      yield answer.families
      const { native, name } = answer.families.at(-1) as HistoryFamilyPlace
      after = { native, name }
    }
  }

  #ask(query: number, message: QueryMessage): Promise<QueryAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(query, { resolve, reject })
      this.#post(message)
    })
  }

  #post(message: QueryMessage): void {
    this.#asked.push(message)
    if (this.#asked.length === 1) queueMicrotask(() => this.#sendAsked())
  }

  #sendAsked(): void {
    const queries = this.#asked
    this.#asked = []
    const [only] = queries
    const isSent = this.#send(only !== undefined && queries.length === 1 ? only : { kind: 'queries', queries })
    if (!isSent) for (const { query } of queries) this.#failed(query)
  }

  takeNews(answer: NewsAnswer): void {
    this.#followed.take(answer)
  }

  take(answer: QueryAnswer): void {
    const waiting = this.#waiting.get(answer.query)
    this.#waiting.delete(answer.query)
    waiting?.resolve(answer)
  }

  /** The thread is gone. */
  ended(): void {
    this.#followed.ended()
    for (const query of [...this.#waiting.keys()]) this.#failed(query)
  }

  #failed(query: number): void {
    const waiting = this.#waiting.get(query)
    this.#waiting.delete(query)
    waiting?.reject(new StatusError('INTERNAL', 'the history is not there: it is off, or has failed'))
  }
}

/** Series of which a text has come, so that each is one object as long as it is asked for. */
class KnownTexts {
  #series = new Map<string, HistorySeries>()
  /** Those of before there were so many. */
  #older = new Map<string, HistorySeries>()

  received(samples: SentSamples): SelectedSamples {
    const { series } = samples
    if (typeof series !== 'string') return samples as SelectedSamples
    return { ...samples, series: this.#seriesOf(series) }
  }

  #seriesOf(text: string): HistorySeries {
    const known = this.#series.get(text)
    if (known !== undefined) return known
    if (this.#series.size >= MOST_KNOWN) {
      this.#older = this.#series
      this.#series = new Map()
    }
    const series = this.#older.get(text) ?? (JSON.parse(text) as HistorySeries)
    this.#series.set(text, series)
    return series
  }
}
