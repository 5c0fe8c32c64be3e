/**
 * Queries in the thread of the history. Each answer is a portion that took at most a slice of time, after which values are taken,
 * and others have their turn: recording never waits for a query.
 */
import {
  HistoryBoundError,
  HistoryExpressionError,
  type HistoryFamily,
  type HistoryFollowing,
  type HistoryQuery,
  HistoryReadError,
  type HistorySeries,
  type HistoryStore,
  type HistoryWindows,
} from '../../../storage/history/store.ts'
import { familyOfSample } from './families.ts'
import type {
  FamilySelection,
  HistorySelection,
  LossSelection,
  NewsAnswer,
  QueryAnswer,
  QueryAnswers,
  QueryMessage,
  SentSamples,
} from './messages.ts'
import { ThreadNews } from './news.ts'

/** A portion takes no longer, but for one step of the store. */
const SLICE_MS = 20
/** A portion has no more samples, but for those of one series. */
const MOST_SAMPLES = 65_536

/** A window has so many columns, where a sample has two. */
const SAMPLES_OF_WINDOW = 5
/** A series costs as much as some samples to hand over: those of a portion take the server a few milliseconds. */
const SAMPLES_OF_SERIES = 512
/** So many are read in a millisecond or two. */
const MOST_FAMILIES = 512
const NONE = new Float64Array(0)

/** A query that nobody has gone on with for so long ends: it keeps files, and what has been written since. Those who ask wait less. */
const IDLE_MS = 90_000
const IS_OVER = 'this query is over, since nobody has gone on with it: begin again'

/** No date of JavaScript is later. */
const LAST_MS = 8.64e15

type Store = Pick<HistoryStore, 'select' | 'following' | 'series' | 'losses' | 'families' | 'familiesOf'>

interface Running {
  readonly steps: ReturnType<HistoryStore['select']>
  readonly isWithoutSamples: boolean
  readonly isRecurring: boolean
  /** Of metrics, if they are asked for. */
  readonly families: FamilyLookup | undefined
  usedMs: number
}

export interface QueryServices {
  /** The memory of the buffers goes over to the server. */
  readonly answer: (answer: QueryAnswer | QueryAnswers | NewsAnswer, buffers: readonly ArrayBufferLike[]) => void
  /** Has something done after the messages that are there. */
  readonly later: (act: () => void) => void
  readonly monotonicMs: () => number
}

/** Answers with the memory that goes over with them. */
interface TogetherAnswers {
  readonly answers: QueryAnswer[]
  readonly buffers: ArrayBufferLike[]
}

export class ThreadQueries {
  readonly #store: Store
  readonly #services: QueryServices
  /** What comes of selections that were read. */
  readonly news: ThreadNews
  readonly #running = new Map<number, Running>()
  /** Answers that go together; undefined where each goes by itself. */
  #together: TogetherAnswers | undefined
  /** Of series that are asked for again and again. */
  readonly #texts = new WeakMap<HistorySeries, string>()

  constructor(store: Store, services: QueryServices) {
    this.#store = store
    this.#services = services
    this.news = new ThreadNews(services)
  }

  /** What was asked together is answered together, as far as it takes a slice. */
  handleAll(messages: readonly QueryMessage[]): void {
    const endMs = this.#services.monotonicMs() + SLICE_MS
    const together: TogetherAnswers = { answers: [], buffers: [] }
    this.#together = together
    let handled = 0
    while (handled < messages.length && this.#services.monotonicMs() < endMs) this.handle(messages[handled++]!)
    this.#together = undefined
    const { answers, buffers } = together
    if (answers.length > 0) this.#services.answer({ kind: 'answers', answers }, buffers)
    if (handled < messages.length) this.#services.later(() => this.handleAll(messages.slice(handled)))
  }

  /** Each portion has memory of its own, since whoever takes it may hand that on. */
  #answer(answer: QueryAnswer): void {
    let [packed, buffers]: [QueryAnswer, ArrayBufferLike[]] = [answer, []]
    if (answer.kind === 'portion') {
      const { series, buffer } = pack(answer.series)
      packed = { ...answer, series }
      buffers = [buffer]
    }
    if (this.#together === undefined) this.#services.answer(packed, buffers)
    else {
      this.#together.answers.push(packed)
      this.#together.buffers.push(...buffers)
    }
  }

  handle(message: QueryMessage): void {
    if (message.kind === 'select') this.#select(message.query, message.selection)
    else if (message.kind === 'losses') this.#losses(message)
    else if (message.kind === 'families') this.#families(message.query, message)
    else if (message.kind === 'next') this.#next(message.query)
    else this.#end(message.query)
  }

  /** Ends what nobody goes on with. To be called every second. */
  sweep(): void {
    const oldest = this.#services.monotonicMs() - IDLE_MS
    for (const [query, { usedMs }] of this.#running) if (usedMs < oldest) this.#end(query)
  }

  #losses({ query, selection }: { readonly query: number; readonly selection: LossSelection }): void {
    try {
      this.#answer({ kind: 'lost', query, losses: this.#store.losses(selection) })
    } catch (error) {
      this.#failed(query, error)
    }
  }

  #families(query: number, { tenant, after }: FamilySelection): void {
    try {
      const families = this.#store.families(tenant, after, MOST_FAMILIES)
      this.#answer({ kind: 'families', query, families })
    } catch (error) {
      this.#failed(query, error)
    }
  }

