/**
 * What a wing may ask of what is remembered: expressions of Prometheus' language, evaluated as the server evaluates those of people,
 * and what is stored of alerts, which follow from the answers.
 */
import type { Reader } from '../../auth/permissions.ts'
import type { QueryLimits } from '../../promql/evaluate/budget.ts'
import type { SeriesSource } from '../../promql/series-source.ts'
import type { AlertGroupRow, AlertRow } from '../../storage/store.ts'
import type { Journal } from '../kernel/channels/journal.ts'

export type { AlertGroupRow, AlertRow }

export interface Expressions {
  /** Why nothing can be evaluated now, and what to do about it; undefined if it can. */
  readonly problem: string | undefined
  /** What an evaluation may read and hold. */
  readonly limits: QueryLimits
  /** Settles when everything that was accepted up to now of a tenant is stored, so that it is found. Rejects if it will not be. */
  caughtUp(tenant: string): Promise<void>
  /** Runs steps over what somebody may read, as work of his tenant. Rejects with what they throw, and if they take too long. */
  run<T>(reader: Reader, steps: (source: SeriesSource) => Generator<undefined, T, void>): Promise<T>
  readonly stored: StoredAlerts
  readonly watch: EvaluationWatch
}

/** How the evaluation of rules goes: what evaluates them says so, and what promises others that it goes on asks. */
export class EvaluationWatch {
  #problemOf: ((tenant: string) => string | undefined) | undefined

  answeredBy(problemOf: (tenant: string) => string | undefined): void {
    this.#problemOf = problemOf
  }

  /** Why the rules of a tenant cannot be relied on now, for people; undefined if each could be evaluated, and none is late. */
  problemOf(tenant: string): string | undefined {
    return this.#problemOf === undefined ? 'no rules are evaluated' : this.#problemOf(tenant)
  }
}

export interface StoredAlerts {
  readonly journal: Pick<Journal, 'change'>
  readonly alerts: readonly AlertRow[]
  readonly groups: readonly AlertGroupRow[]
}
