/** Lines of the text format 0.0.4 that are right or wrong, for our reader and for that of Prometheus. */

/** The values that Go's ParseFloat takes, and that Prometheus leaves of them. */
export const VALUES: readonly (readonly [text: string, value: number])[] = [
  ['1', 1],
  ['+1.5', 1.5],
  ['-.5', -0.5],
  ['5.', 5],
  ['1e3', 1000],
  ['1E-3', 0.001],
  ['NaN', Number.NaN],
  ['nan', Number.NaN],
  ['Inf', Number.POSITIVE_INFINITY],
  ['+Inf', Number.POSITIVE_INFINITY],
  ['-Inf', Number.NEGATIVE_INFINITY],
  ['-infinity', Number.NEGATIVE_INFINITY],
  ['0.1', 0.1],
  ['1.7976931348623157e308', Number.MAX_VALUE],
]

export const NO_VALUES: readonly string[] = ['0x1p-2', '0x10', '1_000', '1e999', '-NaN', 'one', '1,5', '0b1', '""', '#']

/** What is wrong with each line, in our words. */
export const WRONG: readonly (readonly [line: string, what: string])[] = [
  ['a{b="c" 1', 'the labels have no end'],
  ['a', 'a value is missing'],
  ['a{b="c"}', 'a value is missing'],
  ['a 1 2 3', '"3" after the timestamp'],
  ['a 1 2.5', '"2.5" is no timestamp'],
  ['a 1 # {} 1', 'after the timestamp'],
  ['ok 1\n\nbad x', 'line 3: "x" is no value'],
  ['1a 1', '"1a" is no name of a metric'],
  ['a-b 1', '"a-b" is no name of a metric'],
  ['{b="c"} 1', '"" is no name of a metric'],
  ['a{b-c="d"} 1', '"b-c" is no name of a label'],
  ['a{="d"} 1', '"" is no name of a label'],
  ['a{b=c} 1', 'label "b" has no text in quotes'],
  ['a{b} 1', 'label "b" has no ='],
  ['a{b="1"c="2"} 1', 'a comma is missing before "c=\\"2\\"}"'],
  ['a{b="1",b="2"} 1', 'label "b" stands twice'],
  ['a{b="1",b="1"} 1', 'label "b" stands twice'],
  ['a{__name__="b"} 1', 'label "__name__" stands twice'],
  ['a{b:c="1"} 1', '"b:c" is no name of a label'],
  ['a{:b="1"} 1', '":b" is no name of a label'],
  ['a{b="c"}: 1', '":" is no value'],
  ['a 1:', '"1:" is no value'],
  ['a:1', 'a value is missing'],
  ['a 1 :5', '":5" is no timestamp'],
  ['# TYPE a nonsense', '"nonsense" is no type of a metric'],
  ['# TYPE a gauge x', '"gauge x" is no type of a metric'],
  ['# TYPE 1a gauge', '"1a" is no name of a metric'],
  ['# HELP a-b x', '"a-b" is no name of a metric'],
]
