/**
 * What has come of selections that the server follows: the thread of the history keeps where it is with each, until the server says that
 * it is over. So their bounds are those of the server.
 */
import type { HistoryFollowing, HistoryNews } from '../../../storage/history/store.ts'
import { ANEW, type NewsAnswer, type NewsAsked } from './messages.ts'

/** An answer takes no longer, and has no more samples, but for those of one selection. */
const SLICE_MS = 20
const MOST_SAMPLES = 16_384

export interface NewsServices {
  /** The memory of the buffer goes over to the server. */
  readonly answer: (answer: NewsAnswer, buffers: readonly ArrayBufferLike[]) => void
  /** Has something done after the messages that are there. */
  readonly later: (act: () => void) => void
  readonly monotonicMs: () => number
}

export class ThreadNews {
  readonly #services: NewsServices
  /** By their numbers. */
  readonly #followed = new Map<number, HistoryFollowing>()

  constructor(services: NewsServices) {
    this.#services = services
  }

  follow(number: number, following: HistoryFollowing): void {
    this.#followed.set(number, following)
  }

  handle({ follows, over }: Omit<NewsAsked, 'kind'>): void {
    for (const number of over) this.#followed.delete(number)
    if (follows.length > 0) this.#answer(follows)
  }

  /** Answers in slices, so that recording has its turn. */
  #answer(asked: readonly number[]): void {
    const { answer, later, monotonicMs } = this.#services
    const endMs = monotonicMs() + SLICE_MS
    const counts: number[] = []
    const all: HistoryNews[] = []
    let samples = 0
    while (counts.length < asked.length && samples < MOST_SAMPLES && monotonicMs() < endMs) {
      const news = this.#newsOf(asked[counts.length]!)
      counts.push(news?.times.length ?? ANEW)
      if (news === undefined || news.times.length === 0) continue
      all.push(news)
      samples += news.times.length
    }
    const columns = joined(all, samples)
    answer({ kind: 'news', follows: asked.slice(0, counts.length), counts, columns }, [columns.buffer])
    if (counts.length < asked.length) later(() => this.#answer(asked.slice(counts.length)))
  }

  #newsOf(number: number): HistoryNews | undefined {
    const news = this.#followed.get(number)?.news()
    if (news === undefined) this.#followed.delete(number)
    return news
  }
}

/** Copied as a whole, so that each NaN stays the one that it is. */
function joined(all: readonly HistoryNews[], samples: number): Float64Array<ArrayBuffer> {
  const columns = new Float64Array(3 * samples)
  let at = 0
  for (const { places, times, values } of all) {
    columns.set(places, at)
    columns.set(times, samples + at)
    columns.set(values, 2 * samples + at)
    at += places.length
  }
  return columns
}
