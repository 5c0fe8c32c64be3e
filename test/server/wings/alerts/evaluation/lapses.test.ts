/** Alerts that go on although their expression does not hold, over the end of a process: what is stored of them says when they end. */
import { beforeEach, expect, it } from 'vitest'
import { LabelSet } from '../../../../../promql/label-set.ts'
import { finished, MemorySource } from '../../../../../promql/memory-source.ts'
import type { AlertRow } from '../../../../../server/kit/expressions.ts'
import { alertOf, changesOf, movedBack, rowOf } from '../../../../../server/wings/alerts/evaluation/state.ts'
import { RuleEvaluation } from '../../../../../server/wings/alerts/rules/evaluation.ts'
import { GroupRule } from '../../../../../server/wings/alerts/rules/group.ts'
import { readRuleFile } from '../../../../../server/wings/alerts/rules/rule-file.ts'

const MINUTE = 60_000
const EXTERNAL = { externalLabels: new Map<string, string>(), externalUrl: '' }

/** What outlives a process, by the labels. */
let disk: Map<string, AlertRow>
let source: MemorySource
let rule: GroupRule
let minute: number
let transitions: string[]

beforeEach(() => {
  disk = new Map()
  source = new MemorySource()
  minute = 0
  transitions = []
})

/** A process begins with what is stored; the one before is no more. */
async function start(keys: string): Promise<void> {
  const file = await readRuleFile(`groups: [{name: g, rules: [{alert: Hot, expr: level > 80, ${keys}}]}]`)
  if ('problems' in file) throw new Error(JSON.stringify(file.problems))
  const [definition] = file.groups[0]?.rules ?? []
  if (definition === undefined) throw new Error('no rule')
  rule = new GroupRule(definition, 0)
  const stored = [...disk.values()].map(alertOf)
  finished(rule.restore(new Map(stored.map((alert) => [alert.labels.key, alert]))))
}

/** One value in each minute from now on. */
function levels(...values: number[]): void {
  const labels = LabelSet.of([
    ['__name__', 'level'],
    ['host', 'a'],
  ])
  source.add(
    labels,
    values.map((value, index) => [(minute + index) * MINUTE, value]),
  )
}

function minutes(count: number): void {
  for (const end = minute + count; minute < end; minute++) {
    const outcome = finished(rule.evaluate(new RuleEvaluation(source, minute * MINUTE, EXTERNAL)))
    expect(outcome.failure).toBeUndefined()
    for (const change of changesOf(rule.alerts, outcome.alerts, minute * MINUTE)) {
      if (change === undefined) continue
      const row = rowOf('r', change.alert)
      if (change.isGone) disk.delete(row.labels)
      else disk.set(row.labels, row)
      if (change.isTransition) transitions.push(`${minute} ${row.state}`)
    }
    rule.adopt(outcome)
  }
}

const alerts = () => [...rule.alerts.values()]

it('what has not recovered goes on in the next process, until `recover` holds', async () => {
  await start('recover: level < 70')
  levels(85, 85, 75, 75, 75, 75, 60)
  minutes(4)
  await start('recover: level < 70')
  minutes(2)
  expect(alerts()).toMatchObject([{ state: 'firing', activeMs: 0, firedMs: 0 }])
  minutes(1)
  expect(transitions).toEqual(['0 firing', '6 inactive'])
})

it('what is held without data ends when it would have ended', async () => {
  await start('no_data: hold, no_data_for: 10m')
  // The last value counts for five minutes.
  levels(85, 85)
  minutes(9)
  expect([...disk.values()]).toMatchObject([{ state: 'firing', missing: 6 * MINUTE }])
  await start('no_data: hold, no_data_for: 10m')
  minutes(7)
  expect(alerts()).toMatchObject([{ state: 'firing', missingSinceMs: 6 * MINUTE }])
  minutes(1)
  expect(alerts()).toMatchObject([{ state: 'inactive', missingSinceMs: undefined, resolvedMs: 16 * MINUTE }])
  expect(transitions).toEqual(['0 firing', '16 inactive'])
})

it('what is held has been the same alert all the time when its data come back', async () => {
  await start('for: 2m, no_data: hold')
  levels(85, 85)
  minutes(8)
  await start('for: 2m, no_data: hold')
  levels(90, 90)
  minutes(2)
  expect(alerts()).toMatchObject([{ state: 'firing', activeMs: 0, missingSinceMs: undefined, value: 90 }])
  expect([...disk.values()]).toMatchObject([{ missing: undefined }])
  expect(transitions).toEqual(['0 pending', '2 firing'])
})

it('what is pending and has no data does not fire', async () => {
  await start('for: 8m, no_data: hold')
  levels(85)
  minutes(20)
  expect(transitions).toEqual(['0 pending'])
})

it('a rule that asks for nothing any more ends what was held', async () => {
  await start('no_data: hold')
  levels(85)
  minutes(8)
  await start('for: 0s')
  minutes(1)
  expect(transitions).toEqual(['0 firing', '8 inactive'])
})

it('with a clock that is set back, since when there are no data moves, too', async () => {
  await start('no_data: hold')
  levels(85)
  minutes(8)
  const [alert] = alerts()
  expect(alert?.missingSinceMs).toBe(5 * MINUTE)
  expect(alert && movedBack(alert, 2 * MINUTE).missingSinceMs).toBe(3 * MINUTE)
})
