/** What the expression of an alert came to around the time since when it holds, with the number that it is compared with. */
import { useEffect, useMemo } from 'preact/hooks'
import type { Consumer, ExpressionResult } from '../../client/browser.ts'
import type { ActiveAlert, RuleLine } from '../alerts.ts'
import { useEvaluation } from '../expressions.ts'
import type { ServerClock } from '../series-watch.ts'
import { ChartPage } from './chart-page.ts'
import { ExpressionChart, followedRange } from './expression-chart.tsx'
import { Loading } from './state.tsx'

const HEIGHT = 160
/** How much is shown: what was before the alert, and all of it as far as that is not too long. */
const LEAST_SECONDS = 900
const MOST_SECONDS = 7 * 86_400
const THRESHOLD = 'threshold'

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
  const shown = useMemo(() => result && shownOf(result, alert, threshold?.value), [result, key, threshold?.value])
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

/** The series of the alert alone, if it can be told, and the threshold as another one. */
function shownOf(result: ExpressionResult, { labels }: ActiveAlert, threshold: number | undefined): ExpressionResult {
  const own = new Map(labels)
  const isOwn = ({ labels: given }: ExpressionResult['series'][number]): boolean =>
    Object.entries(given).every(([name, text]) => (own.get(name) ?? text) === text)
  const found = result.series.filter(isOwn)
  const series = found.length > 0 ? found : result.series
  const [longest] = series.toSorted((one, other) => other.times.length - one.times.length)
  if (threshold === undefined || longest === undefined) return { ...result, series }
  const line = { ...longest, name: THRESHOLD, labels: {}, values: longest.times.map(() => threshold) }
  return { ...result, series: [...series, line] }
}
