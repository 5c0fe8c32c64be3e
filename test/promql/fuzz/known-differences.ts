/**
 * What Prometheus 2.42 does otherwise than Prometheus 3, whose language this is. Expressions with it are passed over and counted. The
 * files of Prometheus' own cases in which its way of version 3 is held stand beside each reason, and each has a case in
 * known-differences.test.ts that shows it.
 */

/** What may make NaN or an infinity. */
const NOT_FINITE =
  /special|NaN|Inf|\/|%|\^|\b(ln|log2|log10|sqrt|exp|acos|acosh|asin|atanh|sinh|cosh|tan|histogram_quantile|quantile_over_time|round|deriv|predict_linear|scalar)\b/

/** What makes numbers so large that others are lost beside them. */
const LARGE = /large|\^|\b(exp|sinh|cosh)\(/
/** What rounds its last digit in its own way. */
const ROUNDED =
  /\^|\b(exp|ln|log2|log10|a?(sin|cos|tan)h?|atan2|deg|rad|sum|avg|stddev|stdvar|quantile|rate|increase|delta|deriv|predict_linear|histogram_quantile|\w+_over_time)\b/

/** The operand is no selector, whose series are in order. */
const TOP_OF_CALCULATED =
  /\b(topk|bottomk)( (by|without) \([^)]*\))? \(\d, (?!(\w+(\{[^}]*\})?|\{[^}]*\})( offset -?\w+| @ \w+\(\))*\))/

interface Known {
  readonly reason: string
  readonly isIn: (text: string) => boolean
}

const uses = (names: string) => {
  const of = new RegExp(`\\b(${names})\\b`)
  return (text: string) => of.test(text)
}

const KNOWN: readonly Known[] = [
  {
    reason: 'sums and means are compensated: 2.42 loses small numbers beside large ones (aggregators, functions)',
    isIn: (text) => uses('sum|avg|avg_over_time')(text) && LARGE.test(text),
  },
  {
    reason: 'the deviation of a lone NaN or infinity is 0 in 2.42 (aggregators, functions)',
    isIn: (text) => uses('stddev|stdvar|stddev_over_time|stdvar_over_time')(text) && NOT_FINITE.test(text),
  },
  { reason: 'atan2 keeps the name in 2.42 (trig_functions)', isIn: uses('atan2') },
  {
    reason: 'there is no date of NaN or an infinity: 2.42 takes some (functions)',
    isIn: (text) =>
      uses('day_of_month|day_of_week|day_of_year|days_in_month|hour|minute|month|year')(text) && NOT_FINITE.test(text),
  },
  {
    reason:
      '2.42 loses samples of predict_linear and quantile_over_time with an @ after the first steps of a range (at_modifier)',
    isIn: (text) => uses('predict_linear|quantile_over_time')(text) && text.includes('@'),
  },
  {
    // rangeEvalTimestampFunctionOverVectorSelector in promql/engine.go, before 2.43 inline: `vs.Offset = enh.Ts - *vs.Timestamp`.
    reason:
      'timestamp of a selector with an @ and an offset looks at the time of the @, among the samples up to the offset: 3 does so, too',
    isIn: (text) => uses('timestamp')(text) && /@ \S+ offset/.test(text),
  },
  {
    reason:
      'what counts from near zero is extrapolated to it before the distance to the start is judged in 2.42, and after that in 3 (functions)',
    isIn: (text) => /\b(rate|increase)\((?!(requests_total|latency_bucket)\b)/.test(text),
  },
  {
    reason: 'the sine of a power shows the rounding of that, which is another in Go',
    isIn: (text) => /\b(sin|cos|tan)\(/.test(text) && /\^|\b(exp|sinh|cosh)\(/.test(text),
  },
  {
    reason: 'the rest of a division shows the rounding of its operands, of which some is another in Go',
    isIn: (text) => text.includes('%') && ROUNDED.test(text),
  },
  {
    reason: 'or joins series whose name goes at the end with those that keep it (name_label_dropping)',
    isIn: uses('or'),
  },
  {
    reason:
      'of equal values topk and bottomk take the first, and 2.42 has what it calculates in any order (aggregators)',
    isIn: (text) => TOP_OF_CALCULATED.test(text),
  },
  { reason: 'the text of a value shows its last digit, which is one of rounding', isIn: uses('count_values') },
]

/** The reason; undefined if the results should be the same. */
export function knownDifference(text: string): string | undefined {
  return KNOWN.find(({ isIn }) => isIn(text))?.reason
}

export function knownReasons(): readonly string[] {
  return KNOWN.map(({ reason }) => reason)
}

/** The same of an error that 2.42 gives where there is a result here. */
export function knownError(error: string | undefined): string | undefined {
  if (error === undefined || !error.includes('same labelset')) return undefined
  return 'names go at the end, as with delayed removal: 2.42 finds two series alike before (name_label_dropping)'
}
