import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { HistoryQuota } from '../../../storage/history/store.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { Random } from '../../support/random.ts'
import { all, append, DAY_MS, HOUR_MS, query, type Sample, START_MS, series, UNLIMITED } from './history-model.ts'
import { TestHistory } from './test-history.ts'

const LOAD = series('load')
const OTHER = series('load', {}, 'other')
const QUOTA: HistoryQuota = { bytes: 2 ** 40, series: 2 ** 32 }

let test: TestHistory
beforeEach(() => {
  test = new TestHistory()
})
afterEach(() => test.end())

/** Stores an hour of random samples of both tenants, on each of so many days. */
function storeDays(days: number): void {
  const random = new Random(1)
  for (let day = 0; day < days; day++) {
    for (const of of [LOAD, OTHER]) test.storeMany(of, 3600, () => random.next())
    test.pass(DAY_MS)
  }
  test.pass(HOUR_MS)
}

/** The days on which a tenant has samples. */
const days = (tenant = 'acme'): number[] => [
  ...new Set(
    all(test.history.select(query(tenant))).flatMap(({ times }) =>
      Array.from(times, (time) => Math.floor((time - START_MS) / DAY_MS)),
    ),
  ),
]

const rollupDays = (tenant = 'acme'): number =>
  new Set(
    all(test.history.selectRollups(query(tenant))).flatMap(({ ends }) =>
      Array.from(ends, (end) => Math.floor((end - START_MS - 1) / DAY_MS)),
    ),
  ).size

/** Free pages of fresh.db do not count: what comes next fills them. */
function usedBytes(): number {
  const fresh = openSqlite(join(test.directory, 'fresh.db'))
  const [pages, free, bytes] = ['page_count', 'freelist_count', 'page_size'].map((name) =>
    Number(fresh.pragma(name, { simple: true })),
  )
  fresh.close()
  return (pages! - free!) * bytes! + test.fileBytes
}

describe('what is kept', () => {
  it('is so old at most, and rollups stay longer', () => {
    storeDays(6)
    expect(days()).toEqual([0, 1, 2, 3, 4, 5])
    test.history.limit({ ...UNLIMITED, keepMs: 3 * DAY_MS })
    test.pass(1000)
    expect(days()).toEqual([3, 4, 5])
    expect(rollupDays()).toBe(6)
    expect(test.periods.filter((name) => name.length === 10)).toEqual(['2026-09-03', '2026-09-04', '2026-09-05'])
    append(test.history, [[LOAD, test.now - 3 * DAY_MS - 1, 1]])
    append(test.history, [[LOAD, test.now - 3 * DAY_MS, 1]])
    test.history.commit()
    expect(test.history.figures().tooOld).toBe(1)
    expect(days()).toEqual([3, 4, 5])
    test.history.limit({ ...UNLIMITED, keepMs: 3 * DAY_MS, keepRollupsMs: DAY_MS })
    test.pass(60 * DAY_MS)
    expect([days(), rollupDays(), test.periods]).toEqual([[], 0, []])
    expect(test.lines('other')).toEqual([])
  })

  it('is what there is, though the clock jumps a year forward and back: nothing goes by age until it is steady for an hour', () => {
    storeDays(3)
    test.history.limit({ ...UNLIMITED, keepMs: 30 * DAY_MS, keepRollupsMs: 60 * DAY_MS })
    test.pass(2 * HOUR_MS)
    test.setMs = 365 * DAY_MS
    for (let minute = 0; minute < 50; minute++) test.pass(60_000)
    expect([days(), rollupDays()]).toEqual([[0, 1, 2], 3])
    test.setMs = 0
    test.pass(2 * HOUR_MS)
    expect([days(), rollupDays()]).toEqual([[0, 1, 2], 3])
    // What stays for an hour is the time.
    test.setMs = 365 * DAY_MS
    test.pass(60_000)
    test.pass(2 * HOUR_MS)
    expect([days(), rollupDays(), test.periods]).toEqual([[], 0, []])
  })

  it('has so many bytes at most: the oldest days go first, then rollups', () => {
    storeDays(5)
    test.history.limit({ ...UNLIMITED, maxBytes: usedBytes() - test.fileBytes / 2 })
    test.pass(1000)
    const left = days()
    expect(left.length).toBeGreaterThan(1)
    expect(left.length).toBeLessThan(5)
    expect(left.at(-1)).toBe(4)
    expect(test.history.figures().daysOverBytes).toBe(5 - left.length)
    expect(rollupDays()).toBe(5)
    test.history.limit({ ...UNLIMITED, maxBytes: 0 })
    test.pass(1000)
    expect([days(), rollupDays(), test.periods]).toEqual([[], 0, []])
  })

  it('of a tenant has so many bytes at most, and others keep theirs', () => {
    storeDays(4)
    const { bytes } = test.history.figures().tenants.get('acme')!
    test.history.limit({ ...UNLIMITED, quotas: new Map([['acme', { ...QUOTA, bytes: bytes * 0.6 }]]) })
    test.pass(1000)
    expect(days()).toEqual([2, 3])
    expect(days('other')).toEqual([0, 1, 2, 3])
    expect(test.history.figures().tenants.get('acme')!.bytes).toBeLessThanOrEqual(bytes * 0.6)
    // What is hidden leaves the files before a day is over.
    const before = test.fileBytes
    test.pass(DAY_MS)
    test.reopen()
    expect(test.fileBytes).toBeLessThan(before)
    expect([days(), days('other')]).toEqual([
      [2, 3],
      [0, 1, 2, 3],
    ])
  })
})

