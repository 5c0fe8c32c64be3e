/**
 * Reads series in windows. Where a day is as it was when its file was made, its rollups are what its samples come to; where something
 * of it is fresh, windows are made of all its samples. Where samples have gone, the rollups are what is left.
 */
import type { ChunkColumns } from './codec/chunk.ts'
import type { HeadPart } from './head-parts.ts'
import { DAY_MS, dayOf, monthOf, type RunKind } from './periods.ts'
import { RollupBuilder } from './rollup.ts'
import { ColumnsPart, joinParts, type MsRange, type Part, type RunReader } from './select.ts'
import { type HistorySamples, ROLLUP_MS } from './store.ts'
import { WindowBuilder, windowMs } from './windows.ts'

export interface SummaryParts {
  readonly stepMs: number
  /** The end of the last day whose samples have gone and left their rollups. */
  readonly goneMs: number
  /** What has something in a range, in the order in which it holds. */
  readonly runs: (kind: RunKind, range: MsRange) => RunReader[]
}

type Found = Omit<HistorySamples, 'series'>

export interface SeriesSummary {
  /** Samples of the head that it needs. */
  readonly range: MsRange
  /** What there is of a series, each later in the order of places than the one before; undefined if there is nothing. */
  read(place: number, head: HeadPart | undefined): Generator<undefined, Found | undefined, void>
}

export function summaryOf(range: MsRange, parts: SummaryParts): SeriesSummary {
  return parts.stepMs < ROLLUP_MS ? new RestSummary(range, parts) : new WholeSummary(range, parts)
}

/** Samples, and rollups of the days whose samples have gone. */
class RestSummary implements SeriesSummary {
  readonly range: MsRange
  readonly #samples: readonly RunReader[]
  readonly #rollups: readonly RunReader[]
  readonly #rollupRange: MsRange
  readonly #days: ReadonlySet<number>

  constructor(range: MsRange, { goneMs, runs }: SummaryParts) {
    this.range = range
    const whole = wholeWindows(range, ROLLUP_MS)
    this.#rollupRange = { ...whole, toMs: Math.min(whole.toMs, goneMs) }
    const areGone = this.#rollupRange.toMs >= this.#rollupRange.fromMs
    this.#samples = runs('samples', range)
    this.#rollups = areGone ? runs('rollups', this.#rollupRange) : []
    this.#days = new Set(areGone ? runs('samples', whole).map(({ run }) => run.period) : [])
  }

  *read(place: number, head: HeadPart | undefined): Generator<undefined, Found | undefined, void> {
    // Most series of most queries have none, and a builder has columns.
    const builder = this.#rollups.length === 0 ? undefined : new WindowBuilder(ROLLUP_MS)
    if (builder !== undefined) yield* this.#addRollups(place, builder)
    const parts: Part[] = []
    for (const reader of this.#samples) yield* reader.read(place, parts)
    if (head !== undefined) parts.push(head)
    const samples = joinParts(parts, this.range.fromMs, this.range.toMs)
    return found(samples, builder)
  }

  *#addRollups(place: number, builder: WindowBuilder): Generator<undefined, void, void> {
    for (const [, rollups] of yield* partsByPeriod(this.#rollups, place)) {
      const { fromMs, toMs } = this.#rollupRange
      const columns = joinParts(rollups, fromMs, toMs)
      if (columns !== undefined) builder.add(this.#gone(columns))
      yield
    }
  }

  /** The rows of days without samples. */
  #gone(columns: ChunkColumns): ChunkColumns {
    const { times, values } = columns
    const isGone = (row: number): boolean => !this.#days.has(dayOf(times[row]!))
    const rows = [...times.keys()].filter(isGone)
    if (rows.length === times.length) return columns
    const of = (column: Float64Array): Float64Array => Float64Array.from(rows, (row) => column[row]!)
    return { times: of(times), values: values.map(of) }
  }
}

/** Windows of all times. */
class WholeSummary implements SeriesSummary {
  readonly range: MsRange
  readonly #stepMs: number
  readonly #goneMs: number
  readonly #samples: readonly RunReader[]
  readonly #rollups: readonly RunReader[]
  /** Days with samples, and those of them with something that is in no file. */
  readonly #days: ReadonlySet<number>
  readonly #freshDays: ReadonlySet<number>

