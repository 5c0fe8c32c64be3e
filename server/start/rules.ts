/** Rule files and the files of their unit tests, read for the command line: neither needs a server that runs. */
import { dirname, resolve } from 'node:path'
import { PreparedQuery } from '../../promql/query.ts'
import { type ReadServer, ReadSource } from '../wings/alerts/backtest/read-source.ts'
import { type BacktestEvent, type BacktestTimes, backtest } from '../wings/alerts/backtest/run.ts'
import { fileText, pathsOf, readRules } from '../wings/alerts/rules/files.ts'
import { type RuleFileProblem, type RuleGroupDefinition, readRuleFile } from '../wings/alerts/rules/rule-file.ts'
import { runRuleTest } from '../wings/alerts/unit-tests/run.ts'
import { readRuleTestFile } from '../wings/alerts/unit-tests/test-file.ts'

export type { BacktestEvent } from '../wings/alerts/backtest/run.ts'

/** After so long without a pause, signals and timers of the process get one. */
const TURN_MS = 50
/** Of remote read, when it is decompressed. */
const MAX_ANSWER_BYTES = 512 << 20

/** What was found in a file; `problems` are whole lines, with the file and the line in it. */
export interface RulesReport {
  readonly groups: number
  readonly rules: number
  /** Rules with keys that Prometheus does not know. */
  readonly ownRules: number
  readonly tests: number
  readonly problems: readonly string[]
}

/** Reads rule files as a server would. */
export async function checkRules(path: string): Promise<RulesReport> {
  const { groups, problems } = await groupsOf(path)
  return { ...countsOf(groups), tests: 0, problems }
}

/** Runs the unit tests of a file in promtool's format. */
export async function testRules(path: string): Promise<RulesReport> {
  const text = await fileText(path)
  if ('problem' in text) return { ...countsOf([]), tests: 0, problems: [`${path}: ${text.problem}`] }
  const file = await readRuleTestFile(text.text)
  if ('problems' in file) return { ...countsOf([]), tests: 0, problems: located(path, file.problems) }
  const groups: RuleGroupDefinition[] = []
  const problems: string[] = []
  for (const pattern of file.ruleFiles) {
    const paths = await pathsOf(resolve(dirname(path), pattern)).catch(() => [])
    if (paths.length === 0) problems.push(`${path}: no file is called ${pattern}`)
    for (const one of paths) {
      const found = await groupsOf(one)
      groups.push(...found.groups)
      problems.push(...found.problems)
    }
  }
  // Rules that cannot be read would make every test wrong.
  if (problems.length === 0)
    for (const [index, test] of file.tests.entries()) {
      const name = test.name === '' ? `test ${index + 1}` : `test ${JSON.stringify(test.name)}`
      const found = runRuleTest(test, file, groups).map((message) => ({
        message: `${name}: ${message}`,
        line: test.line,
      }))
      problems.push(...located(path, found))
    }
  return { ...countsOf(groups), tests: file.tests.length, problems }
}

/** What becomes of a rule, or of the settings of a group where `rule` is empty. */
export interface RuleChange {
  readonly change: 'added' | 'changed' | 'removed'
  readonly group: string
  readonly rule: string
}

/** What differs between two texts of a file without mistakes; an empty text has no rules. */
export async function ruleChanges(before: string, after: string): Promise<readonly RuleChange[]> {
  const left = await partsOf(before)
  const changes: RuleChange[] = []
  for (const [place, part] of await partsOf(after)) {
    const known = left.get(place)
    left.delete(place)
    const { group, rule, text } = part
    if (known?.text !== text) changes.push({ change: known === undefined ? 'added' : 'changed', group, rule })
  }
  return [...changes, ...[...left.values()].map(({ group, rule }): RuleChange => ({ change: 'removed', group, rule }))]
}

interface FilePart {
  readonly group: string
  readonly rule: string
  readonly text: string
}

/** The rules and groups of a file by their places, with all that they say. */
async function partsOf(text: string): Promise<Map<string, FilePart>> {
  const file = text === '' ? { groups: [] } : await readRuleFile(text)
  const parts = new Map<string, FilePart>()
  for (const { name: group, rules, ...settings } of 'groups' in file ? file.groups : []) {
    parts.set(JSON.stringify([group]), { group, rule: '', text: JSON.stringify(settings) })
    for (const { kind, name, line: _, ...said } of rules) {
      let count = 0
      const placeOf = () => JSON.stringify([group, kind, name, count])
      while (parts.has(placeOf())) count++
      parts.set(placeOf(), { group, rule: name, text: JSON.stringify(said, plainPart) })
    }
  }
  return parts
}

function plainPart(_key: string, value: unknown): unknown {
  if (value instanceof Map) return [...value]
  return value instanceof PreparedQuery ? value.printed : value
}

export interface BacktestOptions extends BacktestTimes {
  /** Sends the body of a request of remote read, and resolves to that of the answer. Rejects with an error for people. */
  readonly post: (body: Uint8Array) => Promise<Uint8Array>
  /** Is called with the number of samples of each answer. */
  readonly took: (samples: number) => void
  /** Is called with each time that is evaluated. */
  readonly reached: (timeMs: number) => void
  readonly signal: AbortSignal
}

/**
 * What the rules of files would have come to. Gives what is wrong with the files, and does nothing then. Rejects with an error for
 * people if the server cannot be read, or there is too much to do.
 */
export async function* backtestRules(
  paths: readonly string[],
  { post, took, reached, signal, ...times }: BacktestOptions,
): AsyncGenerator<BacktestEvent, readonly string[], void> {
  const files = await Promise.all(paths.map(async (path) => ({ path, ...(await groupsOf(path)) })))
  const problems = files.flatMap((file) => file.problems)
  if (problems.length > 0) return problems
  const groups = files.flatMap(({ path, groups }) => groups.map((definition) => ({ definition, path })))
  const { decodeReadResponse, encodeReadRequest } = await import('../../protocol/prometheus/remote-reader.ts')
  const read: ReadServer = async (wanted) => {
    const series = decodeReadResponse(await post(encodeReadRequest(wanted)), { bytes: MAX_ANSWER_BYTES })
    took(series.reduce((sum, { times }) => sum + times.length, 0))
    return series
  }
  const source = new ReadSource(read, times.toMs)
  let turnEndsMs = performance.now() + TURN_MS
  for (const event of backtest(groups, source, times, reached)) {
    if (source.failure !== undefined) throw source.failure
    if (event !== undefined) yield event
    if (source.waiting !== undefined) await source.waiting
    else if (performance.now() > turnEndsMs) await new Promise(setImmediate)
    else continue
    signal.throwIfAborted()
    turnEndsMs = performance.now() + TURN_MS
  }
  return []
}

async function groupsOf(
  path: string,
): Promise<{ readonly groups: readonly RuleGroupDefinition[]; readonly problems: readonly string[] }> {
  const { groups, problems } = await readRules(path)
  return { groups, problems: located(path, problems) }
}

function located(path: string, problems: readonly RuleFileProblem[]): string[] {
  return problems.map(({ message, line }) => `${path}${line === undefined ? '' : `:${line}`}: ${message}`)
}

function countsOf(groups: readonly RuleGroupDefinition[]): Pick<RulesReport, 'groups' | 'rules' | 'ownRules'> {
  const rules = groups.flatMap((group) => group.rules)
  const ownRules = rules.filter((rule) => rule.kind === 'alert' && rule.hasOwnKeys).length
  return { groups: groups.length, rules: rules.length, ownRules }
}
