/** Series by the numbers of decoders: never another one, never one that has ended, and no more of them than is allowed. */
import { expect, it } from 'vitest'
import { KnownSeries } from '../../../server/kit/known-series.ts'

const series = () => ({ isLive: true })

it('a number means what was kept under it in the same numbering', () => {
  const known = new KnownSeries()
  const [one, other] = [series(), series()]
  known.numberedBy('a').keep(1, one)
  known.numberedBy('b').keep(1, other)
  known.numberedBy('a').keep(5, other)
  expect([1, 2, 5, 6].map((number) => known.numberedBy('a').of(number))).toEqual([one, undefined, other, undefined])
  expect(known.numberedBy('b').of(1)).toBe(other)
  expect(known.numberedBy('c').of(1)).toBeUndefined()
})

it('numbers may be far apart', () => {
  const known = new KnownSeries()
  const all = [1, 255, 256, 257, 511, 512, 200_000].map((number) => ({ number, kept: series() }))
  for (const { number, kept } of all) known.numberedBy('a').keep(number, kept)
  for (const { number, kept } of all) expect(known.numberedBy('a').of(number)).toBe(kept)
  for (const number of [2, 254, 258, 513, 199_999, 200_001]) {
    expect(known.numberedBy('a').of(number)).toBeUndefined()
  }
})

it('0 is no number', () => {
  const known = new KnownSeries()
  known.numberedBy('a').keep(0, series())
  expect(known.numberedBy('a').of(0)).toBeUndefined()
})

it('one that has ended is not found any more', () => {
  const known = new KnownSeries()
  const ending = series()
  known.numberedBy('a').keep(1, ending)
  ending.isLive = false
  expect(known.numberedBy('a').of(1)).toBeUndefined()
})

it('of memories, those two are known that were used last', () => {
  const known = new KnownSeries()
  for (const numbering of ['a', 'b', 'a', 'c']) known.numberedBy(numbering).keep(1, series())
  expect(known.numberedBy('a').of(1)).toBeDefined()
  expect(known.numberedBy('c').of(1)).toBeDefined()
  expect(known.letGo).toBe(1)
  expect(known.numberedBy('b').of(1)).toBeUndefined()
  expect(known.letGo).toBe(2)
})

it('after a thousand have ended, none is held', () => {
  const known = new KnownSeries()
  known.numberedBy('a').keep(1, series())
  for (let ended = 1; ended < 1_024; ended++) known.ended()
  expect(known.numberedBy('a').of(1)).toBeDefined()
  expect(known.letGo).toBe(0)
  known.ended()
  expect(known.letGo).toBe(1)
  expect(known.numberedBy('a').of(1)).toBeUndefined()
})
