/**
 * Rule files as Prometheus has them: groups of alerting and recording rules. A file is taken as a whole or not at all; each problem
 * says where it is, with the group and the rule.
 */
import { isLabelName, METRIC_NAME_LABEL } from '../../../../promql/label-set.ts'
import { boundedDurationMs } from '../../../../promql/parse/numbers.ts'
import { PreparedQuery } from '../../../../promql/query.ts'
import { TextTemplate } from '../../../../promql/template/template.ts'
import { nameProblem } from '../../../../protocol/monitor/value.ts'
import { readYaml, type YamlTable } from '../../../kit/yaml-table.ts'

interface RuleParts {
  readonly query: PreparedQuery
  readonly labels: ReadonlyMap<string, TextTemplate>
  /** The line that it begins on. */
  readonly line: number | undefined
}

export interface AlertingDefinition extends RuleParts {
  readonly kind: 'alert'
  /** The text of `alertname`. */
  readonly name: string
  /** How long the expression has to hold before the alert fires. */
  readonly forMs: number
  /** How long the alert goes on firing after the expression has ceased to hold. */
  readonly keepFiringForMs: number
  readonly annotations: ReadonlyMap<string, TextTemplate>
  /** What has to hold before an alert that fires ends, as a comparison with `bool`; undefined: it ends when `expr` does not hold. */
  readonly recover: PreparedQuery | undefined
  /** What happens where `expr` has no data. */
  readonly noData: NoData
  /** How long an alert without data goes on. */
  readonly noDataForMs: number
  /** `expr` as a comparison with `bool`, where `recover` or `no_data` ask for it: what it has is what there are data of. */
  readonly unfiltered: PreparedQuery | undefined
  /** It has keys that Prometheus does not know. */
  readonly hasOwnKeys: boolean
}

const NO_DATA = ['resolve', 'hold', 'alert'] as const
export type NoData = (typeof NO_DATA)[number]

export interface RecordingDefinition extends Omit<RuleParts, 'labels'> {
  readonly kind: 'record'
  /** The metric that it records. */
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
}

export type RuleDefinition = AlertingDefinition | RecordingDefinition

export interface RuleGroupDefinition {
  readonly name: string
  /** Undefined: what is configured for all. */
  readonly intervalMs: number | undefined
  /** How far before the time of an evaluation its expressions look. */
  readonly offsetMs: number
  /** The most alerts or samples that a rule may have; 0: any number. */
  readonly limit: number
  readonly rules: readonly RuleDefinition[]
}

export interface RuleFileProblem {
  readonly message: string
  readonly line: number | undefined
}

export type RuleFileResult =
  | { readonly groups: readonly RuleGroupDefinition[] }
  | { readonly problems: readonly RuleFileProblem[] }

const GROUP_KEYS = ['name', 'interval', 'query_offset', 'limit', 'labels', 'rules', 'no_data', 'no_data_for']
const ALERT_KEYS = ['for', 'keep_firing_for', 'annotations']
/** Those that Prometheus does not know. */
const OWN_KEYS = ['recover', 'no_data', 'no_data_for']
const RULE_KEYS = ['record', 'alert', 'expr', 'labels', ...ALERT_KEYS, ...OWN_KEYS]
const NO_DATA_FOR_MS = 3_600_000
const NO_DATA_NEEDED = '`no_data_for` needs `no_data: hold` or `no_data: alert`'
/** What stands besides in files of others. */
const ADVICE = {
  partial_response_strategy: 'it is of Thanos',
  source_tenants: 'it is of Mimir',
}
/** Of an alert, each name that a rule gives is free but these. */
const RESERVED = [METRIC_NAME_LABEL]
export const ALERT_NAME = 'alertname'
/** The label of the alert that there is while `expr` has no data at all. */
export const NO_DATA_LABEL = 'no_data'

/** A file without a mistake, as a table that `ruleGroups` takes in another thread. */
export type CheckedRuleFile = { readonly plain: YamlTable['plain'] } | { readonly problems: readonly RuleFileProblem[] }

/** Reads the text of a file. */
export async function readRuleFile(text: string): Promise<RuleFileResult> {
  const file = await tableOf(text)
  return 'problems' in file ? file : { groups: file.groups }
}

