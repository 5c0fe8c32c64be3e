/**
 * The series of a server as a backtest sees them. What a selector needs is read for hours at once, and stays until a later time needs
 * more: evaluations go on from one time to the next.
 */
import type { LabelMatcher, MatchOperator } from '../../../../promql/label-matcher.ts'
import { firstFrom } from '../../../../promql/memory-source.ts'
import type { SeriesSource, SourceSeries, Stream } from '../../../../promql/series-source.ts'

/** So much more than is needed now is read. */
const AHEAD_MS = 6 * 3_600_000
/** Samples of all selectors at one time. */
const MOST_SAMPLES = 20_000_000

/** Times: milliseconds since 1970; both ends are included. */
export interface WantedSeries {
  readonly fromMs: number
  readonly toMs: number
  readonly matchers: readonly { readonly label: string; readonly operator: MatchOperator; readonly text: string }[]
}

type StoredSeries = Pick<SourceSeries, 'labels' | 'times' | 'values'>

/** Reads what a server has. Rejects with an error for people. */
export type ReadServer = (wanted: WantedSeries) => Promise<readonly StoredSeries[]>

interface ReadWindow {
  readonly fromMs: number
  readonly toMs: number
  readonly series: readonly StoredSeries[]
  readonly samples: number
  /** The longest time that was asked for at once. */
  spanMs: number
}

export class ReadSource implements SeriesSource {
  readonly #read: ReadServer
  readonly #endMs: number
  /** By the texts of their matchers. */
  readonly #windows = new Map<string, ReadWindow>()
  #waiting: Promise<void> | undefined
  #failure: unknown

  /** Nothing after `endMs` is of interest. */
  constructor(read: ReadServer, endMs: number) {
    this.#read = read
    this.#endMs = endMs
  }

  /** Settles when steps can go on; undefined if they can. Never rejects. */
  get waiting(): Promise<void> | undefined {
    return this.#waiting
  }

  /** Why nothing more can be read; undefined if it can. Steps have taken it for a fault of their rule. */
  get failure(): unknown {
    return this.#failure
  }

  *select(matchers: readonly LabelMatcher[], fromMs: number, toMs: number): Stream<SourceSeries> {
    const key = matchers.map(({ label, operator, text }) => JSON.stringify([label, operator, text])).join()
    for (let window = this.#windows.get(key); ; window = this.#windows.get(key)) {
      if (window !== undefined) window.spanMs = Math.max(window.spanMs, toMs - fromMs)
      if (window !== undefined && window.fromMs <= fromMs && toMs <= window.toMs) break
      this.#begin(key, matchers, fromMs, toMs, window)
      yield undefined
      if (this.#failure !== undefined) throw this.#failure
    }
    for (const { labels, times, values } of this.#windows.get(key)?.series ?? []) {
      const from = firstFrom(times, fromMs)
      const to = firstFrom(times, toMs + 1)
      if (from < to) yield { labels, times: times.subarray(from, to), values: values.subarray(from, to) }
      yield undefined
    }
  }

  /** Reads another window, which has what will be asked for next if times only go on. */
  #begin(key: string, matchers: readonly LabelMatcher[], fromMs: number, toMs: number, before?: ReadWindow): void {
    const spanMs = Math.max(toMs - fromMs, before?.spanMs ?? 0)
    const lastMs = Math.max(toMs, before?.toMs ?? toMs)
    const window = {
      fromMs: Math.max(0, toMs - spanMs),
      toMs: Math.max(lastMs, Math.min(lastMs + AHEAD_MS, this.#endMs)),
    }
    const wanted = { ...window, matchers: matchers.map(({ label, operator, text }) => ({ label, operator, text })) }
    this.#waiting = this.#read(wanted).then(
      (series) => {
        const samples = series.reduce((sum, { times }) => sum + times.length, 0)
        this.#windows.set(key, { ...window, series, samples, spanMs })
        const held = [...this.#windows.values()].reduce((sum, one) => sum + one.samples, 0)
        if (held > MOST_SAMPLES)
          this.#failure = new Error(`the rules need more than ${MOST_SAMPLES} samples at one time: test fewer of them`)
        this.#waiting = undefined
      },
      (error: unknown) => {
        this.#failure = error
        this.#waiting = undefined
      },
    )
  }
}
