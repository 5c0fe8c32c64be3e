/** What a query holds in memory of one series. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { joinParts, type Part } from '../../../storage/history/select.ts'
import { HistoryBoundError } from '../../../storage/history/store.ts'
import { all, DAY_MS, linesOf, query, series } from './history-model.ts'
import { TestHistory } from './test-history.ts'

const FAST = series('fast')
const SLOW = series('slow')
/** A day of the fast series has more than a piece. */
const OF_DAY = 1_100_000

let test: TestHistory
beforeEach(() => {
  test = new TestHistory()
})
afterEach(() => test.end())

const bytesOf = ({ buffer, byteOffset, byteLength }: Float64Array): Buffer =>
  Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength)

/** Samples every millisecond, up to now. */
function storeFast(count: number): void {
  const reference = test.history.seriesOf(FAST) ?? 0
  const times = Float64Array.from({ length: count }, (_, index) => test.now - count + index)
  test.history.append({
    tenant: 'acme',
    position: undefined,
    series: new Uint32Array(count).fill(reference),
    times,
    values: times.map((time) => time % 1_000),
    length: count,
    losses: [],
  })
  test.history.commit()
}

it('a series with very many samples comes in pieces of whole days, if it may', () => {
  for (const count of [OF_DAY, 10, 20]) {
    storeFast(count)
    test.storeMany(SLOW, 10)
    test.pass(DAY_MS)
  }
  // What is fresh, and what came late for a day that was merged.
  storeFast(10)
  test.store([[FAST, test.now - 2.4 * DAY_MS, 7]])
  const whole = all(test.history.select(query('acme')))
  const pieces = all(test.history.select(query('acme', { inPieces: true })))
  const names = (found: typeof whole): string[] => found.map(({ series: { name } }) => name)
  expect(names(whole)).toEqual(['fast', 'slow'])
  expect(names(pieces)).toEqual(['fast', 'fast', 'slow'])
  const ofFast = pieces.filter(({ series: { name } }) => name === 'fast')
  expect(ofFast.map(({ times }) => times.length)).toEqual([OF_DAY, 41])
  for (const column of ['times', 'values'] as const) {
    const joined = Buffer.concat(ofFast.map((piece) => bytesOf(piece[column])))
    expect(Buffer.compare(joined, bytesOf(whole[0]![column]))).toBe(0)
  }
  expect(linesOf(pieces.slice(2))).toEqual(linesOf(whole.slice(1)))
})

it('more samples of a series than fit are not read', () => {
  const part = { columnCount: 1, length: 2 ** 24 + 1, read: (_: unknown, at: number) => at } satisfies Part
  expect(() => joinParts([part], 0, 1)).toThrow(HistoryBoundError)
  expect(() => joinParts([part], 0, 1)).toThrow(/16777217 samples.*at most 16777216 are read at once.*shorter time/)
})
