/** Makes pages of the head of a tenant: a run for each day of which it has samples. */
import type { RunCatalogue } from './catalogue.ts'
import { ChunkEncoder, MAX_SAMPLES } from './codec/chunk.ts'
import { PageWriter } from './codec/page.ts'
import { type FreshPages, RunTotals } from './fresh-pages.ts'
import type { Head } from './head.ts'
import { dayOf } from './periods.ts'
import { type SortedSamples, sortSamples } from './sorting.ts'

export interface PagingParts {
  readonly pages: FreshPages
  readonly catalogue: RunCatalogue
  readonly nextNumber: () => number
  readonly clock: () => number
  /** Deletes the rows of a tenant up to one, in the transaction of the caller. */
  readonly removeRows: (tenant: number, last: number) => void
}

export interface PagedTenant {
  readonly id: number
  readonly head: Head
  /** Days up to here have gone since some samples of them came. */
  readonly goneMs: number
  readonly placeOf: (series: number) => number | undefined
}

/** Samples that came for days of which there is a file, and those that were left out. */
interface PagedCounts {
  late: number
  tooOld: number
}

export function* pageHead(tenant: PagedTenant, parts: PagingParts): Generator<undefined, PagedCounts, void> {
  const { pages, catalogue, nextNumber, clock, removeRows } = parts
  const { id, head, goneMs, placeOf } = tenant
  const blocks = [...head.blocks]
  const sorted = yield* sortSamples(blocks, placeOf)
  const runs: RunTotals[] = []
  const counts: PagedCounts = { late: 0, tooOld: 0 }
  for (const day of daysOf(sorted)) {
    if (day < goneMs) {
      counts.tooOld += passOver(sorted, day)
      continue
    }
    const number = nextNumber()
    const totals = new RunTotals({
      id: number,
      tenant: id,
      kind: 'samples',
      period: day,
      number,
      level: 0,
      madeMs: clock(),
    })
    const writer = new PageWriter((page) => {
      totals.add(page)
      pages.put(number, page)
    }, 'fresh')
    const samples = yield* writeDay(sorted, day, writer, pages)
    if (catalogue.fileOf('samples', day) !== undefined) counts.late += samples
    runs.push(totals)
    pages.store()
    yield
  }
  pages.finish(() => {
    for (const totals of runs) {
      const run = totals.run(null)
      if (run !== undefined) catalogue.put(run)
    }
    removeRows(id, blocks.at(-1)?.row ?? 0)
  })
  head.paged(blocks.length, clock())
  return counts
}

function daysOf({ starts, ends, times }: SortedSamples): number[] {
  const days = new Set<number>()
  for (let entry = 0; entry < starts.length; entry++) {
    const last = dayOf(times[ends[entry]! - 1]!)
    for (let row = starts[entry]!; row < ends[entry]!; row++) {
      const day = dayOf(times[row]!)
      days.add(day)
      if (day === last) break
    }
  }
  return [...days].toSorted((a, b) => a - b)
}

/** Returns how many samples of the day there were. */
function passOver({ starts, ends, times }: SortedSamples, day: number): number {
  let samples = 0
  for (let entry = 0; entry < starts.length; entry++) {
    const end = endOfDay(times, starts[entry]!, ends[entry]!, day)
    samples += end - starts[entry]!
    starts[entry] = end
  }
  return samples
}

/** Writes the samples of a day, and passes them over. */
function* writeDay(
  sorted: SortedSamples,
  day: number,
  writer: PageWriter,
  pages: FreshPages,
): Generator<undefined, number, void> {
  const { places, starts, ends, times, values } = sorted
  const encoder = new ChunkEncoder()
  let samples = 0
  for (let entry = 0; entry < places.length; entry++) {
    const end = ends[entry]!
    for (let start = starts[entry]!; start < end && dayOf(times[start]!) === day; start = starts[entry]!) {
      const most = Math.min(end, start + MAX_SAMPLES)
      const stop = dayOf(times[most - 1]!) === day ? most : endOfDay(times, start, most, day)
      const columns = { times: times.subarray(start, stop), values: [values.subarray(start, stop)] }
      encoder.encode(writer.body, day, columns, stop - start)
      starts[entry] = stop
      samples += stop - start
      if (!writer.end(places[entry]!, stop - start, times[start]!, times[stop - 1]!)) continue
      pages.store()
      yield
    }
  }
  writer.flush()
  return samples
}

function endOfDay(times: Float64Array, start: number, most: number, day: number): number {
  let stop = start
  while (stop < most && dayOf(times[stop]!) === day) stop++
  return stop
}
