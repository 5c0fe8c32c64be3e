/** Merges: many runs become one, a day ends at midnight, pages that nothing touches stay as they are. */

import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ROLLUP_MS } from '../../../storage/history/store.ts'
import { openSqlite } from '../../../storage/sqlite/driver.ts'
import { Random } from '../../support/random.ts'
import { all, DAY_MS, HistoryModel, HOUR_MS, query, type Sample, STALE, START_MS, series } from './history-model.ts'
import { TestHistory } from './test-history.ts'

let test: TestHistory
let model: HistoryModel
beforeEach(() => {
  test = new TestHistory()
  model = new HistoryModel()
})
afterEach(() => test.end())

const FLEET = Array.from({ length: 60 }, (_, index) => series('load', { host: `h${index}` }))

function store(samples: readonly Sample[]): void {
  model.add(samples)
  test.store(samples)
}

const compare = (): void => model.expectSame(test.history, query('acme'))

/** Rows of the catalogue. */
function runs(where: string): number {
  const fresh = openSqlite(join(test.directory, 'fresh.db'), { readonly: true })
  const count = fresh.prepare<unknown[], number>(`select count(*) from run where ${where}`).pluck().get()
  fresh.close()
  return count!
}

/** The checksums of the pages of a file. */
function checksums(begin: string): number[] {
  const name = readdirSync(test.directory).find((each) => each.startsWith(begin))!
  const file = openSqlite(join(test.directory, name), { readonly: true })
  const found = file.prepare<unknown[], number>('select checksum from page').pluck().all()
  file.close()
  return found
}

describe('runs', () => {
  it('are merged when there are many, and queries see the same', () => {
    const random = new Random(1)
    for (let count = 0; count < 70; count++) {
      store(
        FLEET.slice(0, 5).flatMap((of) => [
          [of, test.now - 1, random.below(100)],
          // The same times come again with the next ones.
          [of, Math.floor(test.now / HOUR_MS) * HOUR_MS, count],
          [of, test.now - random.below(2 * HOUR_MS), random.pick([STALE, 1, 2])],
        ]),
      )
      test.pass(301_000)
    }
    expect(test.history.figures().merges).toBe(2)
    expect(runs('level = 1')).toBe(2)
    expect(runs('level = 0')).toBe(6)
    compare()
    test.pass(DAY_MS)
    expect(runs('file is null')).toBeGreaterThan(0)
    compare()
  })

  it('of many samples of one series have several chunks and pages', () => {
    const random = new Random(2)
    const samples = Array.from(
      { length: 30_000 },
      (_, index): Sample => [FLEET[0]!, test.now - 30_000 + index, random.next()],
    )
    store(samples)
    test.pass(HOUR_MS)
    compare()
    // Every second one again, late.
    store(samples.filter((_, index) => index % 2 === 0).map(([of, time]) => [of, time, 0.5]))
    test.pass(HOUR_MS)
    compare()
    test.pass(DAY_MS)
    compare()
    expect(checksums('2026-08-31').length).toBeGreaterThan(2)
  })

  it('are made by the commit where nobody calls for work', () => {
    test.reopen(undefined, 1000)
    for (let round = 0; round < 5; round++) {
      store(Array.from({ length: 999 }, (_, index) => [FLEET[index % 8]!, test.now + index, index]))
      test.now += 1000
    }
    expect(runs('level = 0')).toBe(1)
    expect(test.history.figures().tenants.get('acme')!.samples).toBe(5 * 999)
    compare()
    while (test.history.work(0));
    expect(runs('level = 0')).toBe(2)
    compare()
  })
})

