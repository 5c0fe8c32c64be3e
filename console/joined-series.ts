/** The series of a chart: those that values come of now, each with what the server remembers of it, and those that it remembers alone. */
import { isLabel, type PastSeries, rememberedLabel } from './line-history.ts'
import { Samples } from './samples.ts'
import type { LineArguments, WatchedSeries } from './series-watch.ts'

export interface JoinedSeries {
  readonly series: WatchedSeries
  readonly past: PastSeries | undefined
}

/** `args`: what the metric was asked for with. */
export function joinSeries(
  live: readonly WatchedSeries[],
  remembered: readonly PastSeries[],
  args: LineArguments,
): readonly JoinedSeries[] {
  const left = new Set(remembered)
  const both = live.map((series): JoinedSeries => {
    const labels = Object.entries({ ...fixedOf(args), ...series.labels })
    const isSame = ({ metric, labels: own }: PastSeries): boolean =>
      metric === series.metric && labels.every(([name, text]) => (own[rememberedLabel(name)] ?? '') === text)
    const past = [...left].find(isSame)
    if (past !== undefined) left.delete(past)
    return { series, past }
  })
  const fixed = new Set(Object.keys(fixedOf(args)).map(rememberedLabel))
  return [...both, ...[...left].map((past): JoinedSeries => ({ series: silentSeries(past, fixed), past }))]
}

/** The labels that the arguments fix. */
function fixedOf(args: LineArguments): LineArguments {
  return Object.fromEntries(Object.entries(args).filter(([name, text]) => isLabel(name) && !text.includes('*')))
}

/** A series of which nothing comes. */
function silentSeries({ metric, labels }: PastSeries, fixed: ReadonlySet<string>): WatchedSeries {
  return {
    metric,
    labels: Object.fromEntries(Object.entries(labels).filter(([name]) => !fixed.has(name))),
    samples: new Samples(),
    holes: [],
    cameMs: Number.NEGATIVE_INFINITY,
    askedAt: Number.NEGATIVE_INFINITY,
    cutAt: undefined,
  }
}
