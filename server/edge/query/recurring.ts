/**
 * Steps that are run over the history at one time after the other, such as those of a rule. What they ask for is as far from the time as
 * it was the last time, so it can be asked for before they are run, together with what others will ask for.
 */
import type { SeriesSource } from '../../../promql/series-source.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { FairWork } from '../../kernel/core/fair-work.ts'
import type { RecurringRun } from '../../kit/expressions.ts'
import type { CurrentSelection, RememberedHistory, RememberedSelection } from '../../kit/history.ts'
import type { QuerySection } from '../config.ts'
import { ReadersHistory } from './asked-history.ts'
import { HistorySource, type RecurringLabels } from './history-source.ts'
import { runQuery, settledOrOver } from './run.ts'

/** Samples, a series counting as some, beyond which nothing is asked for before its turn: what was asked for waits in memory. */
const MOST_AHEAD = 8_192
const SAMPLES_OF_SERIES = 64
/** Selections that are asked for before their turn: a template may have many for each alert, also where none of them has a series. */
const MOST_ASKED_AHEAD = 64
/** Portions of one selection that are asked for: that of the server, and the first one of the tenant. */
const PORTIONS_AHEAD = 2
const NOTHING: readonly never[] = []

type Reader = Parameters<RecurringRun['run']>[0]
type Portions = ReturnType<RememberedHistory['select']>

export interface HistoryRunServices {
  readonly work: Pick<FairWork, 'run'>
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimeout' | 'clear'>
  readonly labels: RecurringLabels
  /** The section in force. */
  readonly section: () => QuerySection
}

/** Something that is asked for before its turn. */
interface Ahead {
  readonly selection: RememberedSelection
  /** What is there; undefined if it is selected. */
  current: CurrentSelection | undefined
  portions: Portions | undefined
}

export class HistoryRun implements RecurringRun {
  readonly #history: () => RememberedHistory
  readonly #services: HistoryRunServices
  /** What it asked for the last time, from the time on. */
  #habit: readonly RememberedSelection[] = NOTHING
  /** What is asked for and was not given yet. */
  #ahead: readonly Ahead[] = NOTHING
  /** Settles when it is known what is there; undefined if it is. Never rejects. */
  #asking: Promise<void> | undefined
  workedMs = 0

  /** `history` throws QueryProblem. */
  constructor(history: () => RememberedHistory, services: HistoryRunServices) {
    this.#history = history
    this.#services = services
  }

  ask(reader: Reader, timeMs: number): void {
    this.#forget()
    if (this.#habit.length === 0) return
    this.#ahead = this.#habit.map((habit) => ({
      selection: movedBy(habit, timeMs),
      current: undefined,
      portions: undefined,
    }))
    this.#asking = this.#ask(reader, this.#ahead)
  }

  /** What is not there is selected now. */
  async #ask(reader: Reader, all: readonly Ahead[]): Promise<void> {
    try {
      const history = this.#history()
      const current = await Promise.all(all.map(({ selection }) => history.current(reader, selection)))
      for (const [index, one] of all.entries()) {
        one.current = current[index]
        const isWanted = one.current === undefined && all === this.#ahead
        if (isWanted) one.portions = askedFor(history.select(reader, one.selection))
      }
    } catch {
      // Why not is found when it is run.
    }
    if (all === this.#ahead) this.#asking = undefined
  }

  async run<T>(
    reader: Reader,
    timeMs: number,
    steps: (source: SeriesSource) => Generator<undefined, T, void>,
  ): Promise<T> {
    const { work, clock, section, labels } = this.#services
    this.workedMs = 0
    const lastMs = clock.monotonicMs() + section().timeout
    if (this.#asking !== undefined) await settledOrOver(this.#asking, { clock, lastMs })
    const history = this.#history()
    const asked: RememberedSelection[] = []
    let read = 0
    const select = (...[, selection]: Parameters<RememberedHistory['select']>): Portions =>
      counted(this.#taken(selection) ?? history.select(reader, selection), (samples) => {
        read += samples
      })
    // What came before its turn is judged now.
    const readable = new ReadersHistory({ select, losses: (...of) => history.losses(...of) }, reader, work)
    const source = new HistorySource(
      (selection) => readable.select({ ...selection, isRecurring: true }),
      true,
      (series) => labels.of(series),
      (selection) => {
        if (asked.length < MOST_ASKED_AHEAD) {
          const habit = this.#habit.find((one) => isSame(one, selection, timeMs))
          asked.push(habit ?? { ...movedBy(selection, -timeMs), isRecurring: true })
        }
        return this.#found(selection)?.current?.series()
      },
    )
    try {
      return await runQuery(steps(source), source, {
        tenant: reader.tenant,
        work,
        clock,
        timeoutMs: lastMs - clock.monotonicMs(),
        worked: (ms) => {
          this.workedMs += ms
        },
      })
    } finally {
      this.#forget()
      // Nearly always it is as the last time: what stays as it is costs no collection of garbage.
      if (read > MOST_AHEAD) this.#habit = NOTHING
      else if (!isAsBefore(asked, this.#habit)) this.#habit = asked
    }
  }

  #found(selection: RememberedSelection): Ahead | undefined {
    return this.#ahead.find((one) => isSame(one.selection, selection))
  }

  /** They are given once. */
  #taken(selection: RememberedSelection): Portions | undefined {
    const found = this.#ahead.find((one) => one.portions !== undefined && isSame(one.selection, selection))
    const portions = found?.portions
    if (found !== undefined) found.portions = undefined
    return portions
  }

  #forget(): void {
    for (const { portions } of this.#ahead) void portions?.return()
    this.#ahead = NOTHING
    this.#asking = undefined
  }
}

/** What is found among those before is the same object. */
function isAsBefore(asked: readonly RememberedSelection[], before: readonly RememberedSelection[]): boolean {
  return asked.length === before.length && asked.every((one, at) => one === before[at])
}

function movedBy({ fromMs, toMs, twoBeforeMs, ...selection }: RememberedSelection, ms: number): RememberedSelection {
  const before = twoBeforeMs === undefined ? undefined : twoBeforeMs + ms
  return { ...selection, fromMs: fromMs + ms, toMs: toMs + ms, twoBeforeMs: before }
}

/** Whether a selection is the same as another, which is so much later. */
function isSame(one: RememberedSelection, other: RememberedSelection, laterMs = 0): boolean {
  const { fromMs, toMs, stepMs, twoBeforeMs, matchers } = one
  if (fromMs + laterMs !== other.fromMs || toMs + laterMs !== other.toMs || stepMs !== other.stepMs) return false
  if (twoBeforeMs === undefined ? other.twoBeforeMs !== undefined : twoBeforeMs + laterMs !== other.twoBeforeMs)
    return false
  if (matchers.length !== other.matchers.length) return false
  return matchers.every(({ label, operator, text }, at) => {
    const its = other.matchers[at]
    return label === its?.label && operator === its.operator && text === its.text
  })
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
