/** `rules.*`: what rules record, and the series ALERTS and ALERTS_FOR_STATE, as values like any other. */
import { METRIC_NAME_LABEL } from '../../../../promql/label-set.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import type { LabelledSensor } from '../../../kit/labelled-sensor.ts'
import { fromForeign } from '../../../kit/metrics.ts'
import type { RuleSample } from '../rules/group.ts'

export const RULES_FAMILY = 'rules.'
const MICROSECONDS = 1_000

/** Gives out a sample of an evaluation. Returns why it was not taken; undefined if it was. */
export function publishSample(
  sensor: LabelledSensor,
  { labels, value }: RuleSample,
  timeMs: number,
): string | undefined {
  const own = [...labels].flatMap(([name, text]): [string, string][] =>
    name === METRIC_NAME_LABEL ? [] : [[fromForeign(name), text]],
  )
  const series = sensor.of(RULES_FAMILY + labels.metricName, own)
  if ('refused' in series) return `a result cannot be published: ${series.detail}`
  if (value === 'stale') sensor.take(series, VOID, timeMs * MICROSECONDS)
  else sensor.take(series, { type: BasicType.DOUBLE, value }, timeMs * MICROSECONDS)
  return undefined
}
