/** The rows of a series in the head: the index finds those that a look at all rows finds, whatever came and went meanwhile. */
import { expect, it } from 'vitest'
import { placeOf } from '../../../storage/history/codec/page.ts'
import { Head, type StoredBlock } from '../../../storage/history/head.ts'
import { type HeadPart, rowsOfSeries } from '../../../storage/history/head-parts.ts'
import { Random } from '../../support/random.ts'

const SERIES = 40
/** The index is used where there are many rows for each series that is wanted. */
const ROWS = 600
const RANGE = { fromMs: 200, toMs: 900 }

function blockOf(random: Random, row: number): StoredBlock {
  const length = ROWS + random.below(ROWS)
  const times = Float64Array.from({ length }, () => random.below(1_000))
  return {
    row,
    series: Uint32Array.from({ length }, () => 1 + random.below(SERIES)),
    times,
    // One for all: a NaN with its bits must come through.
    values: new Float64Array(new BigUint64Array(length).fill(0x7ff0_0000_0000_0002n).buffer),
    fromMs: Math.min(...times),
    toMs: Math.max(...times),
  }
}

function columnsOf(part: HeadPart | undefined): [number[], bigint[]] {
  if (part === undefined) return [[], []]
  const into = { times: new Float64Array(part.length), values: [new Float64Array(part.length)] }
  part.read(into, 0)
  return [[...into.times], [...new BigUint64Array(into.values[0]!.buffer)]]
}

/** The times of a series, each once, as the blocks have them. */
function timesIn(blocks: readonly StoredBlock[], wanted: number): number[] {
  const times = blocks.flatMap(({ series, times }) => [...times].filter((_, at) => series[at] === wanted))
  return [...new Set(times.filter((ms) => ms >= RANGE.fromMs && ms <= RANGE.toMs))].sort((a, b) => a - b)
}

function found(head: Head, blocks: readonly StoredBlock[], wanted: number) {
  const steps = rowsOfSeries(head, blocks, Float64Array.of(placeOf(7, wanted)), RANGE)
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

it.each([1, 2, 3, 4, 5])(
  'blocks come, go into pages and are asked for by queries that began before: seed %i',
  (seed) => {
    const random = new Random(seed)
    const head = new Head()
    let snapshot: readonly StoredBlock[] = []
    let rows = 0
    for (let step = 0; step < 60; step++) {
      const act = random.below(4)
      if (act === 0 && head.blocks.length > 0) head.paged(1 + random.below(head.blocks.length), 0)
      else if (act === 1) snapshot = [...head.blocks]
      // Numbers of rows begin anew when none is left.
      else head.add(blockOf(random, head.blocks.length === 0 ? 1 : ++rows), 0)
      for (const blocks of [[...head.blocks], snapshot]) {
        const wanted = 1 + random.below(SERIES + 1)
        const times = timesIn(blocks, wanted)
        const part = found(head, blocks, wanted).part(0)
        expect(columnsOf(part)).toEqual([times, times.map(() => 0x7ff0_0000_0000_0002n)])
      }
    }
  },
)

it('is used for few series, and not for many', () => {
  const head = new Head()
  head.add(blockOf(new Random(1), 1), 0)
  const blocks = [...head.blocks]
  const few = found(head, blocks, 1)
  const places = Float64Array.from({ length: SERIES }, (_, at) => placeOf(7, at + 1))
  const all = rowsOfSeries(head, blocks, places, RANGE)
  expect(all.next().done).toBe(false)
  expect(columnsOf(few.part(0))[0]).toEqual(timesIn(blocks, 1))
})
