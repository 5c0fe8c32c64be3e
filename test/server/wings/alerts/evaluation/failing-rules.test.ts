/** The alerts of rules that cannot be evaluated. */
import { beforeEach, expect, it } from 'vitest'
import type { LabelSet } from '../../../../../promql/label-set.ts'
import { finish } from '../../../../../server/kernel/core/fair-work.ts'
import { FailingRules } from '../../../../../server/wings/alerts/evaluation/failing-rules.ts'
import { alertLabelsProblem } from '../../../../../server/wings/alerts/events.ts'

const MINUTE = 60_000

let failing: FailingRules
beforeEach(() => {
  failing = new FailingRules('disk.yml', 'disk')
})

/** What they are after an evaluation in a minute in which these rules have failed. */
function after(minute: number, ...names: readonly string[]): string[] {
  const problems = new Map(names.map((name) => [name, `${name} is wrong`]))
  const outcome = finish(failing.outcome(problems, minute * MINUTE))
  if (outcome !== undefined) failing.rule.adopt(outcome)
  return [...failing.rule.alerts.values()].map(({ labels, state }) => `${labels.get('rule')} ${state}`)
}

it('fire after five minutes, each with the labels of its rule, and end when it can be evaluated', () => {
  expect(after(1, 'Full', 'Slow')).toEqual(['Full pending', 'Slow pending'])
  expect(after(5, 'Full')).toEqual(['Full pending'])
  expect(after(6, 'Full')).toEqual(['Full firing'])
  const [alert] = failing.rule.alerts.values()
  expect(`${alert?.labels} ${alert?.annotations}`).toBe(
    '{alertname="CinnabarRuleFails", file="disk.yml", group="disk", rule="Full", severity="warning"} ' +
      '{summary="The rule Full of the group disk cannot be evaluated: Full is wrong"}',
  )
  expect(after(7)).toEqual(['Full inactive'])
  expect(after(7 + 15)).toEqual(['Full inactive'])
  expect(after(7 + 16)).toEqual([])
})

it('are nothing while no rule fails', () => {
  expect(finish(failing.outcome(new Map(), MINUTE))).toBe(undefined)
})

it('have labels that a value has room for, whatever the names are', () => {
  failing = new FailingRules(`${'ü'.repeat(5_000)}.yml`, '\ud800')
  after(1, '\u{1f600}'.repeat(5_000))
  const [alert] = failing.rule.alerts.values()
  const labels = alert?.labels as LabelSet
  expect(alertLabelsProblem(labels)).toBeUndefined()
  expect(String(alert?.annotations).isWellFormed()).toBe(true)
  expect(labels.get('rule')).toBe('\u{1f600}'.repeat(250))
})

it('are twenty at most, and their texts are cut', () => {
  expect(after(1, ...Array.from({ length: 30 }, (_, index) => `rule ${index}`))).toHaveLength(20)
  after(2, 'x'.repeat(5_000))
  const texts = [...failing.rule.alerts.values()].map(({ annotations }) => annotations.get('summary')?.length)
  expect(Math.max(...texts.map(Number))).toBeLessThan(8_000)
})
