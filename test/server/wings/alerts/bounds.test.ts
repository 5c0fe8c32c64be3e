/** What bounds rules: how many series one may record, how many alerts a tenant has, and how much templates may ask for. */
import { expect, it } from 'vitest'
import { QUERY_LIMITS } from '../../../../promql/evaluate/budget.ts'
import { LabelSet } from '../../../../promql/label-set.ts'
import { finished, MemorySource } from '../../../../promql/memory-source.ts'
import { finish } from '../../../../server/kernel/core/fair-work.ts'
import { createLogger } from '../../../../server/kernel/core/log.ts'
import { RuleGroups } from '../../../../server/wings/alerts/evaluation/groups.ts'
import { RuleEvaluation } from '../../../../server/wings/alerts/rules/evaluation.ts'
import { type RuleOutcome, rulesOf } from '../../../../server/wings/alerts/rules/group.ts'
import { readRuleFile } from '../../../../server/wings/alerts/rules/rule-file.ts'
import { eventually } from '../../../support/eventually.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const MINUTE = 60_000

async function groupsOf(text: string) {
  const file = await readRuleFile(text)
  if ('problems' in file) throw new Error(JSON.stringify(file.problems))
  return file.groups
}

it('a rule that would record more series than it may fails, and records nothing', async () => {
  const file = await readRuleFile('groups: [{ name: g, rules: [{ record: r, expr: one }] }]')
  const [group] = 'groups' in file ? file.groups : []
  if (group === undefined) throw new Error('no group')
  const [rule] = rulesOf(group)
  const source = new MemorySource()
  for (let index = 0; index <= 50_000; index++)
    source.add(
      LabelSet.of([
        ['__name__', 'one'],
        ['a', String(index)],
      ]),
      [[0, 1]],
    )
  const steps = rule?.evaluate(new RuleEvaluation(source, 0, { externalLabels: new Map(), externalUrl: '' }))
  let outcome: RuleOutcome | undefined
  for (let step = steps?.next(); step !== undefined; step = steps?.next())
    if (step.done === true) {
      outcome = step.value
      break
    }
  expect(outcome).toMatchObject({
    samples: [],
    failure: 'it would record 50001 series, and a rule may record 50000',
  })
})

it('a rule with which the tenant would have more alerts than it may fails, and the alerts that there are go on', async () => {
  const [clock, source] = [new FakeClock(), new MemorySource()]
  const stored = { journal: { change() {} }, alerts: [], groups: [], files: [] }
  const groups = new RuleGroups({
    tenant: 'default',
    expressions: {
      problem: undefined,
      limits: QUERY_LIMITS,
      caughtUp: async () => {},
      recurring: () => ({ workedMs: 0, ask() {}, run: async (_reader, _timeMs, steps) => finish(steps(source)) }),
      stored,
    },
    ...{ stored, clock, log: createLogger('silent') },
    publish: () => undefined,
    work(steps) {
      for (;;) if (steps.next().done === true) return
    },
    ...{ emit() {}, forget() {}, announce() {}, asked: () => undefined },
  })
  for (const [name, count] of [
    ['a', 6_000],
    ['b', 4_001],
  ] as const)
    for (let index = 0; index < count; index++)
      source.add(
        LabelSet.of([
          ['__name__', name],
          ['x', String(index)],
        ]),
        [[clock.wallMs(), 1]],
      )
  const text = 'groups: [{ name: g, interval: 1m, rules: [{ alert: A, expr: a }, { alert: B, expr: b }] }]'
  groups.follow(
    [
      {
        path: 'rules.yml',
        groups: await groupsOf(text),
        reader: () => ({ userId: 0, tenant: 'default', name: '', role: '' }),
      },
    ],
    MINUTE,
  )
  clock.advance(MINUTE)
  await eventually(async () => {
    groups.sweep()
    await new Promise((resolve) => setImmediate(resolve))
    expect(groups.counts.evaluations).toBeGreaterThan(0)
  })
  const rules = [...groups.groups].flatMap((group) => group.rules)
  const found = rules.map(({ rule, health }) => [rule.definition.name, rule.alerts.size, health?.problem])
  expect(found).toEqual([
    ['A', 6_000, undefined],
    ['B', 0, 'the tenant would have 10001 alerts, and may have 10000'],
  ])
})

it('a template that asks for more than 32 expressions fails, and its alert fires', async () => {
  const asking = (count: number, from: number): string =>
    Array.from({ length: count }, (_, index) => `{{ query "${from + index}" | len }}`).join('')
  // What another template has asked for at the same time is known.
  const annotations = { known: asking(32, 0), most: asking(64, 0), more: asking(33, 100) }
  const rules = [{ alert: 'A', expr: 'vector(1)', annotations }]
  const [rule] = (await groupsOf(JSON.stringify({ groups: [{ name: 'g', rules }] }))).flatMap(rulesOf)
  if (rule === undefined) throw new Error('there is no rule')
  const evaluation = new RuleEvaluation(new MemorySource(), 0, { externalLabels: new Map(), externalUrl: '' })
  const [alert] = finished(rule.evaluate(evaluation)).alerts.values()
  expect(alert?.state).toBe('firing')
  expect(Object.fromEntries(alert?.annotations ?? [])).toEqual({
    known: '1'.repeat(32),
    most: '1'.repeat(64),
    more: '<error expanding template: it asks for more than 32 expressions>',
  })
})
