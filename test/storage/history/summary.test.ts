/** Windows in place of samples: where these have gone, and where they are, with what is not merged yet. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type HistoryWindows, ROLLUP_MS } from '../../../storage/history/store.ts'
import { all, DAY_MS, HOUR_MS, query, START_MS, series, UNLIMITED } from './history-model.ts'
import { TestHistory } from './test-history.ts'

const LOAD = series('load', { host: 'a' })
const OTHER = series('swap', { host: 'a' })

let test: TestHistory
beforeEach(() => {
  test = new TestHistory()
})
afterEach(() => test.end())

/** An hour of samples on each of so many days, which are 0, 1, 2 …, 3599. */
function storeDays(days: number): void {
  for (let day = 0; day < days; day++) {
    for (const of of [LOAD, OTHER]) test.storeMany(of, 3600)
    test.pass(DAY_MS)
  }
  test.pass(HOUR_MS)
}

const dayOf = (ms: number): number => Math.floor((ms - START_MS - 1) / DAY_MS)
const daysOf = (times: Float64Array | undefined): number[] => [...new Set(Array.from(times ?? [], dayOf))]

function select(stepMs: number, rest: Parameters<typeof query>[1] = {}) {
  const load = { label: '__name__', operator: '=', text: 'load' } as const
  const [found] = all(test.history.select(query('acme', { matchers: [load], stepMs, ...rest })))
  return found
}

/** What does not depend on how a sum is rounded. */
const rowsOf = ({ ends, min, max, sum, count, first, firstTimes, last, lastTimes, resets }: HistoryWindows) =>
  Array.from(ends, (end, row) =>
    [
      end,
      min[row],
      max[row],
      sum[row],
      count[row],
      first[row],
      firstTimes[row],
      last[row],
      lastTimes[row],
      resets[row],
    ].map(Number),
  )

describe('days whose samples have gone', () => {
  beforeEach(() => {
    storeDays(6)
  })
  const keepThree = (): void => {
    test.history.limit({ ...UNLIMITED, keepMs: 3 * DAY_MS })
    test.pass(1000)
  }

  it('have windows of a rollup, and those that are there have samples', () => {
    const before = select(ROLLUP_MS)
    keepThree()
    const found = select(1)
    expect([daysOf(found?.windows?.ends), daysOf(found?.times)]).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ])
    const rows = rowsOf(found!.windows!)
    expect(rows).toEqual(rowsOf(before!.windows!).slice(0, rows.length))
    // Without a step there are samples alone.
    const [plain] = all(test.history.select(query('acme')))
    expect([plain?.windows, daysOf(plain?.times)]).toEqual([undefined, [3, 4, 5]])
  })

  it('have windows that overlap the range, whole', () => {
    keepThree()
    const end = START_MS + 12 * HOUR_MS
    const found = select(1, { fromMs: end - 400_000, toMs: end - 299_000 })
    expect(found?.times).toHaveLength(0)
    expect(Array.from(found?.windows?.ends ?? [], (ms) => ms - end)).toEqual([-300_000, 0])
    // The range ends where samples have not gone.
    expect(select(1, { fromMs: START_MS + 3 * DAY_MS, toMs: test.now })?.windows).toBeUndefined()
  })

  it('are the same in long windows as before', () => {
    for (const stepMs of [ROLLUP_MS, HOUR_MS, 2 * DAY_MS, 7 * HOUR_MS + 1]) {
      const before = rowsOf(select(stepMs)!.windows!)
      keepThree()
      expect(rowsOf(select(stepMs)!.windows!)).toEqual(before)
      test.history.limit(UNLIMITED)
    }
  })

  it('have no window of a series that was dropped', () => {
    keepThree()
    const matchers = [{ label: '__name__', operator: '=', text: 'load' } as const]
    for (const _ of test.history.drop({ tenant: 'acme', matchers }));
    expect([select(1), select(HOUR_MS)]).toEqual([undefined, undefined])
    expect(all(test.history.select(query('acme', { stepMs: 1 }))).map(({ series: { name } }) => name)).toEqual(['swap'])
  })
})

describe('windows', () => {
  it('are of all samples, also of those that came late or are not merged', () => {
    storeDays(2)
    const noon = START_MS + 12 * HOUR_MS
    const before = select(ROLLUP_MS)!.windows!
    test.store([[LOAD, noon - 1, 9_999]])
    const late = select(ROLLUP_MS)!.windows!
    const row = late.ends.indexOf(noon)
    expect([before.max[row], late.max[row], late.count[row]]).toEqual([3599, 9_999, before.count[row]! + 1])
    expect(rowsOf(late).filter(([end]) => end !== noon)).toEqual(rowsOf(before).filter(([end]) => end !== noon))
    // And when it is merged.
    test.pass(2 * DAY_MS)
    expect(rowsOf(select(ROLLUP_MS)!.windows!)).toEqual(rowsOf(late))
  })

  it('have what a counter has lost between two of them', () => {
    const values = [5, 7, 1, 2]
    test.store(values.map((value, index) => [LOAD, START_MS + (index + 1) * 200_000, value]))
    const { ends, resets, sum } = select(HOUR_MS)!.windows!
    expect([ends, resets, sum].map((column) => [...column])).toEqual([[START_MS + HOUR_MS], [7], [15]])
  })

  it('are of numbers alone, unless there is nothing else', () => {
    test.store([
      [LOAD, START_MS + 1, Number.NaN],
      [LOAD, START_MS + 2, 3],
      [LOAD, START_MS + 300_001, Number.NaN],
      [LOAD, START_MS + HOUR_MS + 1, Number.NaN],
    ])
    const { min, max, count } = select(HOUR_MS)!.windows!
    expect([min, max, count].map((column) => [...column])).toEqual([
      [3, Number.NaN],
      [3, Number.NaN],
      [3, 1],
    ])
  })
})
