/** `rules.*`: what rules record, and the series ALERTS and ALERTS_FOR_STATE, as values like any other. */
import { METRIC_NAME_LABEL } from '../../../../promql/label-set.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import type { HeldValues } from '../../../kit/held-values.ts'
import type { LabelledSensor } from '../../../kit/labelled-sensor.ts'
import { fromForeign } from '../../../kit/metrics.ts'
import type { RuleSample } from '../rules/group.ts'

export const RULES_FAMILY = 'rules.'
const MICROSECONDS = 1_000

/** Gives out a sample of an evaluation, which nobody is sent before it is stored: it follows again from what is. Returns why it was not taken; undefined if it was. */
export function publishSample(
  sensor: LabelledSensor,
  held: Pick<HeldValues, 'holdSeries'>,
  { labels, value }: RuleSample,
  timeMs: number,
): string | undefined {
  const own = [...labels].flatMap(([name, text]): [string, string][] =>
    name === METRIC_NAME_LABEL ? [] : [[fromForeign(name), text]],
  )
  const series = sensor.of(RULES_FAMILY + labels.metricName, own)
  if ('refused' in series) return `a result cannot be published: ${series.detail}`
  held.holdSeries(series)
  if (value === 'stale') sensor.take(series, VOID, timeMs * MICROSECONDS)
  else sensor.take(series, { type: BasicType.DOUBLE, value }, timeMs * MICROSECONDS)
  return undefined
}
