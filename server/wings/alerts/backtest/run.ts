/**
 * A backtest: rules are evaluated at the times at which a server would have done so, one after the other, over what the server has
 * stored by now. What it comes to are transitions: when each alert would have been pending, fired and ended.
 */
import type { SeriesSource } from '../../../../promql/series-source.ts'
import { LayeredSource } from '../evaluation/layered-source.ts'
import { offsetOf, slotAfter } from '../evaluation/schedule.ts'
import { changesOf } from '../evaluation/state.ts'
import type { Alert } from '../rules/alerting-rule.ts'
import { type External, RuleEvaluation } from '../rules/evaluation.ts'
import { groupPlace } from '../rules/files.ts'
import { type GroupRule, rulesOf } from '../rules/group.ts'
import type { RuleGroupDefinition } from '../rules/rule-file.ts'
import { RecordedColumns } from './recorded-columns.ts'

/** Evaluations of one rule at one time. */
const MOST_EVALUATIONS = 2_000_000
/** Samples of recorded series and of ALERTS that are kept. */
const MOST_RECORDED = 10_000_000
const EXTERNAL: External = { externalLabels: new Map(), externalUrl: '' }

/** Whose the rules of the configuration are: when a group is evaluated follows from that, too. */
const TENANT = 'default'

export interface BacktestGroup {
  readonly definition: RuleGroupDefinition
  readonly path: string
}

/** Milliseconds since 1970, and the interval of groups that have none of their own. */
export interface BacktestTimes {
  readonly fromMs: number
  readonly toMs: number
  readonly intervalMs: number
}

/** Something that would have happened at a time. */
export interface BacktestEvent {
  readonly timeMs: number
  readonly group: string
  readonly rule: string
  /** As it was then; undefined if the rule failed. */
  readonly alert: Alert | undefined
  /** Why the rule failed, the first time that it did so; empty if it did not. */
  readonly failure: string
}

/** Steps; undefined at each place where the source may be waiting. `reached`: is called with each time that is evaluated. */
export type BacktestSteps = Generator<BacktestEvent | undefined, void, void>

interface TestedGroup {
  readonly name: string
  readonly definition: RuleGroupDefinition
  readonly intervalMs: number
  readonly rules: readonly GroupRule[]
  readonly failures: Set<string>
  nextMs: number
}

/** Throws RangeError if there is too much to do. */
export function backtest(
  groups: readonly BacktestGroup[],
  source: SeriesSource,
  times: BacktestTimes,
  reached: (timeMs: number) => void = () => {},
): BacktestSteps {
  const tested = groups.map(({ definition, path }): TestedGroup => {
    const { name, intervalMs = times.intervalMs } = definition
    const shiftMs = offsetOf(JSON.stringify(groupPlace(TENANT, path, name)), intervalMs)
    const nextMs = slotAfter(times.fromMs - 1, intervalMs, shiftMs)
    return { name, definition, intervalMs, rules: rulesOf(definition), failures: new Set(), nextMs }
  })
  const count = tested.reduce(
    (sum, { rules, intervalMs, nextMs }) => sum + rules.length * Math.max(0, (times.toMs - nextMs) / intervalMs),
    0,
  )
  if (count > MOST_EVALUATIONS)
    throw new RangeError(
      `${Math.round(count)} evaluations of rules, at most ${MOST_EVALUATIONS} are done: choose a shorter time, a longer interval or fewer rules`,
    )
  return evaluated(tested, source, times.toMs, reached)
}

function* evaluated(
  groups: readonly TestedGroup[],
  source: SeriesSource,
  toMs: number,
  reached: (timeMs: number) => void,
): BacktestSteps {
  const recorded = new RecordedColumns()
  const layered = new LayeredSource(source, recorded)
  for (;;) {
    const timeMs = Math.min(...groups.map(({ nextMs }) => nextMs))
    if (!(timeMs <= toMs)) return
    reached(timeMs)
    for (const group of groups) {
      if (group.nextMs > timeMs) continue
      yield* groupAt(group, timeMs, layered, recorded)
      group.nextMs += group.intervalMs
    }
  }
}

function* groupAt(group: TestedGroup, timeMs: number, source: SeriesSource, recorded: RecordedColumns): BacktestSteps {
  const { offsetMs } = group.definition
  const evaluation = new RuleEvaluation(source, timeMs, EXTERNAL, offsetMs)
  for (const rule of group.rules) {
    const event = { timeMs, group: group.name, rule: rule.definition.name, alert: undefined, failure: '' }
    const before = rule.alerts
    const outcome = yield* rule.evaluate(evaluation)
    rule.adopt(outcome)
    const { failure = '' } = outcome
    if (failure !== '' && !group.failures.has(`${event.rule} ${failure}`)) {
      group.failures.add(`${event.rule} ${failure}`)
      yield { ...event, failure }
    }
    for (const change of changesOf(before, outcome.alerts, timeMs))
      if (change?.isTransition) yield { ...event, alert: change.alert }
    for (const sample of outcome.samples) recorded.add(sample, timeMs - offsetMs)
    if (recorded.samples > MOST_RECORDED)
      throw new RangeError(`the rules record more than ${MOST_RECORDED} samples: choose a shorter time or fewer rules`)
  }
}
