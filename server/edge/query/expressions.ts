/** Expressions of rules over the history: as those of people, but that they wait for no turn. */
import { QUERY_LIMITS, type QueryLimits } from '../../../promql/evaluate/budget.ts'
import type { SeriesSource } from '../../../promql/series-source.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { FairWork } from '../../kernel/core/fair-work.ts'
import { EvaluationWatch, type Expressions } from '../../kit/expressions.ts'
import type { RememberedHistory } from '../../kit/history.ts'
import type { QuerySection } from '../config.ts'
import { ReadersHistory } from './asked-history.ts'
import { HistorySource } from './history-source.ts'
import { QueryProblem } from './problems.ts'
import { MAX_BYTES, runQuery } from './run.ts'

const NO_HISTORY = 'this server has no history'

export interface ExpressionsServices extends Pick<Expressions, 'stored'> {
  /** Undefined if nothing here remembers anything. */
  readonly history: () => RememberedHistory | undefined
  readonly work: Pick<FairWork, 'run'>
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimeout' | 'clear'>
  /** The section in force. */
  readonly section: () => QuerySection
}

export class HistoryExpressions implements Expressions {
  readonly stored: Expressions['stored']
  readonly watch = new EvaluationWatch()
  readonly #services: ExpressionsServices
  /** Nobody ends the evaluation of a rule. */
  readonly #ended = new AbortController().signal

  constructor(services: ExpressionsServices) {
    this.#services = services
    this.stored = services.stored
  }

  get problem(): string | undefined {
    const history = this.#services.history()
    return history === undefined ? NO_HISTORY : history.unreadable
  }

  get limits(): QueryLimits {
    return { ...QUERY_LIMITS, maxSamples: this.#services.section().maxSamples, maxBytes: MAX_BYTES }
  }

  async caughtUp(tenant: string): Promise<void> {
    await this.#history.caughtUp(tenant)
  }

  async run<T>(
    reader: Parameters<Expressions['run']>[0],
    steps: (source: SeriesSource) => Generator<undefined, T, void>,
  ): Promise<T> {
    const history = this.#history
    const { work, clock, section } = this.#services
    const readable = new ReadersHistory(history, reader, work)
    const source = new HistorySource((selection) => readable.select(selection))
    const { timeout: timeoutMs } = section()
    return runQuery(steps(source), source, { tenant: reader.tenant, work, clock, timeoutMs, ended: this.#ended })
  }

  get #history(): RememberedHistory {
    const history = this.#services.history()
    if (history === undefined) throw new QueryProblem('unavailable', NO_HISTORY)
    return history
  }
}
