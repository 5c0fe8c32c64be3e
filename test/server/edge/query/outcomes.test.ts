/** What became of queries: the counts of each tenant, who sees them, and the log of those that were slow. */
import { beforeEach, expect, it } from 'vitest'
import { valueToJson } from '../../../../protocol/monitor/json-value.ts'
import type { Value } from '../../../../protocol/monitor/value.ts'
import { QueryOutcomes, queriesSensor } from '../../../../server/edge/query/outcomes.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

let clock: FakeClock
let lines: [details: object, message: string][]
let slowMs: number
let outcomes: QueryOutcomes
beforeEach(() => {
  clock = new FakeClock()
  lines = []
  slowMs = 1_000
  const log = { warn: (...line: unknown[]) => void lines.push(line as never) }
  outcomes = new QueryOutcomes({ log: log as never, clock, slowMs: () => slowMs })
})

const ended = (tenant: string, outcome: Parameters<QueryOutcomes['ended']>[0]['outcome'], tookMs = 1, given = '') =>
  outcomes.ended({
    reader: { tenant, name: 'ann' },
    path: '/api/v1/query',
    given: () => new URLSearchParams(given),
    outcome,
    waitedMs: 2.4,
    tookMs,
  })

function shown(tenant: string, role: string) {
  const sensor = queriesSensor(outcomes, clock)
  const [metric] = sensor.metrics()
  const { value } = sensor.measure(metric!, new Map(), { userId: 1, tenant, name: 'x', role }) as { value: Value }
  const rows = valueToJson(value) as Record<string, unknown>[]
  return rows.map((row) => Object.values(row).join(' '))
}

it('each tenant sees its own, an admin all', () => {
  for (const outcome of ['served', 'served', 'failed', 'timed_out', 'refused', 'cancelled'] as const)
    ended('b', outcome)
  ended('a', 'refused')
  expect(outcomes.counts()).toEqual([
    ['a', { served: 0, failed: 0, timed_out: 0, refused: 1, cancelled: 0 }],
    ['b', { served: 2, failed: 1, timed_out: 1, refused: 1, cancelled: 1 }],
  ])
  expect(shown('a', 'consumer')).toEqual(['a 0 0 0 1 0'])
  expect(shown('c', 'consumer')).toEqual([])
  expect(shown('c', 'admin')).toEqual(['a 0 0 0 1 0', 'b 2 1 1 1 1'])
})

it('the tenant that asked longest ago is forgotten when there are too many', () => {
  for (let tenant = 0; tenant < 10_000; tenant++) ended(`t${tenant}`, 'served')
  ended('t0', 'served')
  ended('new', 'served')
  const names = outcomes.counts().map(([name]) => name)
  expect([names.length, names.includes('t0'), names.includes('t1')]).toEqual([10_000, true, false])
})

it('one that took longer than it may is logged, at most one a minute, with the count of the others', () => {
  ended('a', 'served', 1_000, 'query=up')
  expect(lines).toEqual([])
  ended('a', 'timed_out', 1_000.6, `query=${'x'.repeat(2_000)}&start=1&token=secret`)
  const line = { tenant: 'a', user: 'ann', path: '/api/v1/query', query: 'x'.repeat(1_000), start: '1' }
  expect(lines).toEqual([[{ ...line, outcome: 'timed_out', took_ms: 1_001, waited_ms: 2 }, 'slow query']])
  ended('b', 'served', 5_000)
  ended('b', 'served', 5_000)
  clock.advance(60_000)
  ended('b', 'served', 5_000)
  expect(lines.slice(1)).toEqual([[expect.objectContaining({ tenant: 'b', unlogged: 2 }), 'slow query']])
  slowMs = 0
  clock.advance(60_000)
  ended('b', 'served', 1e9)
  expect(lines).toHaveLength(2)
})
