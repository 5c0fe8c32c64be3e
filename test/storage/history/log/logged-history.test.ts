/** What is done while a record is under way to the log: it is there when the log has the record, and not if its tenant has gone. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { LoggedHistory } from '../../../../storage/history/log/logged-history.ts'
import type { HistoryOperation } from '../../../../storage/history/log/record.ts'
import { type LogPlace, NO_RECORD_HASH } from '../../../../storage/replicated/place.ts'
import { all, query, series } from '../history-model.ts'
import { TestHistory } from '../test-history.ts'

let test: TestHistory
let logged: LoggedHistory
let records: { readonly operations: readonly HistoryOperation[]; readonly inLog: () => Promise<void> }[]
beforeEach(() => {
  test = new TestHistory()
  records = []
  const append = (operations: readonly HistoryOperation[]) => {
    const sequence = records.length + 1
    return new Promise<LogPlace>((resolve) => {
      const inLog = async (): Promise<void> => {
        resolve({ log: 1, epoch: 1, sequence, hash: NO_RECORD_HASH })
        await new Promise((taken) => setImmediate(taken))
      }
      records.push({ operations, inLog })
    })
  }
  logged = new LoggedHistory({
    history: test.history,
    log: { append },
    wallMs: () => test.now,
    logged: () => {},
    failed: (error) => {
      throw error
    },
  })
})
afterEach(() => test.end())

function take(value: number, tenant = 'acme'): void {
  const reference = logged.seriesOf(series('load', {}, tenant)) as number
  const columns = {
    series: Uint32Array.of(reference),
    times: Float64Array.of(test.now),
    values: Float64Array.of(value),
  }
  logged.append({ tenant, position: undefined, ...columns, length: 1, losses: [] })
}

function committed(): void {
  while (!logged.commit());
}

const values = (tenant: string): number[] => all(test.history.select(query(tenant))).flatMap((one) => [...one.values])

it('what is under way counts as not committed, until it is', async () => {
  take(1)
  expect(logged.uncommitted).toBe(1)
  expect([logged.commit(), logged.isWaiting]).toEqual([false, true])
  take(2)
  expect(logged.uncommitted).toBe(2)
  await records[0]?.inLog()
  expect([logged.isWaiting, logged.uncommitted]).toEqual([false, 2])
  expect(logged.commit()).toBe(false)
  expect(logged.uncommitted).toBe(1)
  expect(logged.commit()).toBe(false)
  await records[1]?.inLog()
  committed()
  expect([logged.uncommitted, values('acme')]).toEqual([0, [2]])
})

it('what waits of a tenant that is removed is not done: the log has its end after it', async () => {
  take(1)
  take(1, 'other')
  logged.commit()
  take(2)
  const drop = logged.drop({ tenant: 'acme', matchers: [] })
  drop.next()
  logged.removeTenant('acme')
  take(3)
  await records[0]?.inLog()
  while (records.length < 2) logged.commit()
  await records[1]?.inLog()
  expect(values('acme')).toEqual([])
  expect(values('other')).toEqual([1])
  committed()
  expect(values('acme')).toEqual([3])
  expect(records.flatMap(({ operations }) => operations.map(({ kind, tenant }) => `${kind} ${tenant}`))).toEqual([
    'append acme',
    'append other',
    'append acme',
    'drop acme',
    'remove acme',
    'append acme',
  ])
})
