/** `producer.rules`: each rule with its group, in pages. */
import { expect, it } from 'vitest'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import { finish, isSteps } from '../../../../server/kernel/core/fair-work.ts'
import type { ShownRule, ShownRuleGroup } from '../../../../server/kit/rules.ts'
import { RulesSensor } from '../../../../server/wings/alerts/rules-sensor.ts'
import type { Json } from '../../../support/records.ts'

const RULE: ShownRule = {
  kind: 'alert',
  name: 'Full',
  query: 'free < 0.1',
  threshold: { expr: 'free', value: 0.1 },
  labels: { severity: 'page' },
  annotations: { summary: '{{ $value }}' },
  forMs: 60_000,
  keepFiringForMs: 0,
  alerts: [
    { labels: {}, annotations: {}, state: 'firing', value: 1, activeMs: 0, keptSinceMs: undefined },
    { labels: {}, annotations: {}, state: 'pending', value: 1, activeMs: 0, keptSinceMs: undefined },
    { labels: {}, annotations: {}, state: 'pending', value: 1, activeMs: 0, keptSinceMs: undefined },
  ],
  health: 'ok',
  problem: '',
  tookMs: 1.5,
  evaluatedMs: 1_700_000_000_000,
}

function shown(rules: readonly ShownRule[], after?: number): Json[] {
  const groups: ShownRuleGroup[] = [
    { name: 'g', file: 'disk.yml', intervalMs: 60_000, limit: 0, tookMs: 3, evaluatedMs: undefined, rules },
  ]
  const sensor = new RulesSensor(
    {
      *groupsFor() {
        yield
        return groups
      },
    },
    { microseconds: () => 0 },
  )
  const args = new Map(after === undefined ? [] : [['after', after]])
  const steps = sensor.measure(undefined, args, { tenant: 'acme' } as never)
  if (!isSteps(steps)) throw new Error('it is given in steps')
  return valueToJson(finish(steps).value) as Json[]
}

it('has what a rule asks, how it was evaluated, and how many alerts it has', () => {
  const record: ShownRule = { ...RULE, kind: 'record', name: 'a:b', threshold: undefined, alerts: [], forMs: 0 }
  const failed: ShownRule = { ...RULE, health: 'err', problem: 'too much', evaluatedMs: undefined }
  const [first, second, third] = shown([RULE, record, failed])
  expect(first).toEqual({
    rule: 1,
    tenant: 'acme',
    file: 'disk.yml',
    group: 'g',
    name: 'Full',
    kind: 'alert',
    expr: 'free < 0.1',
    drawn: 'free',
    threshold: 0.1,
    for: 60_000_000,
    keep_firing_for: 0,
    labels: { severity: 'page' },
    annotations: { summary: '{{ $value }}' },
    health: 'ok',
    problem: '',
    evaluated: 1_700_000_000_000_000,
    took: 1_500,
    interval: 60_000_000,
    group_took: 3_000,
    pending: 2,
    firing: 1,
  })
  expect(second).toMatchObject({ rule: 2, kind: 'record', name: 'a:b', pending: 0, firing: 0 })
  expect(second).not.toHaveProperty('drawn')
  expect(third).toMatchObject({ health: 'err', problem: 'too much', evaluated: 0 })
})

it('goes on after a number, however long the rules are', () => {
  const long = 'x'.repeat(70_000)
  const rules = Array.from({ length: 200 }, () => ({ ...RULE, query: long, problem: long, annotations: { a: long } }))
  const first = shown(rules)
  expect(first.at(-1)).toEqual({ more: true })
  const last = first.at(-2).rule as number
  expect(last).toBeGreaterThan(50)
  const rest = shown(rules, last)
  expect(rest[0]).toMatchObject({ rule: last + 1 })
})
