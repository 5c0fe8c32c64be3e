import { expect, it } from 'vitest'
import { readTable } from '../../../../../server/kit/yaml-table.ts'
import { readRuleFile, ruleGroups } from '../../../../../server/wings/alerts/rules/rule-file.ts'

async function problemsOf(text: string): Promise<readonly string[]> {
  const file = await readRuleFile(text)
  return 'problems' in file ? file.problems.map(({ message, line }) => `${line}: ${message}`) : []
}

it('reads groups, rules and their settings', async () => {
  const file = await readRuleFile(`groups:
  - name: a
    interval: 30s
    query_offset: 1m
    limit: 10
    labels: { team: ops }
    rules:
      - record: job:up:sum
        expr: sum by (job) (up)
      - alert: Down
        expr: up == 0
        for: 5m
        keep_firing_for: 1h
        labels: { severity: page }
        annotations: { summary: '{{ $labels.job }} is down' }
`)
  if ('problems' in file) throw new Error(JSON.stringify(file.problems))
  const [group] = file.groups
  expect(group).toMatchObject({ name: 'a', intervalMs: 30_000, offsetMs: 60_000, limit: 10 })
  const [record, alert] = group?.rules ?? []
  expect(record).toMatchObject({ kind: 'record', name: 'job:up:sum', line: 8 })
  expect(record?.labels).toEqual(new Map([['team', 'ops']]))
  expect(alert).toMatchObject({ kind: 'alert', name: 'Down', forMs: 300_000, keepFiringForMs: 3_600_000, line: 10 })
  expect([...(alert?.labels.keys() ?? [])]).toEqual(['team', 'severity'])
})

it('takes a file without groups', async () => {
  expect(await readRuleFile('groups: []')).toEqual({ groups: [] })
})

const inGroup = (rule: string): string =>
  `groups:\n  - name: g\n    rules:\n      - ${rule.replaceAll('\n', '\n        ')}\n`

it.each([
  ['groups: {', 'not YAML'],
  ['- a', 'it is no table'],
  ['groups:\n  - name: g\n    rule: []', '3: `rule` is not supported'],
  ['groups:\n  - rules: []', 'a group needs a `name`'],
  ['groups:\n  - name: g\n  - name: g', '3: two groups are called "g"'],
  ['groups:\n  - name: g\n    interval: fast', '3: `interval`: expected a duration such as 5m, found "fast"'],
  ['groups:\n  - {name: g, [a]: b}', '2: not YAML: a key has to be a text'],
  ['groups:\n  - name: g\n    limit: -1', '3: `limit`: expected a number from 0, found "-1"'],
  [inGroup('expr: up'), '4: group "g", rule without a name: it needs `alert` or `record`'],
  [inGroup('alert: A\nrecord: b\nexpr: up'), '5: group "g", rule "A": it has both `alert` and `record`'],
  [inGroup('alert: A'), '4: group "g", rule "A": it needs an `expr`'],
  [inGroup('alert: A\nexpr: sum(up'), '5: group "g", rule "A": could not parse expression: 1:7: parse error'],
  [inGroup('record: b\nexpr: up\nfor: 5m'), '6: group "g", rule "b": `for` is for alerts'],
  [inGroup('record: b\nexpr: up\nannotations: {a: b}'), '6: group "g", rule "b": `annotations` is for alerts'],
  [inGroup('alert: A\nexpr: up\nfor: soon'), '6: `for`: expected a duration such as 5m, found "soon"'],
  [
    inGroup('alert: A\nexpr: up\nlabels: {__name__: x}'),
    '6: group "g", rule "A": a rule may not set the label __name__',
  ],
  [inGroup('alert: A\nexpr: up\nlabels: {a: "{{ .X"}'), '6: group "g", rule "A": template of "a": an action has no }}'],
  [
    inGroup('alert: A\nexpr: up\nannotations: {a: "{{ humanise 1 }}"}'),
    '6: group "g", rule "A": template of "a": function "humanise" is not known',
  ],
  [
    inGroup('alert: A\nexpr: up\nsource_tenants: [a]'),
    '6: group "g", rule "A": `source_tenants` is not supported: it is of Mimir',
  ],
  [
    inGroup('alert: A\nexpr: up > 1\nrecover: up'),
    '6: group "g", rule "A": `recover` has to be a comparison that filters',
  ],
  [inGroup('alert: A\nexpr: up > 1\nrecover: up < bool 1'), 'rule "A": `recover` has to be a comparison that filters'],
  [inGroup('alert: A\nexpr: up > 1\nrecover: up <'), '6: group "g", rule "A": could not parse expression: 1:'],
  [inGroup('alert: A\nexpr: up > 1\nrecover: ""'), '6: group "g", rule "A": `recover` is empty'],
  [inGroup('record: b\nexpr: up > 1\nrecover: up < 1'), '6: group "g", rule "b": `recover` is for alerts'],
  [
    inGroup('alert: A\nexpr: up > 1 and down\nno_data: hold'),
    '6: group "g", rule "A": `no_data` needs an `expr` that is a comparison',
  ],
  [inGroup('alert: A\nexpr: up > 1\nno_data: ok'), '6: `no_data`: expected one of resolve, hold, alert, found "ok"'],
  [
    inGroup('alert: A\nexpr: up > 1\nno_data_for: 5m'),
    '6: group "g", rule "A": `no_data_for` needs `no_data: hold` or `no_data: alert`',
  ],
  [
    inGroup('alert: A\nexpr: up > 1\nno_data: alert\nlabels: {no_data: a}'),
    '7: group "g", rule "A": with `no_data: alert` a rule may not set the label no_data',
  ],
])('%j: %s', async (text, problem) => {
  expect((await problemsOf(text)).join('\n')).toContain(problem)
})

it('`no_data` of a group is that of its alerting rules, unless they say another', async () => {
  const rules = [
    '{ alert: A, expr: up > 1 }',
    '{ alert: B, expr: up > 1, no_data: alert }',
    '{ alert: C, expr: absent(up), no_data: resolve }',
    '{ record: d, expr: up }',
  ]
  const group = (keys: string): string => `groups: [{ name: g, ${keys}, rules: [${rules.join(', ')}] }]`
  const file = await readRuleFile(group('no_data: hold, no_data_for: 10m'))
  const alerts = 'groups' in file ? file.groups.flatMap((one) => one.rules).filter(({ kind }) => kind === 'alert') : []
  expect(alerts).toMatchObject([
    { noData: 'hold', noDataForMs: 600_000, hasOwnKeys: true, unfiltered: {} },
    { noData: 'alert', noDataForMs: 600_000, hasOwnKeys: true },
    { noData: 'resolve', hasOwnKeys: true },
  ])
  expect(await problemsOf(group('no_data_for: 10m'))).toEqual([
    '1: group "g": `no_data_for` needs `no_data: hold` or `no_data: alert`',
  ])
  expect((await problemsOf(group('no_data: hold').replace(', no_data: resolve', ''))).join()).toContain(
    'rule "C": `no_data` needs an `expr` that is a comparison',
  )
})

it('makes rules in steps: there may be many groups, or many templates of one rule', () => {
  const annotations = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`a${index}`, '{{ $value }}']))
  const rules = [{ alert: 'A', expr: 'up', annotations }]
  const groups = Array.from({ length: 100 }, (_, index) => ({ name: `g${index}` }))
  const steps = ruleGroups(readTable({ groups: [...groups, { name: 'g', rules }] }))
  let count = 0
  for (let step = steps.next(); step.done !== true; step = steps.next()) count++
  expect(count).toBe(100 + 1 + 100 + 1)
})