  #select(
    query: number,
    { isWithoutSamples = false, withFamilies = false, isRecurring = false, follow, ...selection }: HistorySelection,
  ): void {
    try {
      const isOfIndex = isWithoutSamples && selection.fromMs <= 0 && selection.toMs >= LAST_MS
      const following = follow === undefined ? undefined : this.#follow(follow, selection)
      const steps = isOfIndex ? bareSeries(this.#store, selection) : this.#store.select({ ...selection, following })
      const families = withFamilies ? new FamilyLookup(this.#store) : undefined
      this.#running.set(query, { steps, isWithoutSamples, isRecurring, families, usedMs: this.#services.monotonicMs() })
    } catch (error) {
      this.#failed(query, error)
      return
    }
    this.#next(query)
  }

  #follow(number: number, selection: HistoryQuery): HistoryFollowing {
    const following = this.#store.following(selection)
    this.news.follow(number, following)
    return following
  }

  #next(query: number): void {
    const running = this.#running.get(query)
    if (running === undefined) {
      this.#answer({ kind: 'refused', query, status: 'INTERNAL', detail: IS_OVER })
      return
    }
    const { steps, isWithoutSamples, isRecurring, families } = running
    const endMs = this.#services.monotonicMs() + SLICE_MS
    const series: SentSamples[] = []
    let [samples, isLast] = [0, false]
    try {
      while (!isLast && samples < MOST_SAMPLES && this.#services.monotonicMs() < endMs) {
        const { done = false, value } = steps.next()
        isLast = done
        if (value === undefined) continue
        const one = isWithoutSamples ? { series: value.series, times: NONE, values: NONE } : value
        if (isRecurring) series.push({ ...one, series: this.#textOf(value.series) })
        else series.push(families === undefined ? one : { ...one, family: families.of(value.series) })
        samples += one.times.length + SAMPLES_OF_SERIES + SAMPLES_OF_WINDOW * (one.windows?.ends.length ?? 0)
      }
    } catch (error) {
      this.#failed(query, error)
      return
    }
    if (isLast) this.#running.delete(query)
    running.usedMs = this.#services.monotonicMs()
    this.#answer({ kind: 'portion', query, series, isLast })
  }

  #textOf(series: HistorySeries): string {
    const text = this.#texts.get(series) ?? JSON.stringify(series)
    this.#texts.set(series, text)
    return text
  }

  #failed(query: number, error: unknown): void {
    this.#running.delete(query)
    const status = statusOf(error)
    if (status === undefined) throw error
    this.#answer({ kind: 'refused', query, status, detail: (error as Error).message })
  }

  #end(query: number): void {
    this.#running.get(query)?.steps.return()
    this.#running.delete(query)
  }
}

/** What is known of series. Those of one metric come one after the other. */
class FamilyLookup {
  readonly #store: Pick<HistoryStore, 'familiesOf'>
  #tenant = ''
  #native = ''
  #name = ''
  #family: HistoryFamily | undefined

  constructor(store: Pick<HistoryStore, 'familiesOf'>) {
    this.#store = store
  }

  of({ tenant, native, name }: HistorySeries): HistoryFamily | undefined {
    if (tenant !== this.#tenant || native !== this.#native || name !== this.#name) {
      this.#tenant = tenant
      this.#native = native
      this.#name = name
      this.#family = familyOfSample(name, this.#store.familiesOf(tenant, native))
    }
    return this.#family
  }
}

/** Undefined if the thread cannot go on. */
function statusOf(error: unknown): 'INVALID_ARGUMENT' | 'INTERNAL' | undefined {
  if (error instanceof HistoryExpressionError || error instanceof HistoryBoundError) return 'INVALID_ARGUMENT'
  return error instanceof HistoryReadError ? 'INTERNAL' : undefined
}

/** What is stored of all times, of which no page is read. */
function* bareSeries(store: Store, selection: HistorySelection): ReturnType<HistoryStore['select']> {
  for (const series of store.series(selection)) yield series && { series, times: NONE, values: NONE }
}

/** The same in one piece of memory that can be given away: to hand over a piece takes longer than to copy a column. */
function pack(series: readonly SentSamples[]): { series: SentSamples[]; buffer: ArrayBufferLike } {
  let length = 0
  for (const one of series) for (const column of columnsOf(one)) length += column.length
  const { buffer } = Buffer.allocUnsafeSlow(8 * length)
  const bytes = new Uint8Array(buffer)
  let at = 0
  /** Copied as integers, so that each NaN stays the one that it is. */
  const packed = (column: Float64Array): Float64Array => {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), at)
    const copy = new Float64Array(buffer, at, column.length)
    at += column.byteLength
    return copy
  }
  const all = series.map(({ series, times, values, windows, place, family }): SentSamples => {
    const samples = { series, times: packed(times), values: packed(values), place, family }
    if (windows === undefined) return samples
    const columns = Object.entries(windows).map(([name, column]) => [
      name,
      typeof column === 'number' ? column : packed(column),
    ])
    return { ...samples, windows: Object.fromEntries(columns) as HistoryWindows }
  })
  return { series: all, buffer }
}

function columnsOf({ times, values, windows = {} as HistoryWindows }: SentSamples): Float64Array[] {
  return [times, values, ...Object.values(windows).filter((column) => typeof column !== 'number')]
}
