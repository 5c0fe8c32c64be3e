/** What the expression of an alert came to around the time since when it holds, with the number that it is compared with. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Consumer, ExpressionResult } from '../../client/browser.ts'
import type { ActiveAlert, RuleLine } from '../alerts.ts'
import { useEvaluation } from '../expressions.ts'
import type { ServerClock } from '../series-watch.ts'
import { ChartPage, type TimeRange } from './chart-page.ts'
import { ExpressionChart, followedRange } from './expression-chart.tsx'
import { Loading } from './state.tsx'

const HEIGHT = 160
/** How much is shown: what was before the alert, and all of it as far as that is not too long. */
const LEAST_SECONDS = 900
const MOST_SECONDS = 7 * 86_400
/** More than are drawn as points. */
const THRESHOLD_POINTS = 60

interface AlertChartProps {
  readonly consumer: Consumer
  readonly clock: ServerClock
  readonly alert: ActiveAlert
  readonly rule: RuleLine
}

export function AlertChart({ consumer, clock, alert, rule }: AlertChartProps) {
  const { key, since } = alert
  const page = useMemo(() => {
    const lasts = clock.nowMs / 1000 - since
    const seconds = Math.round(Math.min(MOST_SECONDS, Math.max(LEAST_SECONDS, lasts * 2)))
    const own = new ChartPage({ seconds, at: undefined }, clock)
    own.isRemembered.value = true
    return own
  }, [key, since, clock])
  useEffect(() => page.begin(), [page])
  const { threshold } = rule
  const expr = threshold?.expr ?? rule.expr
  const { result, problem, losses, isBusy } = useEvaluation(consumer, expr, followedRange(page), 0)
  const { from } = page.shown.value
  const shown = useMemo(
    () => result && shownOf(result, alert, threshold?.value, { from, to: clock.nowMs / 1000 }),
    [result, key, threshold?.value, from],
  )
  if (problem !== undefined)
    return (
      <p class="empty problem" role="alert">
        <bdi>{problem.reason}</bdi>
      </p>
    )
  if (shown === undefined) return isBusy ? <Loading what="the chart" /> : null
  if (shown.series.length === 0) return <p class="empty">The expression has had no value in this time.</p>
  return <ExpressionChart page={page} result={shown} losses={losses} expr={expr} height={HEIGHT} />
}

/** The series of the alert alone, if it can be told, and the threshold as another one, over the whole time. */
function shownOf(
  result: ExpressionResult,
  { labels }: ActiveAlert,
  threshold: number | undefined,
  { from, to }: TimeRange,
): ExpressionResult {
  const own = new Map(labels)
  const isOwn = ({ labels: given }: ExpressionResult['series'][number]): boolean =>
    Object.entries(given).every(([name, text]) => (own.get(name) ?? text) === text)
  const found = result.series.filter(isOwn)
  const series = found.length > 0 ? found : result.series
  if (threshold === undefined || series.length === 0) return { ...result, series }
  const times = Array.from(
    { length: THRESHOLD_POINTS },
    (_, at) => (from + ((to - from) * at) / (THRESHOLD_POINTS - 1)) * 1e6,
  )
  const values = times.map(() => threshold)
  return { ...result, series: [...series, { name: 'threshold', labels: {}, times, values }] }
}
