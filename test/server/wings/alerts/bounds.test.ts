/** What bounds rules: how many a server evaluates, and how many series one may record. */
import { expect, it } from 'vitest'
import { LabelSet } from '../../../../promql/label-set.ts'
import { MemorySource } from '../../../../promql/memory-source.ts'
import { RuleEvaluation } from '../../../../server/wings/alerts/rules/evaluation.ts'
import { type RuleOutcome, rulesOf } from '../../../../server/wings/alerts/rules/group.ts'
import { readRuleFile } from '../../../../server/wings/alerts/rules/rule-file.ts'

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