/** Reads the text of a file for another thread. */
export async function checkRuleFile(text: string): Promise<CheckedRuleFile> {
  const file = await tableOf(text)
  return 'problems' in file ? file : { plain: file.table.plain }
}

type ReadTable = { readonly table: YamlTable; readonly groups: readonly RuleGroupDefinition[] }

async function tableOf(text: string): Promise<ReadTable | { readonly problems: readonly RuleFileProblem[] }> {
  const problems: RuleFileProblem[] = []
  const table = await readYaml(text, (message, line) => void problems.push({ message, line }))
  if (table === undefined) return { problems }
  const reading = ruleGroups(table)
  for (;;) {
    const { done, value } = reading.next()
    if (done === true) return problems.length > 0 ? { problems } : { table, groups: value }
  }
}

/** The groups of a file, group by group, rule by rule, and template by template. */
export function* ruleGroups(file: YamlTable): Generator<undefined, readonly RuleGroupDefinition[], void> {
  file.allow(['groups'])
  const names = new Set<string>()
  const groups: RuleGroupDefinition[] = []
  for (const table of file.tables('groups')) {
    const group = yield* groupOf(table)
    if (names.has(group.name)) table.say(`two groups are called ${JSON.stringify(group.name)}`)
    names.add(group.name)
    groups.push(group)
    yield undefined
  }
  return groups
}

function* groupOf(table: YamlTable): Generator<undefined, RuleGroupDefinition, void> {
  const name = table.text('name')
  const say = (message: string, at: string[] = []): void => table.say(`group ${JSON.stringify(name)}: ${message}`, at)
  table.allow(GROUP_KEYS)
  if (name === '') table.say('a group needs a `name`')
  const shared = table.table('labels')
  for (const label of shared.keys) labelProblem(label, (message) => say(message, ['labels', label]))
  // Prometheus takes 0 for its default, too.
  const intervalMs = durationOf(table, 'interval') || undefined
  const missing: Missing = {
    noData: table.oneOf('no_data', NO_DATA, 'resolve'),
    noDataForMs: durationOf(table, 'no_data_for'),
  }
  if (missing.noData === 'resolve' && missing.noDataForMs !== undefined) say(NO_DATA_NEEDED, ['no_data_for'])
  const rules: RuleDefinition[] = []
  for (const rule of table.tables('rules')) {
    rules.push(...(yield* ruleOf(rule, name, shared, missing)))
    yield undefined
  }
  return {
    name,
    intervalMs,
    offsetMs: durationOf(table, 'query_offset') ?? 0,
    limit: table.read('limit', countOf, 'a number from 0') ?? 0,
    rules,
  }
}

function* ruleOf(
  table: YamlTable,
  group: string,
  shared: YamlTable,
  missing: Missing,
): Generator<undefined, RuleDefinition[], void> {
  const [record, alert] = [table.text('record'), table.text('alert')]
  const name = alert || record
  const where = `group ${JSON.stringify(group)}, rule ${name === '' ? 'without a name' : JSON.stringify(name)}`
  const say = (message: string, at: string[] = []): void => table.say(`${where}: ${message}`, at)
  for (const key of table.keys) {
    if (RULE_KEYS.includes(key)) continue
    const instead = Object.hasOwn(ADVICE, key) ? `: ${ADVICE[key as keyof typeof ADVICE]}` : ''
    say(`\`${key}\` is not supported${instead}`, [key])
  }
  if (name === '') say('it needs `alert` or `record`')
  if (alert !== '' && record !== '') say('it has both `alert` and `record`', ['record'])
  const query = prepared(table, 'expr', say)
  const line = table.line
  if (alert === '') {
    for (const key of [...ALERT_KEYS, ...OWN_KEYS]) if (table.keys.includes(key)) say(`\`${key}\` is for alerts`, [key])
    if (record !== '' && !isLabelName(record)) say(`${JSON.stringify(record)} is no name of a metric`, ['record'])
    const labels = textsOf([shared, table.table('labels')], (label, message) => say(message, ['labels', label]))
    if (query === undefined) return []
    return [{ kind: 'record', name, query, labels, line }]
  }
  const template = function* (
    key: string,
    of: YamlTable,
  ): Generator<undefined, ReadonlyMap<string, TextTemplate>, void> {
    const templates = new Map<string, TextTemplate>()
    for (const label of of.keys) {
      if (key === 'labels') labelProblem(label, (message) => say(message, [key, label]))
      else if (!isLabelName(label) || nameProblem(label) !== undefined)
        say(`${JSON.stringify(label)} is no name of an annotation`, [key, label])
      try {
        templates.set(label, new TextTemplate(of.text(label)))
      } catch (error) {
        say(`template of ${JSON.stringify(label)}: ${(error as Error).message}`, [key, label])
      }
      yield undefined
    }
    return templates
  }
  const labels = new Map([
    ...(yield* template('labels', shared)),
    ...(yield* template('labels', table.table('labels'))),
  ])
  const annotations = yield* template('annotations', table.table('annotations'))
  const forMs = durationOf(table, 'for') ?? 0
  const keepFiringForMs = durationOf(table, 'keep_firing_for') ?? 0
  if (query === undefined) return []
  const ending = endingOf(table, query, labels, { say, missing })
  return [{ kind: 'alert', name, query, labels, annotations, forMs, keepFiringForMs, line, ...ending }]
}

