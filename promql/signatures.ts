/** The functions of the language: what each takes and gives, and those that are known and refused. */
import type { UnsupportedFeature } from './errors.ts'
import type { ExpressionType } from './expression.ts'

export interface Signature {
  readonly args: readonly ExpressionType[]
  /** How many more arguments of the last type there may be; the last one is optional then. -1: any number. */
  readonly variadic: number
  readonly returns: ExpressionType
  /** What it belongs to, if this server has it not. */
  readonly feature?: UnsupportedFeature
}

const takes = (args: readonly ExpressionType[], returns: ExpressionType = 'vector', variadic = 0): Signature => ({
  args,
  returns,
  variadic,
})

const named = (names: string, signature: Signature): [string, Signature][] =>
  names.split(' ').map((name) => [name, signature])

const experimental = (names: string, signature: Signature): [string, Signature][] =>
  named(names, { ...signature, feature: 'promql-experimental-functions' })

const MATH =
  'abs acos acosh asin asinh atan atanh ceil cos cosh deg exp floor ln log10 log2 rad sgn sin sinh sqrt tan tanh'
const OVER_TIME =
  'absent_over_time avg_over_time changes count_over_time delta deriv first_over_time idelta increase irate last_over_time ' +
  'max_over_time min_over_time present_over_time rate resets stddev_over_time stdvar_over_time sum_over_time'

export const SIGNATURES: ReadonlyMap<string, Signature> = new Map([
  ...named(MATH, takes(['vector'])),
  ...named('absent sort sort_desc timestamp', takes(['vector'])),
  ...named(OVER_TIME, takes(['matrix'])),
  ...named('predict_linear', takes(['matrix', 'scalar'])),
  ...named('quantile_over_time', takes(['scalar', 'matrix'])),
  ...named('clamp', takes(['vector', 'scalar', 'scalar'])),
  ...named('clamp_max clamp_min', takes(['vector', 'scalar'])),
  ...named('round', takes(['vector', 'scalar'], 'vector', 1)),
  ...named('days_in_month day_of_month day_of_week day_of_year hour minute month year', takes(['vector'], 'vector', 1)),
  ...named('histogram_fraction', takes(['scalar', 'scalar', 'vector'])),
  ...named('histogram_quantile', takes(['scalar', 'vector'])),
  ...named('label_replace', takes(['vector', 'string', 'string', 'string', 'string'])),
  ...named('label_join', takes(['vector', 'string', 'string', 'string'], 'vector', -1)),
  ...named('scalar', takes(['vector'], 'scalar')),
  ...named('vector', takes(['scalar'])),
  ...named('pi time', takes([], 'scalar')),
  ...named('histogram_avg histogram_count histogram_stddev histogram_stdvar histogram_sum', {
    ...takes(['vector']),
    feature: 'native histograms',
  }),
  ...experimental('mad_over_time', takes(['matrix'])),
  ...experimental(
    'ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time',
    takes(['matrix']),
  ),
  ...experimental('double_exponential_smoothing', takes(['matrix', 'scalar', 'scalar'])),
  ...experimental('histogram_quantiles', takes(['vector', 'string', 'scalar', 'scalar'], 'vector', 9)),
  ...experimental('info', takes(['vector', 'vector'], 'vector', 1)),
  ...experimental('sort_by_label sort_by_label_desc', takes(['vector', 'string'], 'vector', -1)),
  ...experimental('start_timestamp', takes(['vector'])),
  ...experimental('max_of min_of', takes(['scalar', 'scalar'], 'scalar')),
  ...experimental('start end range step', takes([], 'scalar')),
])
