/** Series in a history on the disk, with the interface of those in memory, for tests of the language over it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LabelMatcher } from '../../promql/label-matcher.ts'
import { type LabelSet, METRIC_NAME_LABEL } from '../../promql/label-set.ts'
import type { MemoryValue } from '../../promql/memory-source.ts'
import {
  type RollupSource,
  type SeriesSource,
  type SourceRollups,
  type SourceSeries,
  StaleMarkers,
  type Stream,
} from '../../promql/series-source.ts'
import { History } from '../../storage/history/history.ts'
import { type HistorySamples, ROLLUP_MS } from '../../storage/history/store.ts'
import { DAY_MS, HOUR_MS } from '../storage/history/history-model.ts'

const TENANT = 'acme'
const KEPT_MS = 36_500 * DAY_MS
/** Scripts begin at 0, of which the history takes no sample: there it is this time. */
const BEGIN_MS = 365 * DAY_MS

export class StoredSource implements SeriesSource {
  readonly rollups: RollupSource = {
    stepMs: ROLLUP_MS,
    select: (matchers, fromMs, toMs, windowsMs) => this.#rollups(matchers, fromMs, toMs, windowsMs),
  }
  readonly #directory = mkdtempSync(join(tmpdir(), 'promql-'))
  #nowMs = 2 * BEGIN_MS
  readonly #history = History.open({
    directory: this.#directory,
    clock: () => this.#nowMs,
    monotonicMs: () => this.#nowMs,
    limits: { keepMs: KEPT_MS, keepRollupsMs: KEPT_MS, maxBytes: 2 ** 40, quotas: new Map() },
    space: () => ({ sizeBytes: 2 ** 40, freeBytes: 2 ** 40 }),
  })

  add(labels: LabelSet, samples: Iterable<readonly [timeMs: number, value: MemoryValue]>): void {
    const name = labels.metricName
    const others = [...labels].filter(([label]) => label !== METRIC_NAME_LABEL)
    const sorted = others.toSorted(([a], [b]) => (a < b ? -1 : 1))
    const reference = this.#history.seriesOf({ tenant: TENANT, name, native: name, labels: sorted })
    if (reference === undefined) throw new Error(`the history takes no series ${labels}`)
    const all = [...samples]
    const values = Float64Array.from(all, ([, value]) => (value === 'stale' ? Number.NaN : value))
    const markers = new StaleMarkers(values)
    for (const [index, [, value]] of all.entries()) if (value === 'stale') markers.set(index)
    const times = Float64Array.from(all, ([ms]) => ms + BEGIN_MS)
    const series = new Uint32Array(all.length).fill(reference)
    this.#history.append({ tenant: TENANT, position: undefined, series, times, values, length: all.length, losses: [] })
    while (!this.#history.commit());
  }

  /** Makes pages of what is in memory, and files of the days. */
  settle(): void {
    for (let hours = 0; hours < 6; hours++) {
      this.#nowMs += HOUR_MS
      while (this.#history.work(1_000));
    }
  }

  *select(matchers: readonly LabelMatcher[], fromMs: number, toMs: number): Stream<SourceSeries> {
    for (const found of this.#found(matchers, fromMs, toMs)) {
      yield found && { labels: labelsOf(found), times: shifted(found.times), values: found.values }
    }
  }

  *#rollups(matchers: readonly LabelMatcher[], fromMs: number, toMs: number, windowsMs: number): Stream<SourceRollups> {
    for (const found of this.#found(matchers, fromMs, toMs, windowsMs)) {
      if (found?.windows === undefined) yield undefined
      else {
        const { ends, firstTimes, lastTimes } = found.windows
        const times = { ends: shifted(ends), firstTimes: shifted(firstTimes), lastTimes: shifted(lastTimes) }
        yield { labels: labelsOf(found), ...found.windows, ...times }
      }
    }
  }

  *#found(matchers: readonly LabelMatcher[], fromMs: number, toMs: number, stepMs?: number): Stream<HistorySamples> {
    const plain = matchers.map(({ label, operator, text }) => ({ label, operator, text }))
    const range = { fromMs: Math.max(0, fromMs + BEGIN_MS), toMs: toMs + BEGIN_MS }
    if (range.toMs >= 0) yield* this.#history.select({ tenant: TENANT, matchers: plain, ...range, stepMs })
  }

  end(): void {
    this.#history.close()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

function labelsOf({ series }: HistorySamples): SourceSeries['labels'] {
  return [[METRIC_NAME_LABEL, series.name] as const, ...series.labels]
}

function shifted(times: Float64Array): Float64Array {
  return times.map((ms) => ms - BEGIN_MS)
}
