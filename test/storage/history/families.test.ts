/** What was said of metrics is stored with their series, and goes with the last of them. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { HistoryMetric } from '../../../storage/history/store.ts'
import { append, DAY_MS, HOUR_MS, series, UNLIMITED } from './history-model.ts'
import { TestHistory } from './test-history.ts'

const LOAD: HistoryMetric = {
  native: 'host.load',
  families: [{ name: 'host_load', type: 'gauge', help: 'The load.', unit: '1' }],
}
const REQUESTS: HistoryMetric = {
  native: 'web.requests',
  families: [
    { name: 'web_requests_total', type: 'counter', help: 'All.', unit: '' },
    { name: 'web_requests_failed', type: 'gauge', help: '', unit: 's' },
  ],
}

let test: TestHistory
beforeEach(() => {
  test = new TestHistory()
  for (const tenant of ['acme', 'other']) test.history.seriesOf(series('known', {}, tenant))
})
afterEach(() => test.end())

const known = (tenant = 'acme'): string[] =>
  test.history.families(tenant, undefined, 100).map(({ native, name, type, help, unit }) => {
    return [native, name, type, help, unit].join('|')
  })

it('it is stored with the next commit, and there after a restart', () => {
  test.history.describe('acme', LOAD)
  test.history.describe('acme', REQUESTS)
  test.history.describe('other', LOAD)
  expect(known()).toEqual([])
  test.history.commit()
  test.reopen()
  expect(known()).toEqual([
    'host.load|host_load|gauge|The load.|1',
    'web.requests|web_requests_failed|gauge||s',
    'web.requests|web_requests_total|counter|All.|',
  ])
  expect(known('other')).toEqual(['host.load|host_load|gauge|The load.|1'])
  expect(known('nobody')).toEqual([])
})

it('what is said later takes the place of all that was said before', () => {
  test.history.describe('acme', REQUESTS)
  test.history.commit()
  test.history.describe('acme', { ...REQUESTS, families: LOAD.families })
  test.history.commit()
  expect(known()).toEqual(['web.requests|host_load|gauge|The load.|1'])
})

it('a list goes on after a place', () => {
  test.history.describe('acme', LOAD)
  test.history.describe('acme', REQUESTS)
  test.history.commit()
  const names: string[] = []
  let after: ReturnType<typeof test.history.families>[number] | undefined
  do {
    ;[after] = test.history.families('acme', after, 1)
    if (after !== undefined) names.push(after.name)
  } while (after !== undefined)
  expect(names).toEqual(['host_load', 'web_requests_failed', 'web_requests_total'])
})

it('goes with the last series of its metric, and with its tenant', () => {
  const hour = { ...UNLIMITED, keepMs: HOUR_MS, keepRollupsMs: HOUR_MS }
  test.reopen(hour)
  append(test.history, [[series('host_load'), test.now, 1]])
  test.history.describe('acme', LOAD)
  test.history.describe('other', LOAD)
  test.history.commit()
  for (let day = 0; day < 6; day++) {
    append(test.history, [[series('web_requests'), test.now, day]])
    test.history.describe('acme', REQUESTS)
    test.history.commit()
    test.pass(DAY_MS)
  }
  expect(known()).toHaveLength(2)
  test.history.removeTenant('other')
  test.history.describe('acme', LOAD)
  test.history.removeTenant('acme')
  // What was asked about before comes after it.
  test.history.describe('acme', LOAD)
  expect([...test.history.figures().tenants.keys()]).toEqual([])
  test.pass(HOUR_MS)
  test.history.commit()
  test.reopen(hour)
  expect([...known(), ...known('other')]).toEqual([])
})