describe('what comes late for a day that went', () => {
  /** How many samples the rollups of each day are of. */
  const rolledUp = (): number[] => {
    const counts: number[] = []
    for (const { ends, count } of all(test.history.selectRollups(query('acme')))) {
      for (const [index, end] of ends.entries()) {
        const day = Math.floor((end - START_MS - 1) / DAY_MS)
        counts[day] = (counts[day] ?? 0) + count[index]!
      }
    }
    return counts
  }
  /** In a window that has samples. */
  const LATE_MS = START_MS + 11.5 * HOUR_MS + 1

  it('over the bytes of its tenant is too old, and the rollups of the day stay as they are', () => {
    storeDays(4)
    const { bytes } = test.history.figures().tenants.get('acme')!
    // The last is in memory when its day goes.
    test.store([[LOAD, LATE_MS, 1]])
    test.history.limit({ ...UNLIMITED, quotas: new Map([['acme', { ...QUOTA, bytes: bytes * 0.6 }]]) })
    test.pass(1000)
    expect(days().filter((day) => day > 0)).toEqual([2, 3])
    expect(rolledUp()).toEqual([3600, 3600, 3600, 3600])
    test.history.limit(UNLIMITED)
    for (const day of [0, 1, 2]) test.store([[LOAD, LATE_MS + day * DAY_MS, 1]])
    test.store([[OTHER, LATE_MS, 1]])
    expect(test.history.figures().tooOld).toBe(2)
    test.reopen()
    test.store([[LOAD, LATE_MS, 1]])
    expect(test.history.figures().tooOld).toBe(1)
    for (let day = 0; day < 3; day++) test.pass(DAY_MS)
    expect(test.history.figures().tooOld).toBe(2)
    expect([days(), days('other')]).toEqual([
      [2, 3],
      [0, 1, 2, 3],
    ])
    expect(rolledUp()).toEqual([3600, 3600, 3601, 3600])
  })

  it('over all bytes is too old for every tenant that had samples in it, and today is not', () => {
    storeDays(3)
    test.history.limit({ ...UNLIMITED, maxBytes: 0 })
    while (days().length > 0) test.history.work(0)
    test.history.limit(UNLIMITED)
    expect(test.periods.filter((name) => name.length === 10)).toEqual([])
    for (const of of [LOAD, OTHER]) test.store([[of, LATE_MS, 1]])
    test.store([[LOAD, test.now, 1]])
    expect(test.history.figures().tooOld).toBe(2)
    expect(test.lines()).toHaveLength(1)
  })
})

describe('a day that went while the clock was ahead', () => {
  it('keeps nothing out of the days before it when the clock is set back', () => {
    test.setMs = 5 * DAY_MS
    test.store([[LOAD, test.now + test.setMs, 1]])
    test.pass(2 * DAY_MS)
    expect(test.periods).toHaveLength(1)
    test.history.limit({ ...UNLIMITED, maxBytes: 0 })
    while (test.lines().length > 0) test.history.work(0)
    test.history.limit(UNLIMITED)
    test.setMs = 0
    test.store([[LOAD, test.now, 1]])
    test.pass(400_000)
    expect(test.lines()).toHaveLength(1)
    expect(test.history.figures().tooOld).toBe(0)
  })
})

describe('a file of which nothing is left', () => {
  it('goes, and what came late for its day stays', () => {
    test.storeMany(OTHER, 3600)
    const lateMs = test.now - HOUR_MS
    test.pass(DAY_MS)
    test.history.removeTenant('other')
    test.store([[LOAD, lateMs, 1]])
    const [former] = readdirSync(test.directory).filter((name) => name.startsWith('2026-08-31'))
    test.pass(HOUR_MS)
    test.pass(HOUR_MS)
    expect(readdirSync(test.directory)).not.toContain(former)
    expect(test.lines()).toHaveLength(1)
  })
})

