/** What rules would have done over series in memory. */
import { expect, it } from 'vitest'
import { LabelSet } from '../../../../../promql/label-set.ts'
import { MemorySource } from '../../../../../promql/memory-source.ts'
import { type BacktestTimes, backtest } from '../../../../../server/wings/alerts/backtest/run.ts'
import { readRuleFile } from '../../../../../server/wings/alerts/rules/rule-file.ts'

const MINUTE = 60_000
const TIMES: BacktestTimes = { fromMs: 0, toMs: 60 * MINUTE, intervalMs: MINUTE }

const labels = (name: string, host: string): LabelSet =>
  LabelSet.of([
    ['__name__', name],
    ['host', host],
  ])

/** A value in each minute. */
function levels(source: MemorySource, host: string, values: readonly number[]): void {
  source.add(
    labels('level', host),
    values.map((value, minute) => [minute * MINUTE, value]),
  )
}

/** Each event by its minute, rule and state, or what has failed. */
async function eventsOf(rules: string, source: MemorySource, times = TIMES): Promise<string[]> {
  const file = await readRuleFile(`groups: [{name: g, rules: [${rules}]}]`)
  if ('problems' in file) throw new Error(JSON.stringify(file.problems))
  const groups = file.groups.map((definition) => ({ definition, path: '/rules/a.yml' }))
  const found: string[] = []
  for (const event of backtest(groups, source, times)) {
    if (event === undefined) continue
    const { timeMs, rule, alert, failure } = event
    const host = alert?.labels.get('host') ?? ''
    found.push(`${Math.floor(timeMs / MINUTE)} ${rule} ${alert === undefined ? failure : `${host} ${alert.state}`}`)
  }
  return found
}

it('has the transitions of each alert at their times', async () => {
  const source = new MemorySource()
  levels(source, 'a', [...Array(10).fill(1), ...Array(10).fill(9), ...Array(41).fill(1)])
  levels(source, 'b', Array(61).fill(1))
  levels(source, 'c', [...Array(30).fill(1), 9, ...Array(30).fill(1)])
  expect(await eventsOf('{alert: High, expr: level > 5, for: 3m}', source)).toEqual([
    '10 High a pending',
    '13 High a firing',
    '20 High a inactive',
    '30 High c pending',
    '31 High c inactive',
  ])
})

it('shows later rules, and later times, what rules have recorded', async () => {
  const source = new MemorySource()
  levels(source, 'a', [...Array(10).fill(1), ...Array(10).fill(9), ...Array(41).fill(1)])
  const rules = `
    {record: twice, expr: level * 2},
    {alert: High, expr: twice > 15},
    {alert: WasHigh, expr: 'max_over_time(twice[5m]) > 15'},
    {alert: Fires, expr: 'ALERTS{alertname="High", alertstate="firing"}'}`
  expect(await eventsOf(rules, source)).toEqual([
    '10 High a firing',
    '10 WasHigh a firing',
    '10 Fires a firing',
    '20 High a inactive',
    '20 Fires a inactive',
    '24 WasHigh a inactive',
  ])
})

it('says once why a rule fails, and goes on with the others', async () => {
  const source = new MemorySource()
  levels(source, 'a', Array(61).fill(9))
  levels(source, 'b', Array(61).fill(9))
  const events = await eventsOf(
    '{alert: Same, expr: level > 5, labels: {host: x}}, {alert: High, expr: level > 5}',
    source,
  )
  expect(events).toEqual([
    '0 Same vector contains metrics with the same labelset after applying alert labels',
    '0 High a firing',
    '0 High b firing',
  ])
})

it('refuses what would take for ever', async () => {
  const many = eventsOf('{alert: High, expr: level > 5}', new MemorySource(), { ...TIMES, toMs: 2_000_002 * MINUTE })
  await expect(many).rejects.toThrow('choose a shorter time, a longer interval or fewer rules')
})
