import { describe, expect, it } from 'vitest'
import type { HeadBlock } from '../../../storage/history/head.ts'
import { type SortedSamples, sortSamples } from '../../../storage/history/sorting.ts'

function block(rows: readonly (readonly [series: number, time: number, value: number])[]): HeadBlock {
  return {
    series: Uint32Array.from(rows, ([series]) => series),
    times: Float64Array.from(rows, ([, time]) => time),
    values: Float64Array.from(rows, ([, , value]) => value),
  }
}

function sorted(blocks: readonly HeadBlock[], placeOf: (series: number) => number | undefined): SortedSamples {
  const steps = sortSamples(blocks, placeOf)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

/** By place: times and values. */
const rowsOf = ({ places, starts, ends, times, values }: SortedSamples): [number, number[], number[]][] =>
  Array.from(places, (place, entry) => [
    place,
    [...times.subarray(starts[entry], ends[entry])],
    [...values.subarray(starts[entry], ends[entry])],
  ])

describe('samples', () => {
  it.each([
    ['near each other', 8],
    ['far from each other', 2 ** 32 - 1],
  ])('of series that are %s are sorted by place and time, and the last of one time stays', (_, other) => {
    const blocks = [
      block([
        [7, 30, 1],
        [other, 10, 2],
        [9, 5, 3],
        [7, 20, 4],
      ]),
      block([
        [7, 30, 5],
        [7, 25, 6],
        [other, 11, 7],
      ]),
    ]
    // The place of the other one is first, and 9 is no series.
    const places = new Map([
      [7, 200],
      [other, 100],
    ])
    expect(rowsOf(sorted(blocks, (series) => places.get(series)))).toEqual([
      [100, [10, 11], [2, 7]],
      [200, [20, 25, 30], [4, 6, 5]],
    ])
  })

  it('may be none', () => {
    expect(rowsOf(sorted([], () => 1))).toEqual([])
    expect(rowsOf(sorted([block([])], () => 1))).toEqual([])
  })
})
