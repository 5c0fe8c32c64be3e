/**
 * What the files of a history have, beside what was sent and acknowledged: every number that was acknowledged is there once, under its
 * series and at its time, nothing is there that was not sent, and each kill lies in a range of loss.
 */
import { History } from '../../../storage/history/history.ts'
import type { HistoryLoss } from '../../../storage/history/store.ts'
import type { PromisedFeed } from '../../rig/promised-feed.ts'
import type { Door } from './doors.ts'

const EVER_MS = 1e14
const SLICE_MS = 50
const QUOTAS = new Map<string, never>()
/** Clocks of two processes of one machine, in whole milliseconds. */
const CLOCK_MS = 1

/** Samples by the time of each, of one series. */
type Kept = ReadonlyMap<number, number>

export interface KeptHistory {
  /** By name and labels, as `name{label=text}`, without stale markers. */
  readonly series: ReadonlyMap<string, Kept>
  readonly losses: readonly HistoryLoss[]
  /** What the store counts, and what a query gives, stale markers included: more were stored if one is there twice. */
  readonly stored: number
  readonly selected: number
}

/** Opens what a server has left. `isMerged`: everything that can be merged is merged first. */
export function keptIn(directory: string, { isMerged }: { readonly isMerged: boolean }): KeptHistory {
  const limits = { keepMs: EVER_MS, keepRollupsMs: EVER_MS, maxBytes: 2 ** 40, quotas: QUOTAS }
  // Pages are made of everything that is no page yet.
  const history = History.open({ directory, limits, clock: Date.now, ...(isMerged && { headSamples: 1 }) })
  try {
    if (isMerged) while (history.work(SLICE_MS));
    const range = { tenant: 'default', fromMs: 0, toMs: EVER_MS }
    const series = new Map<string, Kept>()
    let selected = 0
    for (const one of history.select({ ...range, matchers: [] })) {
      if (one === undefined) continue
      const { name, labels } = one.series
      const samples = new Map<number, number>()
      for (const [at, value] of one.values.entries()) if (!Number.isNaN(value)) samples.set(one.times[at]!, value)
      series.set(`${name}{${labels.map(([label, text]) => `${label}=${text}`).join(',')}}`, samples)
      selected += one.values.length
    }
    const stored = history.figures().tenants.get('default')?.samples ?? 0
    return { series, losses: history.losses(range), stored, selected }
  } finally {
    history.close()
  }
}

/** A feed of numbers that were promised, and its name in the history. */
export interface JudgedFeed {
  readonly shown: string
  readonly feed: PromisedFeed
}

export interface Verdict {
  readonly acknowledged: number
  readonly kept: number
  readonly missing: number
  readonly twice: number
  readonly wrong: number
  readonly killsWithoutLoss: number
  /** The first of each that is not right, for people. */
  readonly examples: readonly string[]
}

export class HistoryJudge {
  readonly #kept: KeptHistory
  readonly #examples: string[] = []
  #acknowledged = 0
  #missing = 0
  #wrong = 0

  constructor(kept: KeptHistory) {
    this.#kept = kept
  }

  judge(feeds: readonly JudgedFeed[], doors: readonly Door[], killsMs: readonly number[]): Verdict {
    let kept = 0
    for (const feed of feeds) kept += this.#feed(feed)
    for (const door of doors) kept += this.#door(door)
    const { losses, stored, selected } = this.#kept
    const uncovered = killsMs.filter((killMs) => !losses.some(({ fromMs, toMs }) => fromMs <= killMs && killMs <= toMs))
    const counted = losses.filter(({ reason, count }) => reason !== 'restart' && count === 0)
    for (const { reason } of counted) this.#note(`a loss of unknown size: ${reason}`)
    if (uncovered.length > 0) this.#note(`the kill at ${uncovered[0]} lies in no range of loss`)
    const twice = stored - selected
    if (twice !== 0) this.#note(`${stored} samples are stored, and a query gives ${selected}`)
    return {
      acknowledged: this.#acknowledged,
      kept,
      missing: this.#missing,
      twice,
      wrong: this.#wrong + counted.length,
      killsWithoutLoss: uncovered.length,
      examples: this.#examples,
    }
  }

  /** Gives how many samples of it there are. */
  #feed({ shown, feed }: JudgedFeed): number {
    let kept = 0
    for (const [name, samples] of this.#named(shown)) {
      kept += samples.size
      for (const [timeMs, value] of samples) {
        const isSent = value >= 0 && value < feed.sent
        const { n, timeMs: sentMs } = feed.sampleOf(value)
        if (isSent && name === `${shown}{n=${n}}` && sentMs === timeMs) continue
        this.#wrong++
        this.#note(`${name} has ${value} at ${timeMs}`)
      }
    }
    for (const number of feed.promised) {
      this.#acknowledged++
      const { n, timeMs } = feed.sampleOf(number)
      if (this.#kept.series.get(`${shown}{n=${n}}`)?.get(timeMs) === number) continue
      this.#missing++
      this.#note(`${shown}{n=${n}} lacks ${number} at ${timeMs}`)
    }
    return kept
  }

  #door({ shown, sentMs, acknowledgedMs }: Door): number {
    const found = new Map<number, number>()
    for (const [name, samples] of this.#named(shown)) {
      for (const [timeMs, number] of samples) {
        const isSent = timeMs >= (sentMs.get(number) ?? Number.POSITIVE_INFINITY) - CLOCK_MS
        const isInTime = timeMs <= (acknowledgedMs.get(number) ?? Number.POSITIVE_INFINITY) + CLOCK_MS
        if (!isSent || !isInTime || found.has(number)) {
          this.#wrong++
          this.#note(`${name} has ${number} at ${timeMs}, which was sent at ${sentMs.get(number)}`)
        }
        found.set(number, timeMs)
      }
    }
    for (const [number, atMs] of acknowledgedMs) {
      this.#acknowledged++
      if (found.has(number)) continue
      this.#missing++
      this.#note(`${shown} lacks ${number}, which the server had at ${atMs}`)
    }
    return found.size
  }

  #named(name: string): [string, Kept][] {
    return [...this.#kept.series].filter(([shown]) => shown.startsWith(`${name}{`))
  }

  #note(example: string): void {
    if (this.#examples.length < 10) this.#examples.push(example)
  }
}
