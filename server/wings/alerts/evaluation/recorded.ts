/** `rules.*`: what rules record, and the series ALERTS and ALERTS_FOR_STATE, as values like any other. */
import { METRIC_NAME_LABEL } from '../../../../promql/label-set.ts'
import { BasicType } from '../../../../protocol/monitor/constants.ts'
import { VOID } from '../../../../protocol/monitor/value.ts'
import type { LabelledSensor } from '../../../kit/labelled-sensor.ts'
import { fromForeign } from '../../../kit/metrics.ts'
import type { RuleSample } from '../rules/group.ts'

export const RULES_FAMILY = 'rules.'
const MICROSECONDS = 1_000

/** Gives out the samples of an evaluation. Returns why the first of those was not taken that were not; undefined if all were. */
export function publishSamples(
  sensor: LabelledSensor,
  samples: readonly RuleSample[],
  timeMs: number,
): string | undefined {
  let problem: string | undefined
  for (const { labels, value } of samples) {
    const own = [...labels].flatMap(([name, text]): [string, string][] =>
      name === METRIC_NAME_LABEL ? [] : [[fromForeign(name), text]],
    )
    const series = sensor.of(RULES_FAMILY + labels.metricName, own)
    if ('refused' in series) problem ??= `a result cannot be published: ${series.detail}`
    else if (value === 'stale') sensor.take(series, VOID, timeMs * MICROSECONDS)
    else sensor.take(series, { type: BasicType.DOUBLE, value }, timeMs * MICROSECONDS)
  }
  return problem
}
