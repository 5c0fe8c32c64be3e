/** What an expression comes to over the time of the page, as a chart. */
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { Consumer, ExpressionResult } from '../../client/browser.ts'
import { type AskedTime, chartedSeries, seriesText, useEvaluation } from '../expressions.ts'
import { namingOf } from '../labels.ts'
import type { PastLoss } from '../losses.ts'
import { formatCount } from '../units.ts'
import { Chart, type Drawn, MAX_SHOWN } from './chart.tsx'
import type { ChartPage } from './chart-page.ts'
import { Name } from './name.tsx'
import { Loading } from './state.tsx'

/** Nothing comes by itself: another result comes in place of this one. */
const SILENT: Drawn['watch'] = { onValues: () => () => {}, gaps: [] }

interface ExpressionChartProps {
  readonly page: ChartPage
  readonly result: ExpressionResult
  readonly losses: readonly PastLoss[]
  readonly expr: string
  readonly height?: number | undefined
}

export function ExpressionChart({ page, result, losses, expr, height }: ExpressionChartProps) {
  const drawn = useMemo(
    () =>
      largestOf(result).map((series): Drawn => {
        const charted = chartedSeries(series)
        const { name: metric, labels } = series
        return { watch: SILENT, args: {}, series: charted, past: undefined, metric, labels, unit: '', isRate: false }
      }),
    [result],
  )
  const { names, common } = useMemo(() => namingOf(drawn), [drawn])
  const count = result.series.length
  if (count === 0) return null
  return (
    <>
      {common === '' ? null : (
        <p class="shared">
          <span class="note code">
            <Name text={common} max={96} />
          </span>
        </p>
      )}
      <Chart
        page={page}
        drawn={drawn}
        losses={losses}
        names={names.map((name) => name || expr)}
        label={expr}
        height={height}
      />
      {count > drawn.length ? (
        <p class="note padded">
          The {drawn.length} largest of {formatCount(count)} series are drawn.
        </p>
      ) : null}
    </>
  )
}

interface ExpressionCardProps extends Omit<ExpressionChartProps, 'result' | 'losses'> {
  readonly consumer: Consumer
  /** Stands above the chart. */
  readonly head: ComponentChildren
}

/** A chart of a board or of a host: it is asked for again while what comes now is shown. */
export function ExpressionCard({ consumer, page, expr, head, height }: ExpressionCardProps) {
  const { result, problem, losses, isBusy } = useEvaluation(consumer, expr, followedRange(page), 0)
  return (
    <section class="card chart-card" aria-label={expr}>
      {head}
      {problem === undefined ? null : (
        <p class="empty problem" role="alert">
          <bdi>{problem.reason}</bdi>
        </p>
      )}
      {result === undefined ? null : (
        <ExpressionChart page={page} result={result} losses={losses} expr={expr} height={height} />
      )}
      {isBusy && result === undefined ? <Loading what="the chart" /> : null}
      {result?.series.length === 0 ? <p class="empty">No series has a value at this time.</p> : null}
    </section>
  )
}

/** The range of the page, and what comes now if that is in it and the page does not stand still. */
export function followedRange(page: ChartPage): AskedTime {
  const { isLive } = page
  return { ...page.shown.value, isLive, isFollowed: isLive && !page.isPaused.value }
}

/** Those whose last value is the largest, in the order of the result. */
function largestOf({ series }: ExpressionResult): ExpressionResult['series'] {
  if (series.length <= MAX_SHOWN) return series
  const last = ({ values }: ExpressionResult['series'][number]): number => values.at(-1) ?? Number.NEGATIVE_INFINITY
  const sorted = series.toSorted((a, b) => last(b) - last(a) || (seriesText(a) < seriesText(b) ? -1 : 1))
  const largest = new Set(sorted.slice(0, MAX_SHOWN))
  return series.filter((one) => largest.has(one))
}