/** What a group says for its alerting rules that say nothing else. */
interface Missing {
  readonly noData: NoData
  readonly noDataForMs: number | undefined
}

type Say = (message: string, at?: string[]) => void
type Ending = Pick<AlertingDefinition, 'recover' | 'noData' | 'noDataForMs' | 'unfiltered' | 'hasOwnKeys'>

/** When alerts end whose expression does not hold, or has no data. */
function endingOf(
  table: YamlTable,
  query: PreparedQuery,
  labels: ReadonlyMap<string, unknown>,
  { say, missing }: { readonly say: Say; readonly missing: Missing },
): Ending {
  const noData = table.oneOf('no_data', NO_DATA, missing.noData)
  const noDataForMs = durationOf(table, 'no_data_for')
  const hasOwnKeys = table.keys.some((key) => OWN_KEYS.includes(key)) || noData !== 'resolve'
  const recovering = table.keys.includes('recover') ? prepared(table, 'recover', say) : undefined
  const recover = recovering?.unfiltered()
  if (recovering !== undefined && recover === undefined)
    say(
      '`recover` has to be a comparison that filters, such as `x < 5`: otherwise nobody can tell that it has no data',
      ['recover'],
    )
  const unfiltered = hasOwnKeys ? query.unfiltered() : undefined
  if (noData !== 'resolve' && unfiltered === undefined)
    say(
      '`no_data` needs an `expr` that is a comparison, such as `x < 5`: otherwise nobody can tell that it has no data',
      ['no_data'],
    )
  if (noData === 'resolve' && noDataForMs !== undefined) say(NO_DATA_NEEDED, ['no_data_for'])
  if (noData === 'alert' && labels.has(NO_DATA_LABEL))
    say(`with \`no_data: alert\` a rule may not set the label ${NO_DATA_LABEL}`, ['labels', NO_DATA_LABEL])
  return { recover, noData, noDataForMs: noDataForMs ?? missing.noDataForMs ?? NO_DATA_FOR_MS, unfiltered, hasOwnKeys }
}

function prepared(table: YamlTable, key: 'expr' | 'recover', say: Say): PreparedQuery | undefined {
  const text = table.text(key)
  if (text.trim() === '') {
    say(key === 'expr' ? 'it needs an `expr`' : '`recover` is empty', key === 'expr' ? [] : [key])
    return undefined
  }
  try {
    return new PreparedQuery(text)
  } catch (error) {
    say(`could not parse expression: ${(error as Error).message}`, [key])
    return undefined
  }
}

function textsOf(tables: readonly YamlTable[], say: (label: string, message: string) => void): Map<string, string> {
  const texts = new Map<string, string>()
  for (const table of tables)
    for (const label of table.keys) {
      labelProblem(label, (message) => say(label, message))
      texts.set(label, table.text(label))
    }
  return texts
}

function labelProblem(label: string, say: (message: string) => void): void {
  if (!isLabelName(label)) say(`${JSON.stringify(label)} is no name of a label`)
  else if (RESERVED.includes(label)) say(`a rule may not set the label ${label}`)
}

function durationOf(table: YamlTable, key: string): number | undefined {
  return table.read(key, boundedDurationMs, 'a duration such as 5m')
}

function countOf(text: string): number | undefined {
  const count = Number(text)
  return /^\d+$/.test(text) && Number.isSafeInteger(count) ? count : undefined
}
