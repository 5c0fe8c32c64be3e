/** The samples of a selection in memory: they grow, and what nobody wants any more goes. */
import { expect, it } from 'vitest'
import { FollowedColumns, type FollowedRange } from '../../../../server/wings/history/followed-columns.ts'
import type { SelectedSamples } from '../../../../server/wings/history/messages.ts'
import { linesOf, STALE, series } from '../../../storage/history/history-model.ts'

const RANGE: FollowedRange = { fromMs: 0, toMs: 1_000 }

function samplesOf(place: number, ...times: number[]): SelectedSamples {
  const one = series('a', { host: String(place) })
  return { series: one, place, times: Float64Array.from(times), values: Float64Array.from(times) }
}

/** Columns of samples with their times as values. */
function columnsOf(...samples: readonly (readonly [place: number, ms: number])[]): Float64Array {
  const [places, times] = [samples.map(([place]) => place), samples.map(([, ms]) => ms)]
  return Float64Array.of(...places, ...times, ...times)
}

function timesIn(columns: FollowedColumns, range: FollowedRange): number[][] {
  return [...columns.read(range)].map(({ times }) => [...times])
}

it('has what was read, and what has come, of each series that has something', () => {
  const columns = new FollowedColumns([samplesOf(3, 1, 2), samplesOf(9, 5)], RANGE)
  expect(columns.add(columnsOf([3, 4], [9, 6], [9, 7]), 0, 3)).toBe(true)
  expect(timesIn(columns, RANGE)).toEqual([
    [1, 2, 4],
    [5, 6, 7],
  ])
  expect(timesIn(columns, { fromMs: 2, toMs: 4 })).toEqual([[2, 4]])
})

it('takes a part of the columns of several selections', () => {
  const columns = new FollowedColumns([samplesOf(3, 1)], RANGE)
  columns.add(columnsOf([8, 2], [3, 3], [8, 4]), 1, 2)
  expect(timesIn(columns, RANGE)).toEqual([[1, 3]])
})

it('does not know a series that was not read', () => {
  const columns = new FollowedColumns([samplesOf(3, 1), samplesOf(5, 1)], RANGE)
  for (const place of [2, 4, 6]) expect(columns.add(columnsOf([place, 2]), 0, 1)).toBe(false)
})

it('puts what came late in its place, and of one time has what came last, with all bits', () => {
  const columns = new FollowedColumns([samplesOf(3, 10, 30)], RANGE)
  columns.add(columnsOf([3, 20]), 0, 1)
  const marker = columnsOf([3, 10])
  new BigUint64Array(marker.buffer)[2] = STALE
  columns.add(marker, 0, 1)
  const [found] = [...columns.read(RANGE)] as [SelectedSamples]
  expect(linesOf([found])).toEqual(
    [
      [10, STALE],
      [20, 20],
      [30, 30],
    ].map(([ms, value]) => {
      const of = { ...samplesOf(3, Number(ms)) }
      if (typeof value === 'bigint') new BigUint64Array(of.values.buffer)[0] = value
      return linesOf([of])[0]
    }),
  )
})

it('puts many that came late in one go, each in its place, and leaves what was given out', () => {
  const times = [100, 200, 300]
  const columns = new FollowedColumns([samplesOf(3, ...times)], RANGE)
  const [before] = [...columns.read(RANGE)] as [SelectedSamples]
  const late = Array.from({ length: 20 }, (_, at) => 290 - 10 * at).filter((ms) => !times.includes(ms))
  columns.add(columnsOf(...late.map((ms) => [3, ms] as const)), 0, late.length)
  expect(timesIn(columns, RANGE)).toEqual([[...times, ...late].sort((one, other) => one - other)])
  expect([...before.times]).toEqual(times)
})

it('gives what there is when it is asked, whatever comes and goes while that is taken', () => {
  const columns = new FollowedColumns([samplesOf(3, 100, 200), samplesOf(9, 150, 200)], RANGE)
  const asked = columns.read(RANGE)
  const [first] = [asked.next().value as SelectedSamples]
  columns.want({ fromMs: 1_000_000, toMs: 1_000_000 })
  columns.add(columnsOf([3, 180], [9, 160], [9, 170], [9, 300]), 0, 4)
  const second = asked.next().value as SelectedSamples
  expect([first, second].map(({ times }) => [...times])).toEqual([
    [100, 200],
    [150, 200],
  ])
})

it('lets go what is not wanted any more, and does not grow', () => {
  const columns = new FollowedColumns([samplesOf(3, 0)], RANGE)
  let most = 0
  for (let ms = 10_000; ms < 10_000_000; ms += 10_000) {
    columns.add(columnsOf([3, ms]), 0, 1)
    columns.want({ fromMs: ms - 300_000, toMs: ms })
    most = Math.max(most, columns.size)
  }
  expect(most).toBeLessThan(2 * 2 * (300 + 60))
  const range = { fromMs: 9_990_000 - 300_000, toMs: 9_990_000 }
  expect(timesIn(columns, range)[0]).toHaveLength(31)
  expect([columns.has(range), columns.has({ ...range, fromMs: 0 })]).toEqual([true, false])
})

it('keeps the last two samples before what is wanted, where these are enough', () => {
  const before = [1, 2, 3, 4, 5].map((at) => at * 100_000)
  const range = { fromMs: 0, toMs: 1_000_000, twoBeforeMs: 900_000 }
  const columns = new FollowedColumns([samplesOf(3, ...before)], range)
  expect(timesIn(columns, range)).toEqual([[400_000, 500_000]])
  expect([columns.has(range), columns.has({ ...range, twoBeforeMs: 800_000 })]).toEqual([true, false])
})
