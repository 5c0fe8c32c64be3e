/** Files of unit tests of rules, in the format of `promtool test rules`. */
import { LabelSet } from '../../../../promql/label-set.ts'
import { boundedDurationMs, floatOf } from '../../../../promql/parse/numbers.ts'
import {
  HISTOGRAM,
  type NotedSeries,
  parseNotedLabels,
  parseNotedValues,
} from '../../../../promql/parse/series-notation.ts'
import { readYaml, type YamlTable } from '../../../kit/yaml-table.ts'
import { ALERT_NAME, type RuleFileProblem } from '../rules/rule-file.ts'

export interface ExpectedAlert {
  readonly labels: LabelSet
  readonly annotations: LabelSet
}

export interface AlertCase {
  readonly atMs: number
  readonly alertName: string
  readonly alerts: readonly ExpectedAlert[]
}

export interface ExpressionCase {
  readonly atMs: number
  readonly text: string
  readonly samples: readonly { readonly labels: LabelSet; readonly value: number }[]
}

export interface RuleTest {
  readonly name: string
  /** Between the values of its series. */
  readonly intervalMs: number
  readonly series: readonly NotedSeries[]
  readonly alerts: readonly AlertCase[]
  readonly expressions: readonly ExpressionCase[]
  readonly externalLabels: ReadonlyMap<string, string>
  readonly externalUrl: string
  readonly line: number | undefined
}

export interface RuleTestFile {
  /** Patterns of paths, relative to the file. */
  readonly ruleFiles: readonly string[]
  readonly evaluationMs: number
  /** Names of groups, in the order in which they are evaluated; all others come after them. */
  readonly order: readonly string[]
  readonly tests: readonly RuleTest[]
}

export type RuleTestFileResult = RuleTestFile | { readonly problems: readonly RuleFileProblem[] }

const DEFAULT_INTERVAL_MS = 60_000

export async function readRuleTestFile(text: string): Promise<RuleTestFileResult> {
  const problems: RuleFileProblem[] = []
  const file = await readYaml(text, (message, line) => void problems.push({ message, line }))
  if (file === undefined) return { problems }
  file.allow(['rule_files', 'evaluation_interval', 'group_eval_order', 'tests'])
  // promtool takes 0 for its default, too.
  const evaluationMs = durationOf(file, 'evaluation_interval') || DEFAULT_INTERVAL_MS
  const read: RuleTestFile = {
    ruleFiles: file.texts('rule_files'),
    evaluationMs,
    order: file.texts('group_eval_order'),
    tests: file.tables('tests').map((table) => testOf(table, evaluationMs)),
  }
  return problems.length > 0 ? { problems } : read
}

function testOf(table: YamlTable, evaluationMs: number): RuleTest {
  const external = ['external_labels', 'external_url']
  table.allow(['name', 'interval', 'input_series', 'alert_rule_test', 'promql_expr_test', ...external])
  return {
    name: table.text('name'),
    intervalMs: lengthOf(table, 'interval') ?? evaluationMs,
    series: table.tables('input_series').flatMap(seriesOf),
    alerts: table.tables('alert_rule_test').map(alertCaseOf),
    expressions: table.tables('promql_expr_test').map(expressionCaseOf),
    externalLabels: new Map(pairsOf(table.table('external_labels'))),
    externalUrl: table.text('external_url'),
    line: table.line,
  }
}

function seriesOf(table: YamlTable): NotedSeries[] {
  table.allow(['series', 'values'])
  const labels = readLabels(table, 'series')
  const values = orSay(table, 'values', () => parseNotedValues(table.text('values'))) ?? []
  if (values.includes(HISTOGRAM)) table.say('native histograms are not supported', ['values'])
  return labels === undefined ? [] : [{ labels, values }]
}

function alertCaseOf(table: YamlTable): AlertCase {
  table.allow(['eval_time', 'alertname', 'exp_alerts'])
  const alertName = table.text(ALERT_NAME)
  if (alertName === '') table.say('it needs an `alertname`')
  const alerts = table.tables('exp_alerts').map((alert) => {
    alert.allow(['exp_labels', 'exp_annotations'])
    const labels = [...pairsOf(alert.table('exp_labels')), [ALERT_NAME, alertName] as const]
    return { labels: LabelSet.of(labels), annotations: LabelSet.of(pairsOf(alert.table('exp_annotations'))) }
  })
  return { atMs: momentOf(table), alertName, alerts }
}

function expressionCaseOf(table: YamlTable): ExpressionCase {
  table.allow(['expr', 'eval_time', 'exp_samples'])
  const samples = table.tables('exp_samples').map((sample) => {
    sample.allow(['labels', 'value'], { histogram: 'native histograms are not supported' })
    const labels = readLabels(sample, 'labels') ?? LabelSet.of([])
    return { labels, value: sample.read('value', yamlNumber, 'a number') ?? 0 }
  })
  return { atMs: momentOf(table), text: table.text('expr'), samples }
}

function readLabels(table: YamlTable, key: string): LabelSet | undefined {
  const text = table.text(key)
  return orSay(table, key, () => parseNotedLabels(text === '' ? '{}' : text))
}

function orSay<Value>(table: YamlTable, key: string, read: () => Value): Value | undefined {
  try {
    return read()
  } catch (error) {
    table.say(`\`${key}\`: ${(error as Error).message}`, [key])
    return undefined
  }
}

function pairsOf(table: YamlTable): (readonly [string, string])[] {
  return table.keys.map((key) => [key, table.text(key)] as const)
}

/** A number as promtool's reader of YAML has it. */
function yamlNumber(given: string): number | undefined {
  const text = given.replaceAll('_', '').toLowerCase()
  const [, sign = '', special] = /^([+-]?)\.(inf|nan)$/.exec(text) ?? []
  if (special !== undefined) return floatOf(sign + special)
  const [, minus = '', whole] = /^([+-]?)(0x[0-9a-f]+|0o?[0-7]+|0b[01]+)$/.exec(text) ?? []
  if (whole === undefined) return floatOf(text)
  const size = Number(whole.replace(/^0(?=[0-7])/, '0o'))
  return minus === '-' ? -size : size
}

function momentOf(table: YamlTable): number {
  return table.read('eval_time', boundedDurationMs, 'a duration such as 5m') ?? 0
}

function lengthOf(table: YamlTable, key: string): number | undefined {
  const ms = durationOf(table, key)
  if (ms === 0) table.say(`\`${key}\` is 0`, [key])
  return ms
}

function durationOf(table: YamlTable, key: string): number | undefined {
  return table.read(key, boundedDurationMs, 'a duration such as 1m')
}
