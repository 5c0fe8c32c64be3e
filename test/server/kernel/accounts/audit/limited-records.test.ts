/** Requests that run nothing: some records a minute for each kind and user, and one that counts the rest. */
import { beforeEach, expect, test } from 'vitest'
import { type LimitedEntry, LimitedRecords } from '../../../../../server/kernel/accounts/audit/limited-records.ts'
import type { AuditEntry } from '../../../../../server/kernel/accounts/audit/log.ts'

let now: number
let isFull: boolean
let recorded: AuditEntry[]
let records: LimitedRecords
beforeEach(() => {
  now = 0
  isFull = false
  recorded = []
  const log = { record: (entry: AuditEntry) => void recorded.push(entry) }
  records = new LimitedRecords({ log, now: () => now, hasRoom: () => !isFull })
})

const entry = (action: LimitedEntry['action'], userId = 1): LimitedEntry => {
  const identity = { userId, tenant: 'default', name: `u${userId}`, role: 'consumer' }
  return { action, identity, address: 'a', object: 'x', outcome: action, detail: 'd', args: { n: 1 } }
}
function flood(count: number, action: LimitedEntry['action'], userId = 1): void {
  for (let i = 0; i < count; i++) records.record(entry(action, userId))
}

test.each(['refused', 'dry-run', 'repeat'] as const)(
  '60 of %s are recorded in a minute, then one with a count',
  (action) => {
    flood(1_000, action)
    expect(recorded).toHaveLength(60)
    expect(recorded[0]).toEqual(entry(action))
    now = 59_999
    records.sweep()
    expect(recorded).toHaveLength(60)
    now = 60_000
    records.sweep()
    expect(recorded.slice(60)).toEqual([
      { ...entry(action), args: { count: 940 }, detail: expect.stringContaining('counted') },
    ])
    flood(1, action)
    expect(recorded).toHaveLength(62)
  },
)

test('kinds and users are counted apart, and nothing is recorded of a minute without a flood', () => {
  flood(60, 'refused')
  flood(60, 'dry-run')
  flood(60, 'refused', 2)
  now = 60_000
  records.sweep()
  expect(recorded).toHaveLength(180)
})

test('a flood that goes on is counted minute by minute, without a sweep too', () => {
  flood(100, 'repeat')
  now = 60_000
  flood(100, 'repeat')
  expect(recorded.map(({ args }) => args?.['count']).filter(Boolean)).toEqual([40])
  expect(recorded).toHaveLength(121)
})

test('where the tenant has no room in the log they are only counted', () => {
  isFull = true
  flood(5, 'dry-run')
  expect(recorded).toEqual([])
  records.flush()
  expect(recorded).toMatchObject([{ args: { count: 5 } }])
  records.flush()
  expect(recorded).toHaveLength(1)
})
