/**
 * What a wing may ask of what is remembered: expressions of Prometheus' language, evaluated as the server evaluates those of people,
 * and what is stored of alerts, which follow from the answers.
 */
import type { Reader } from '../../auth/permissions.ts'
import type { QueryLimits } from '../../promql/evaluate/budget.ts'
import type { SeriesSource } from '../../promql/series-source.ts'
import type { AlertGroupRow, AlertRow, RuleFileRow } from '../../storage/store.ts'
import type { Journal } from '../kernel/channels/journal.ts'

export type { AlertGroupRow, AlertRow, RuleFileRow }

export interface Expressions {
  /** Why nothing can be evaluated now, and what to do about it; undefined if it can. */
  readonly problem: string | undefined
  /** What an evaluation may read and hold. */
  readonly limits: QueryLimits
  /** Settles when everything that was accepted up to now of a tenant is stored, so that it is found. Rejects if it will not be. */
  caughtUp(tenant: string): Promise<void>
  /** For steps that are run again and again. */
  recurring(): RecurringRun
  readonly stored: StoredAlerts
  readonly watch: EvaluationWatch
}

/** Steps that are run at one time after the other: what they ask for is known from the last time. */
export interface RecurringRun {
  /** How long its last steps have taken, in milliseconds, without what they have waited. */
  readonly workedMs: number
  /** Asks for what they will ask for at a time, if it was little the last time. Nothing of it is shown before `run` at the same time. */
  ask(reader: Reader, timeMs: number): void
  /** Runs them over what somebody may read, as work of his tenant. Rejects with what they throw, and if they take too long. */
  run<T>(reader: Reader, timeMs: number, steps: (source: SeriesSource) => Generator<undefined, T, void>): Promise<T>
}

/** What is known of the rules of a tenant. */
export interface WatchedRules {
  /** Why they cannot be relied on now, for people; undefined if each could be evaluated, and none is late. */
  problemOf(tenant: string): string | undefined
  /** The expression of an alerting rule; undefined if there is no such rule. */
  queryOf(tenant: string, group: string, rule: string): string | undefined
  /** What an alert that is active says now; undefined if there is none with these labels. */
  saidOf(tenant: string, group: string, rule: string, labels: Iterable<Text>): SaidOfAlert | undefined
}

type Text = readonly [name: string, text: string]

/** It changes without a transition. */
export interface SaidOfAlert {
  /** As text: it may be NaN. */
  readonly value: string
  /** Ascending by name. */
  readonly annotations: readonly Text[]
}

/** How the evaluation of rules goes: what evaluates them says so, and what promises others that it goes on asks. */
export class EvaluationWatch implements WatchedRules {
  #rules: WatchedRules | undefined

  answeredBy(rules: WatchedRules): void {
    this.#rules = rules
  }

  problemOf(tenant: string): string | undefined {
    return this.#rules === undefined ? 'no rules are evaluated' : this.#rules.problemOf(tenant)
  }

  queryOf(tenant: string, group: string, rule: string): string | undefined {
    return this.#rules?.queryOf(tenant, group, rule)
  }

  saidOf(tenant: string, group: string, rule: string, labels: Iterable<Text>): SaidOfAlert | undefined {
    return this.#rules?.saidOf(tenant, group, rule, labels)
  }
}

export interface StoredAlerts {
  readonly journal: Pick<Journal, 'change'>
  readonly alerts: readonly AlertRow[]
  readonly groups: readonly AlertGroupRow[]
  /** The rule files that users had put when the server started. */
  readonly files: readonly RuleFileRow[]
}
