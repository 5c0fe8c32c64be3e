/** Expressions of rules over the history: as those of people, but that they wait for no turn. */
import { QUERY_LIMITS, type QueryLimits } from '../../../promql/evaluate/budget.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { FairWork } from '../../kernel/core/fair-work.ts'
import { EvaluationWatch, type Expressions, type RecurringRun } from '../../kit/expressions.ts'
import type { RememberedHistory } from '../../kit/history.ts'
import type { QuerySection } from '../config.ts'
import { RecurringLabels } from './history-source.ts'
import { QueryProblem } from './problems.ts'
import { HistoryRun } from './recurring.ts'
import { MAX_BYTES } from './run.ts'

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
  readonly #labels = new RecurringLabels()

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

  recurring(): RecurringRun {
    return new HistoryRun(() => this.#history, { ...this.#services, labels: this.#labels })
  }

  get #history(): RememberedHistory {
    const history = this.#services.history()
    if (history === undefined) throw new QueryProblem('unavailable', NO_HISTORY)
    return history
  }
}