describe('a day', () => {
  it('ends with the sample of midnight, as windows of rollups do', () => {
    test.now = START_MS + DAY_MS + HOUR_MS
    const midnight = START_MS + DAY_MS
    store([-ROLLUP_MS, -1, 0, 1, ROLLUP_MS, ROLLUP_MS + 1].map((ms) => [FLEET[0]!, midnight + ms, ms]))
    test.pass(DAY_MS)
    expect(test.periods).toEqual(['2026-08', '2026-08-31', '2026-09-01'])
    compare()
    const [found] = all(test.history.selectRollups(query('acme')))
    expect([...found!.ends]).toEqual([-ROLLUP_MS, 0, ROLLUP_MS, 2 * ROLLUP_MS].map((ms) => midnight + ms))
    expect([...found!.count]).toEqual([1, 2, 2, 1])
    expect([...found!.firstTimes]).toEqual([-ROLLUP_MS, -1, 1, ROLLUP_MS + 1].map((ms) => midnight + ms))
  })

  it('that is made again keeps the pages that nothing late touches', () => {
    const random = new Random(3)
    const samples = FLEET.flatMap((of) =>
      Array.from({ length: 1000 }, (_, index): Sample => [of, test.now - 1000 + index, random.next()]),
    )
    store(samples)
    test.pass(DAY_MS)
    const before = checksums('2026-08-31')
    const rollups = all(test.history.selectRollups(query('acme')))
    store([[FLEET[30]!, START_MS + HOUR_MS, 7]])
    test.pass(DAY_MS)
    test.pass(DAY_MS)
    compare()
    const after = checksums('2026-08-31')
    const kept = after.filter((checksum) => before.includes(checksum)).length
    expect(kept).toBeGreaterThan(before.length / 2)
    expect(kept).toBeLessThan(before.length)
    const again = all(test.history.selectRollups(query('acme')))
    expect(again.map(({ ends }) => ends.length)).toEqual(
      rollups.map(({ ends, series: of }) => ends.length + (of.labels[0]![1] === 'h30' ? 1 : 0)),
    )
  })
})

describe('rollups of a day', () => {
  const rows = (): number => {
    const fresh = openSqlite(join(test.directory, 'fresh.db'), { readonly: true })
    const sum = fresh.prepare<unknown[], number>("select sum(samples) from run where kind = 'rollups'").pluck().get()
    fresh.close()
    return sum!
  }

  it('that were made again and again are there once or twice, and the same', () => {
    const dayMs = test.now
    test.pass(2 * DAY_MS)
    for (let round = 0; round < 10; round++) {
      // Late samples in each window, and of another day between them.
      store(
        FLEET.flatMap((of) =>
          Array.from({ length: 24 }, (_, hour): Sample => [of, dayMs - hour * ROLLUP_MS - round, round]),
        ),
      )
      if (round === 5) store([[FLEET[0]!, dayMs + DAY_MS, 1]])
      test.pass(HOUR_MS)
      test.pass(DAY_MS)
    }
    compare()
    const found = all(test.history.selectRollups(query('acme', { toMs: START_MS + DAY_MS })))
    expect(found).toHaveLength(FLEET.length)
    for (const { count, min, max } of found) {
      expect([...count]).toEqual(Array.from({ length: 24 }, () => 10))
      expect([min[0], max[0]]).toEqual([0, 9])
    }
    expect(rows()).toBeLessThan(2.5 * FLEET.length * 24)
    test.pass(60 * DAY_MS)
    expect(all(test.history.selectRollups(query('acme', { toMs: START_MS + DAY_MS })))).toEqual(found)
  })
})

describe('samples of many days', () => {
  it('become pages in steps, a day at a time', () => {
    const days = Array.from({ length: 40 }, (_, day): Sample => [FLEET[0]!, test.now + day * DAY_MS, day])
    test.store(days)
    test.now += HOUR_MS
    let steps = 0
    while (test.history.work(0)) steps++
    expect(steps).toBeGreaterThan(days.length)
    expect(test.lines()).toHaveLength(days.length)
  })
})

describe('a reference', () => {
  it('is valid as long as its series is stored, used or not', () => {
    const reference = test.history.seriesOf(FLEET[0]!)!
    const put = (): void => {
      const columns = {
        series: Uint32Array.of(reference),
        times: Float64Array.of(test.now),
        values: Float64Array.of(1),
      }
      test.history.append({ tenant: 'acme', position: undefined, losses: [], length: 1, ...columns })
      test.history.commit()
    }
    for (let hour = 0; hour < 5; hour++) {
      put()
      test.pass(HOUR_MS)
    }
    expect(test.history.figures().refusedSamples).toBe(0)
    test.pass(HOUR_MS)
    test.pass(HOUR_MS)
    put()
    expect(test.history.figures().refusedSamples).toBe(0)
    expect(test.history.seriesOf(FLEET[0]!)).toBe(reference)
    expect(test.lines()).toHaveLength(6)
  })
})