describe('what is dropped', () => {
  const b = series('load', { host: 'b' })

  it('is not seen any more, leaves the files, and what comes then stays', () => {
    storeDays(2)
    test.storeMany(b, 10)
    test.storeMany(LOAD, 10)
    for (const _ of test.history.drop({ tenant: 'acme', matchers: [{ label: 'host', operator: '=', text: '' }] }));
    expect(new Set(test.lines().map((line) => line.split(' ')[0]))).toEqual(new Set(['load[["host","b"]]']))
    expect(rollupDays()).toBe(0)
    expect(days('other')).toEqual([0, 1])
    test.store([[LOAD, test.now, 3]])
    const lines = test.lines()
    expect(lines).toHaveLength(11)
    test.reopen()
    expect(test.lines()).toEqual(lines)
    const before = test.fileBytes
    test.pass(DAY_MS)
    test.pass(DAY_MS)
    expect(test.lines()).toEqual(lines)
    expect(test.fileBytes).toBeLessThan(before)
    expect(test.history.figures().tenants.get('acme')!.samples).toBe(11)
    expect(days('other')).toEqual([0, 1])
    test.reopen()
    expect(test.lines()).toEqual(lines)
  })

  it('by two at once is hidden, although one of them ends before the other', () => {
    const drop = (host: string) =>
      test.history.drop({ tenant: 'acme', matchers: [{ label: 'host', operator: '=', text: host }] })
    const many = Array.from({ length: 5_000 }, (_, index) => series('load', { host: 'many', index: String(index) }))
    test.storeMany(b, 10)
    append(
      test.history,
      many.map((of): Sample => [of, test.now, 1]),
    )
    while (!test.history.commit());
    test.pass(HOUR_MS)
    const [first, second] = [drop('b'), drop('many')]
    second.next()
    for (const _ of first);
    test.now += 2 * DAY_MS
    expect(test.history.work(1000)).toBe(false)
    for (const _ of second);
    test.pass(0)
    test.pass(DAY_MS)
    expect(test.lines()).toEqual([])
  })

  it('is forgotten when nothing of it is left in any file', () => {
    const inIndex = (): unknown => {
      const copy = openSqlite(join(test.directory, 'fresh.db'), { readonly: true })
      const count = copy.prepare('select count(*) from dropped').pluck().get()
      copy.close()
      return count
    }
    test.storeMany(LOAD, 10)
    test.storeMany(b, 10)
    test.pass(HOUR_MS)
    for (const _ of test.history.drop({ tenant: 'acme', matchers: [{ label: 'host', operator: '=', text: 'b' }] }));
    expect(inIndex()).toBe(1)
    for (let day = 0; day < 3; day++) test.pass(DAY_MS)
    expect(inIndex()).toBe(0)
    expect(test.lines()).toHaveLength(10)
  })

  it('of a tenant that is removed is everything, and another one of that name begins anew', () => {
    storeDays(2)
    const position = { generation: 'g', channel: 1, transaction: 2, committed: 5, takenMs: 3 }
    append(test.history, [[LOAD, test.now, 1]], { position })
    test.history.commit()
    append(test.history, [[LOAD, test.now + 1, 1]])
    const reference = test.history.seriesOf(LOAD)!
    test.history.removeTenant('acme')
    expect(test.lines()).toEqual([])
    expect(test.history.positionOf('acme')).toBeUndefined()
    expect(test.history.figures().tenants.has('acme')).toBe(false)
    expect(days('other')).toEqual([0, 1])
    // A reference of the former one is none of the new one.
    const columns = { series: Uint32Array.of(reference), times: Float64Array.of(test.now), values: Float64Array.of(1) }
    test.history.append({ tenant: 'acme', position: undefined, losses: [], length: 1, ...columns })
    test.history.commit()
    expect(test.lines()).toEqual([])
    test.store([[series('load', { new: 'yes' }), test.now, 5]])
    expect(test.lines()).toHaveLength(1)
    test.reopen()
    test.pass(DAY_MS)
    test.pass(DAY_MS)
    expect(test.lines()).toHaveLength(1)
    expect([days('other'), rollupDays('other')]).toEqual([[0, 1], 2])
    test.history.removeTenant('other')
    test.history.removeTenant('never')
    test.pass(2 * DAY_MS)
    expect(test.lines('other')).toEqual([])
    expect(test.lines()).toHaveLength(1)
  })
})
