/** Expressions over a history on the disk: what rollups say of it, while samples are there and when they have gone. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LabelSet } from '../../../../../promql/label-set.ts'
import { MemorySource } from '../../../../../promql/memory-source.ts'
import { PreparedQuery, type QueryResult } from '../../../../../promql/query.ts'
import type { SeriesSource } from '../../../../../promql/series-source.ts'
import { HistorySource } from '../../../../../server/edge/query/history-source.ts'
import type { RememberedSelection, RememberedSeries } from '../../../../../server/kit/history.ts'
import {
  DAY_MS,
  HOUR_MS,
  type Sample,
  STALE,
  START_MS,
  series,
  UNLIMITED,
} from '../../../../storage/history/history-model.ts'
import { TestHistory } from '../../../../storage/history/test-history.ts'
import { Random } from '../../../../support/random.ts'

const MINUTE_MS = 60_000
/** The second day is not merged. */
const FIRST_MS = START_MS + 22 * HOUR_MS
const LAST_MS = START_MS + 26 * HOUR_MS
const HOSTS = ['a', 'b', 'c']

let test: TestHistory
let memory: MemorySource
let selections: RememberedSelection[]
beforeEach(() => {
  test = new TestHistory()
  memory = new MemorySource()
  selections = []
  const random = new Random(7)
  test.now = LAST_MS
  for (const host of HOSTS) {
    let counted = 0
    for (const name of ['load', 'requests_total']) {
      const of = series(name, { host })
      const labels = LabelSet.of([['__name__', name], ...of.labels])
      const samples: Sample[] = []
      for (let ms = FIRST_MS + random.below(9_000); ms < LAST_MS; ms += 1 + random.below(40_000)) {
        // Now and then it is not there for a while, or begins again.
        if (random.below(100) === 0) ms += random.below(900_000)
        counted = random.below(50) === 0 ? 0 : counted + random.below(10)
        const isStale = random.below(80) === 0
        const value = name === 'load' ? random.next() * 100 : counted
        samples.push([of, ms, isStale ? STALE : value])
        memory.add(labels, [[ms, isStale ? 'stale' : value]])
      }
      test.store(samples)
    }
  }
  test.pass(HOUR_MS)
})
afterEach(() => test.end())

/** The history as the server reads it, portion by portion. */
function stored(): HistorySource {
  return new HistorySource(async function* (selection) {
    selections.push(selection)
    for (const found of test.history.select({ tenant: 'acme', ...selection })) {
      if (found !== undefined) yield [{ ...found, mayRead: () => true } satisfies RememberedSeries]
    }
  })
}

async function run(text: string, source: SeriesSource, stepMs: number, startMs = START_MS + 23 * HOUR_MS) {
  const steps = new PreparedQuery(text).range(source, startMs, startMs + 2 * HOUR_MS, stepMs)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value as QueryResult
    if (source instanceof HistorySource) await source.waiting
  }
}

/** Ten digits of each value: sums are rounded in another order. */
function linesOf({ data }: QueryResult): string[] {
  if (data.type !== 'matrix') throw new Error('a range query gives a matrix')
  return data.series.map(({ labels, times, values }) => {
    const points = [...values].map((value, index) => `${times[index]} ${Number(value.toPrecision(10))}`)
    return `${labels}: ${points.join(', ')}`
  })
}

const OF_ROLLUPS = [
  'min_over_time(load[10m])',
  'max_over_time(load[1h])',
  'avg_over_time(load[15m] offset 5m)',
  'sum by (host) (sum_over_time(load[5m]))',
  'count_over_time({host="a", __name__=~"l.*"}[20m])',
  'rate(requests_total[5m])',
  'sum(increase(requests_total[1h] offset -10m))',
  `increase(requests_total[30m] @ ${(START_MS + 24 * HOUR_MS) / 1000})`,
  'max_over_time(load[25m]) - min_over_time(load[25m])',
]

async function expectSame(text: string, stepMs: number, startMs?: number): Promise<QueryResult> {
  const found = await run(text, stored(), stepMs, startMs)
  const lines = linesOf(found)
  expect(lines.length).toBeGreaterThan(0)
  expect(lines).toEqual(linesOf(await run(text, memory, stepMs, startMs)))
  return found
}

describe('what rollups say', () => {
  it.each(OF_ROLLUPS)('is what samples say: %s', async (text) => {
    const { warnings } = await expectSame(text, 5 * MINUTE_MS)
    expect(selections.map(({ stepMs }) => stepMs)).not.toContain(1)
    expect(warnings).toEqual([])
  })

  it.each([
    ['avg_over_time(load[1h])', HOUR_MS, HOUR_MS],
    ['min_over_time(load[1h])', 30 * MINUTE_MS, 30 * MINUTE_MS],
    ['max_over_time(load[2h] offset 20m)', HOUR_MS, 20 * MINUTE_MS],
    ['count_over_time(load[50m])', HOUR_MS, 10 * MINUTE_MS],
    ['rate(requests_total[1h])', HOUR_MS, HOUR_MS],
    ['sum(increase(requests_total[2h]))', HOUR_MS, HOUR_MS],
    ['sum_over_time(load[48h])', 24 * HOUR_MS, DAY_MS],
    ['avg_over_time(load[1h] @ end())', 7 * MINUTE_MS, HOUR_MS],
  ])('is asked in windows as long as can be: %s', async (text, stepMs, windowsMs) => {
    await expectSame(text, stepMs, START_MS + 24 * HOUR_MS)
    expect(new Set(selections.map((selection) => selection.stepMs))).toEqual(new Set([windowsMs]))
  })

  it('is not asked where windows have parts of them, or of other functions', async () => {
    await expectSame('rate(requests_total[7m])', 5 * MINUTE_MS)
    await expectSame('rate(requests_total[5m])', MINUTE_MS)
    await expectSame('avg_over_time(load[5m] offset 1m)', 5 * MINUTE_MS)
    await expectSame('stddev_over_time(load[5m])', 5 * MINUTE_MS)
    await expectSame('avg_over_time(load[10m:1m])', 5 * MINUTE_MS)
    await expectSame('load', 5 * MINUTE_MS)
    expect(selections.every(({ stepMs }) => stepMs === 1)).toBe(true)
  })
})

describe('where samples have gone', () => {
  beforeEach(() => {
    test.pass(3 * DAY_MS)
    test.history.limit({ ...UNLIMITED, keepMs: DAY_MS })
    test.pass(HOUR_MS)
    expect([...test.history.select({ tenant: 'acme', matchers: [], fromMs: 0, toMs: LAST_MS })]).toEqual([])
  })

  it.each(OF_ROLLUPS)('the answer is the same: %s', async (text) => {
    const { warnings } = await expectSame(text, 5 * MINUTE_MS)
    expect(warnings).toEqual([])
  })

  it('any other function sees the last sample of each rollup, and a warning says so', async () => {
    const { data, warnings } = await run('count_over_time(load{host="a"}[1h] offset 1m)', stored(), HOUR_MS)
    const counts = data.type === 'matrix' ? [...(data.series[0]?.values ?? [])] : []
    expect(counts.every((count) => count > 0 && count <= 12)).toBe(true)
    expect(warnings).toEqual([expect.stringMatching(/^PromQL warning: samples of the oldest times have gone/)])
    // At the end of a rollup its last sample is the last one of all.
    const last = 'last_over_time(load[5m])'
    expect(linesOf(await run(last, stored(), 5 * MINUTE_MS))).toEqual(linesOf(await run(last, memory, 5 * MINUTE_MS)))
    expect((await run('load', stored(), MINUTE_MS)).warnings).toHaveLength(1)
  })
})
