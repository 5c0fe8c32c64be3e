/** `producer.rules`: each rule with its group, in pages of bounded cost. */
import { expect, it } from 'vitest'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import { finish, isSteps } from '../../../../server/kernel/core/fair-work.ts'
import type { ShownRule } from '../../../../server/kit/rules.ts'
import { RulesSensor } from '../../../../server/wings/alerts/rules-sensor.ts'
import { RulesShown } from '../../../../server/wings/alerts/shown.ts'
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

/** Rules of one group after another, and how many of them were worked out. */
function shown(groups: Readonly<Record<string, readonly ShownRule[]>>, from: Record<string, unknown> = {}) {
  let workedOut = 0
  const tenant = {
    tenant: 'acme',
    groups: Object.entries(groups).map(([name, rules]) => ({
      definition: { name, limit: 0 },
      file: 'disk.yml',
      intervalMs: 60_000,
      tookMs: 3,
      evaluatedMs: undefined,
      shown: rules.map((rule) => ({ health: healthOf(rule), rule: ruleOf(rule, () => workedOut++) })),
    })),
  }
  const mayRead = { readRights: () => ({ mayReadRemembered: () => true }) }
  const sensor = new RulesSensor(new RulesShown([tenant] as never, mayRead as never), { microseconds: () => 0 })
  const steps = sensor.measure(undefined, new Map(Object.entries(from)) as never, { tenant: 'acme' } as never)
  if (!isSteps(steps)) throw new Error('it is given in steps')
  return { records: valueToJson(finish(steps).value) as Json[], workedOut: () => workedOut }
}

function healthOf({ health, problem, tookMs, evaluatedMs }: ShownRule) {
  if (health === 'unknown') return undefined
  return { problem: health === 'err' ? problem : undefined, tookMs, evaluatedMs }
}

/** As the rules are that are evaluated. */
function ruleOf({ query, threshold, labels, annotations, alerts, ...rest }: ShownRule, onShown: () => void) {
  const templates = (texts: object) => new Map(Object.entries(texts).map(([name, text]) => [name, { text }]))
  const of = rest.kind === 'alert' ? templates : (texts: object) => new Map(Object.entries(texts))
  return {
    alerts: new Map(alerts.map((alert, index) => [index, { ...alert, labels: new Map(), annotations: new Map() }])),
    get definition() {
      onShown()
      const own = { printed: query, threshold: () => threshold }
      return { ...rest, query: own, labels: of(labels), annotations: templates(annotations) }
    },
  }
}

it('has what a rule asks, how it was evaluated, and how many alerts it has', () => {
  const record: ShownRule = { ...RULE, kind: 'record', name: 'a:b', threshold: undefined, alerts: [], forMs: 0 }
  const failed: ShownRule = { ...RULE, health: 'err', problem: 'too much', evaluatedMs: undefined }
  const [first, second, third] = shown({ g: [RULE, record, failed] }).records
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
  const first = shown({ g: rules }).records
  expect(first.at(-1)).toEqual({ more: true })
  const last = first.at(-2).rule as number
  expect(last).toBeGreaterThan(50)
  const rest = shown({ g: rules }, { after: last }).records
  expect(rest[0]).toMatchObject({ rule: last + 1 })
})

it('a page of ten thousand rules works out those that are in it', () => {
  const rules = Array.from({ length: 100 }, () => RULE)
  const groups = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`g${index}`, rules]))
  const { records, workedOut } = shown(groups, { after: 9_150 })
  expect(records.map(({ rule }) => rule)).toEqual([...Array.from({ length: 200 }, (_, at) => 9_151 + at), undefined])
  expect([records[0], records.at(-2), records.at(-1)]).toMatchObject([
    { group: 'g91' },
    { group: 'g93' },
    { more: true },
  ])
  expect(workedOut()).toBeLessThanOrEqual(201)
  const last = shown(groups, { after: 9_950 })
  expect(last.records).toHaveLength(50)
  expect(last.workedOut()).toBe(50)
})

it('has those of one group alone, with the numbers that they have among all', () => {
  const { records, workedOut } = shown({ a: [RULE, RULE], b: [RULE], c: [RULE] }, { group: 'b' })
  expect(records).toMatchObject([{ rule: 3, group: 'b' }])
  expect(workedOut()).toBe(1)
})
