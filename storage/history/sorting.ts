/**
 * The samples of blocks, in the order of pages: by place, then by time, and of two with the same time the one that came last. It
 * takes 20 bytes a sample while it is made, and works in steps.
 */
import type { ChunkColumns } from './codec/chunk.ts'
import { wordsOf } from './codec/words.ts'
import type { HeadBlock } from './head.ts'
import { numbersBetween, type SeriesNumbers } from './series-numbers.ts'

const SERIES_PER_STEP = 8192

export interface SortedSamples {
  /** Ascending. Those of a place are the rows from its entry of `starts` on, up to its entry of `ends`. */
  readonly places: Float64Array
  readonly starts: Int32Array
  readonly ends: Int32Array
  readonly times: Float64Array
  readonly values: Float64Array
}

/** `placeOf` gives the place of a series; undefined if it is none, and its samples are left out. */
export function* sortSamples(
  blocks: readonly HeadBlock[],
  placeOf: (series: number) => number | undefined,
): Generator<undefined, SortedSamples, void> {
  const counts = counterOf(blocks)
  for (const { series } of blocks) {
    for (let index = 0; index < series.length; index++) counts.add(series[index]!)
    yield
  }
  const known = new Map<number, number>()
  let seen = 0
  for (const [id] of counts.all()) {
    const place = placeOf(id)
    if (place !== undefined) known.set(place, id)
    if (++seen % SERIES_PER_STEP === 0) yield
  }
  const places = Float64Array.from(known.keys()).sort()
  yield
  const starts = new Int32Array(places.length)
  const ends = new Int32Array(places.length)
  /** Entries by series, from 1 on. */
  const entries = counterOf(blocks)
  let total = 0
  for (const [entry, place] of places.entries()) {
    const id = known.get(place)!
    entries.set(id, entry + 1)
    starts[entry] = total
    ends[entry] = total
    total += counts.get(id)
  }
  yield
  const times = new Float64Array(total)
  const values = new Float64Array(total)
  for (const block of blocks) {
    scatter(block, entries, { ends, times, values })
    yield
  }
  const columns = { times, values: [values] }
  for (let entry = 0; entry < places.length; entry++) {
    ends[entry] = orderRows(columns, starts[entry]!, ends[entry]!)
    if (entry % 1024 === 1023) yield
  }
  return { places, starts, ends, times, values }
}

function counterOf(blocks: readonly HeadBlock[]): SeriesNumbers {
  let first = Number.POSITIVE_INFINITY
  let last = 0
  for (const { series } of blocks) {
    for (let index = 0; index < series.length; index++) {
      const id = series[index]!
      if (id < first) first = id
      if (id > last) last = id
    }
  }
  return numbersBetween(first, last)
}

function scatter(
  block: HeadBlock,
  entries: SeriesNumbers,
  { ends, times, values }: { readonly ends: Int32Array; readonly times: Float64Array; readonly values: Float64Array },
): void {
  const from = wordsOf(block.values)
  const to = wordsOf(values)
  for (let index = 0; index < block.series.length; index++) {
    const entry = entries.get(block.series[index]!) - 1
    if (entry < 0) continue
    const row = ends[entry]!
    ends[entry] = row + 1
    times[row] = block.times[index]!
    to[2 * row] = from[2 * index]!
    to[2 * row + 1] = from[2 * index + 1]!
  }
}

/** Sorts rows by time in place; of those with the same time the last one stays. Returns where they end then. */
export function orderRows({ times, values }: ChunkColumns, start: number, end: number): number {
  let isAscending = true
  for (let row = start + 1; row < end && isAscending; row++) isAscending = times[row]! > times[row - 1]!
  if (isAscending) return end
  const rows = Uint32Array.from({ length: end - start }, (_, index) => start + index)
  rows.sort((a, b) => times[a]! - times[b]! || a - b)
  const kept = rows.filter((row, index) => index + 1 === rows.length || times[rows[index + 1]!] !== times[row])
  for (const column of [times, ...values]) {
    const from = wordsOf(column.slice(start, end))
    const to = wordsOf(column)
    for (let index = 0; index < kept.length; index++) {
      const row = kept[index]! - start
      to[2 * (start + index)] = from[2 * row]!
      to[2 * (start + index) + 1] = from[2 * row + 1]!
    }
  }
  return start + kept.length
}
