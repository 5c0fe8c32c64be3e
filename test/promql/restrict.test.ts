/** Every selector of an expression gets the matcher, wherever it stands; the text is that of the changed expression. */
import { expect, it } from 'vitest'
import { LabelMatcher } from '../../promql/label-matcher.ts'
import { printExpression } from '../../promql/print.ts'
import { PreparedQuery } from '../../promql/query.ts'
import { restrictExpression } from '../../promql/restrict.ts'

const restricted = (text: string) =>
  printExpression(restrictExpression(new PreparedQuery(text).expression, new LabelMatcher('t', '=', 'a"}')))

const T = 't="a\\"}"'

it.each<[text: string, expected: string]>([
  ['up', `up{${T}}`],
  ['{job="x"}', `{${T},job="x"}`],
  ['{"a b"}', `{${T},"a b"}`],
  ['{"up", job="x"}', `up{${T},job="x"}`],
  ['{__name__="up",__name__=~"u.*"}', `{${T},"up",__name__=~"u.*"}`],
  ['up{t="b"}', `up{${T},t="b"}`],
  ['rate(up{job="x"}[5m] offset 1m)', `rate(up{${T},job="x"}[5m] offset 1m)`],
  ['max_over_time(rate(up[5m])[1h:1m] @ end())', `max_over_time(rate(up{${T}}[5m])[1h:1m] @ end())`],
  ['sum by (job) (a) / on (job) group_left () b', `sum by (job) (a{${T}}) / on (job) group_left () b{${T}}`],
  ['topk(scalar(n), a)', `topk(scalar(n{${T}}), a{${T}})`],
  ['count_values("v", -a)', `count_values("v", -a{${T}})`],
  ['(a or (b unless c)) > bool 1', `(a{${T}} or (b{${T}} unless c{${T}})) > bool 1`],
  ['label_replace(a, "x", "$1", "y", "up{}")', `label_replace(a{${T}}, "x", "$1", "y", "up{}")`],
  ['time() + 1', 'time() + 1'],
])('%s', (text, expected) => {
  const printed = restricted(text)
  expect(printed).toBe(expected)
  expect(new PreparedQuery(printed).printed).toBe(expected)
})
