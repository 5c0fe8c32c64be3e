/**
 * The history as a source of an evaluation, whose steps are synchronous: where the next portion has not come yet, its stream says that
 * it waits, and whoever runs the steps goes on when the portion is there. So a query holds two portions of each selector, and never
 * all of what it selects.
 */
import type { LabelMatcher } from '../../../promql/label-matcher.ts'
import { LabelSet } from '../../../promql/label-set.ts'
import type { RollupSource, SeriesSource, SourceRollups, SourceSeries, Stream } from '../../../promql/series-source.ts'
import { type RememberedSelection, ROLLUP_MS } from '../../kit/history.ts'
import type { ReadableSeries } from './asked-history.ts'
import { heldSamples, READ_BACK_MS } from './held-samples.ts'

/** Samples are wanted, and windows only where they have gone. */
export const SAMPLES_MS = 1
/** Times beyond these are beyond all that is stored. */
const LAST_MS = 8.64e15

/** What is there at once of a selection; undefined if it has to be asked for. */
export type CurrentReadable = (selection: RememberedSelection) => Stream<ReadableSeries> | undefined

export type SelectReadable = (selection: RememberedSelection) => AsyncGenerator<readonly ReadableSeries[], void, void>

type Portions = ReturnType<SelectReadable>

/** What a stream has asked for. */
interface Asked {
  /** Undefined until it has come. */
  outcome: { readonly next: Awaited<ReturnType<Portions['next']>> } | { readonly error: unknown } | undefined
  readonly come: Promise<void>
}

export class HistorySource implements SeriesSource {
  readonly #select: SelectReadable
  readonly #holdsRare: boolean
  readonly #labelsOf: (series: ReadableSeries) => SourceSeries['labels']
  /** Where all that is asked for can be said of windows. */
  readonly rollups: RollupSource = {
    stepMs: ROLLUP_MS,
    select: (matchers, fromMs, toMs, stepMs) =>
      this.#rollups({ matchers: plainMatchers(matchers), fromMs, toMs, stepMs }),
  }
  readonly #current: CurrentReadable
  #waitsFor: Asked | undefined

  /** `holdsRare`: whether a series that sends rarely has a value until its next sample. */
  constructor(
    select: SelectReadable,
    holdsRare = true,
    labelsOf: (series: ReadableSeries) => SourceSeries['labels'] = pairsOf,
    current: CurrentReadable = () => undefined,
  ) {
    this.#current = current
    this.#select = select
    this.#labelsOf = labelsOf
    this.#holdsRare = holdsRare
  }

  /** Settles when there is something to go on with; undefined if there is now. Never rejects. */
  get waiting(): Promise<void> | undefined {
    const asked = this.#waitsFor
    return asked === undefined || asked.outcome !== undefined ? undefined : asked.come
  }

  *select(
    matchers: readonly LabelMatcher[],
    fromMs: number,
    toMs: number,
    isLookingBack = false,
  ): Stream<SourceSeries> {
    const isHeld = isLookingBack && this.#holdsRare
    const range = { fromMs: isHeld ? fromMs - READ_BACK_MS : fromMs, toMs }
    // Whether the one before is held is seen by the one before that.
    const twoBeforeMs = isHeld ? fromMs : undefined
    for (const series of this.remembered({
      matchers: plainMatchers(matchers),
      ...range,
      stepMs: SAMPLES_MS,
      twoBeforeMs,
    })) {
      if (series === undefined) {
        yield undefined
        continue
      }
      const all = withLastOfWindows(series, range)
      const samples = isHeld ? heldSamples(all, fromMs) : all
      if (samples.times.length > 0) yield { labels: this.#labelsOf(series), ...samples }
    }
  }

  *#rollups(selection: RememberedSelection): Stream<SourceRollups> {
    for (const series of this.remembered(selection)) {
      if (series === undefined) yield undefined
      else if (series.windows !== undefined) yield { labels: this.#labelsOf(series), ...series.windows }
    }
  }

  /** The series as they are stored. */
  *remembered({ fromMs, toMs, ...selection }: RememberedSelection): Stream<ReadableSeries> {
    const range = { fromMs: Math.max(0, fromMs), toMs: Math.min(LAST_MS, toMs) }
    if (range.toMs < range.fromMs) return
    const asked = { ...selection, ...range }
    const current = this.#current(asked)
    if (current !== undefined) {
      yield* current
      return
    }
    const portions = this.#select(asked)
    try {
      for (let next = ask(portions); ; ) {
        while (next.outcome === undefined) {
          this.#waitsFor = next
          yield undefined
        }
        const { outcome } = next
        if ('error' in outcome) throw outcome.error
        if (outcome.next.done === true) return
        // It is fetched while this one is worked on.
        next = ask(portions)
        yield* outcome.next.value
      }
    } finally {
      portions.return().catch(() => {})
    }
  }
}

export function plainMatchers(matchers: readonly LabelMatcher[]): RememberedSelection['matchers'] {
  return matchers.map(({ label, operator, text, alternatives }) => {
    const isList = alternatives !== undefined && (operator === '=~' || operator === '!~')
    return { label, operator, text, ...(isList && { texts: [...alternatives] }) }
  })
}

/** Labels of series that are asked for again and again: each is one object as long as it is. */
export class RecurringLabels {
  readonly #labels = new WeakMap<ReadableSeries['series'], LabelSet>()

  of(series: ReadableSeries): LabelSet {
    const known = this.#labels.get(series.series)
    if (known !== undefined) return known
    const labels = LabelSet.of(pairsOf(series))
    this.#labels.set(series.series, labels)
    return labels
  }
}

export function pairsOf({ series: { name, labels } }: ReadableSeries): (readonly [name: string, text: string])[] {
  return [['__name__', name], ...labels]
}

/** The samples of a range, and of the windows that are left of others the last ones. */
function withLastOfWindows(
  { times, values, windows }: ReadableSeries,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Pick<SourceSeries, 'times' | 'values' | 'thinnedMs'> {
  if (windows === undefined) return { times, values }
  const endMs = Math.min(toMs, (times[0] ?? Number.POSITIVE_INFINITY) - 1)
  const { lastTimes, last } = windows
  const from = lastTimes.findIndex((ms) => ms >= fromMs)
  const after = lastTimes.findIndex((ms) => ms > endMs)
  const to = after < 0 ? lastTimes.length : after
  if (from < 0 || from >= to) return { times, values }
  const all = { times: new Float64Array(to - from + times.length), values: new Float64Array(to - from + times.length) }
  all.times.set(lastTimes.subarray(from, to))
  all.times.set(times, to - from)
  all.values.set(last.subarray(from, to))
  all.values.set(values, to - from)
  return { ...all, thinnedMs: lastTimes[to - 1] }
}

function ask(portions: Portions): Asked {
  const asked: Asked = {
    outcome: undefined,
    come: portions.next().then(
      (next) => {
        asked.outcome = { next }
      },
      (error: unknown) => {
        asked.outcome = { error }
      },
    ),
  }
  return asked
}
