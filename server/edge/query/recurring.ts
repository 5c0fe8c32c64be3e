/**
 * Steps that are run over the history at one time after the other, such as those of a rule. What they ask for is as far from the time as
 * it was the last time, so it can be asked for before they are run, together with what others will ask for.
 */
import type { SeriesSource } from '../../../promql/series-source.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { FairWork } from '../../kernel/core/fair-work.ts'
import type { RecurringRun } from '../../kit/expressions.ts'
import type { RememberedHistory, RememberedSelection } from '../../kit/history.ts'
import type { QuerySection } from '../config.ts'
import { ReadersHistory } from './asked-history.ts'
import { HistorySource, type RecurringLabels } from './history-source.ts'
import { runQuery } from './run.ts'

/** Samples, a series counting as some, beyond which nothing is asked for before its turn: what was asked for waits in memory. */
const MOST_AHEAD = 8_192
const SAMPLES_OF_SERIES = 64
/** Portions of one selection that are asked for: that of the server, and the first one of the tenant. */
const PORTIONS_AHEAD = 2

type Reader = Parameters<RecurringRun['run']>[0]
type Portions = ReturnType<RememberedHistory['select']>

export interface HistoryRunServices {
  readonly work: Pick<FairWork, 'run'>
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimeout' | 'clear'>
  readonly labels: RecurringLabels
  /** The section in force. */
  readonly section: () => QuerySection
}

export class HistoryRun implements RecurringRun {
  readonly #history: () => RememberedHistory
  readonly #services: HistoryRunServices
  /** Nobody ends it. */
  readonly #ended = new AbortController().signal
  /** What it asked for the last time, from the time on; undefined if that was much. */
  #habit: readonly RememberedSelection[] | undefined
  /** What is asked for and was not given yet, by what it is. */
  readonly #ahead = new Map<string, Portions>()
  workedMs = 0

  /** `history` throws QueryProblem. */
  constructor(history: () => RememberedHistory, services: HistoryRunServices) {
    this.#history = history
    this.#services = services
  }

  ask(reader: Reader, timeMs: number): void {
    this.#forget()
    for (const habit of this.#habit ?? []) {
      const selection = { ...habit, fromMs: habit.fromMs + timeMs, toMs: habit.toMs + timeMs }
      this.#ahead.set(
        JSON.stringify(selection),
        askedFor(this.#history().select(reader, { ...selection, isRecurring: true })),
      )
    }
  }

  async run<T>(
    reader: Reader,
    timeMs: number,
    steps: (source: SeriesSource) => Generator<undefined, T, void>,
  ): Promise<T> {
    const { work, clock, section, labels } = this.#services
    const history = this.#history()
    const asked: RememberedSelection[] = []
    let read = 0
    const select = (...[, selection]: Parameters<RememberedHistory['select']>): Portions => {
      asked.push({ ...selection, fromMs: selection.fromMs - timeMs, toMs: selection.toMs - timeMs })
      const key = JSON.stringify(selection)
      const portions = this.#ahead.get(key) ?? history.select(reader, { ...selection, isRecurring: true })
      this.#ahead.delete(key)
      return counted(portions, (samples) => {
        read += samples
      })
    }
    // What came before its turn is judged now.
    const readable = new ReadersHistory({ select, losses: (...of) => history.losses(...of) }, reader, work)
    const source = new HistorySource(
      (selection) => readable.select(selection),
      true,
      (series) => labels.of(series),
    )
    const { timeout: timeoutMs } = section()
    this.workedMs = 0
    try {
      return await runQuery(steps(source), source, {
        tenant: reader.tenant,
        work,
        clock,
        timeoutMs,
        ended: this.#ended,
        worked: (ms) => {
          this.workedMs += ms
        },
      })
    } finally {
      this.#forget()
      this.#habit = read > MOST_AHEAD ? undefined : asked
    }
  }

  #forget(): void {
    for (const portions of this.#ahead.values()) void portions.return()
    this.#ahead.clear()
  }
}

/** The first portions are asked for now. */
function askedFor(portions: Portions): Portions {
  const first = Array.from({ length: PORTIONS_AHEAD }, () => portions.next())
  // Whoever takes them learns what went wrong.
  for (const one of first) one.catch(() => {})
  const rest = (async function* () {
    for (const one of first) {
      const { done, value } = await one
      if (done === true) return
      yield value
    }
    yield* portions
  })()
  const end = rest.return.bind(rest)
  rest.return = (value) => {
    void portions.return()
    return end(value)
  }
  return rest
}

async function* counted(portions: Portions, count: (samples: number) => void): Portions {
  for await (const portion of portions) {
    count(portion.reduce((sum, { times }) => sum + times.length + SAMPLES_OF_SERIES, 0))
    yield portion
  }
}