  constructor(range: MsRange, { stepMs, goneMs, runs }: SummaryParts) {
    this.#stepMs = windowMs(stepMs)
    this.#goneMs = goneMs
    this.range = wholeWindows(range, this.#stepMs)
    this.#samples = runs('samples', this.range)
    this.#rollups = runs('rollups', this.range)
    const all = this.#samples.map(({ run }) => run)
    this.#days = new Set(all.map(({ period }) => period))
    this.#freshDays = new Set(all.filter(({ file }) => file === null).map(({ period }) => period))
  }

  *read(place: number, head: HeadPart | undefined): Generator<undefined, Found | undefined, void> {
    const days = this.#freshDaysOf(head)
    const rollups = yield* partsByPeriod(this.#rollups, place)
    const fresh = this.#samples.filter(({ run }) => days.has(run.period))
    const samples = yield* partsByPeriod(fresh, place)
    for (const day of [...days].toSorted((a, b) => a - b)) {
      const parts = samples.get(day) ?? []
      const part = this.#rollup(day, head === undefined ? parts : [...parts, head])
      // It holds, since it comes last: it has all windows of the day.
      if (part !== undefined) rollups.set(monthOf(day), [...(rollups.get(monthOf(day)) ?? []), part])
      yield
    }
    const builder = new WindowBuilder(this.#stepMs)
    for (const month of [...rollups.keys()].toSorted((a, b) => a - b)) {
      const columns = joinParts(rollups.get(month) ?? [], this.range.fromMs, this.range.toMs)
      if (columns !== undefined) builder.add(columns)
      yield
    }
    return found(undefined, builder)
  }

  #freshDaysOf(head: HeadPart | undefined): ReadonlySet<number> {
    if (head === undefined) return this.#freshDays
    const days = new Set(this.#freshDays)
    for (let row = 0; row < head.length; row++) {
      const day = dayOf(head.times[row]!)
      // What came late for a day that has gone since takes the place of nothing.
      if (day >= this.#goneMs || this.#days.has(day)) days.add(day)
    }
    return days
  }

  #rollup(day: number, parts: readonly Part[]): Part | undefined {
    const { fromMs, toMs } = this.range
    const [firstMs, lastMs] = [Math.max(fromMs, day + 1), Math.min(toMs, day + DAY_MS)]
    const samples = joinParts(parts, firstMs, lastMs)
    if (samples === undefined) return undefined
    const builder = new RollupBuilder(1 + Math.ceil((lastMs - firstMs) / ROLLUP_MS))
    builder.add(samples.times, samples.values[0]!, samples.times.length)
    builder.finish()
    return builder.length === 0 ? undefined : new ColumnsPart(builder.columns, builder.length)
  }
}

/** The times of the windows that have something of a range. */
function wholeWindows({ fromMs, toMs }: MsRange, stepMs: number): MsRange {
  return { fromMs: (Math.ceil(fromMs / stepMs) - 1) * stepMs + 1, toMs: Math.ceil(toMs / stepMs) * stepMs }
}

function* partsByPeriod(readers: readonly RunReader[], place: number): Generator<undefined, Map<number, Part[]>, void> {
  const byPeriod = new Map<number, Part[]>()
  for (const reader of readers) {
    const parts = byPeriod.get(reader.run.period) ?? []
    byPeriod.set(reader.run.period, parts)
    yield* reader.read(place, parts)
  }
  return byPeriod
}

const NONE = new Float64Array(0)

function found(samples: ChunkColumns | undefined, builder: WindowBuilder | undefined): Found | undefined {
  const windows = builder?.finish()
  if (samples === undefined && windows === undefined) return undefined
  return { times: samples?.times ?? NONE.slice(), values: samples?.values[0] ?? NONE.slice(), windows }
}
