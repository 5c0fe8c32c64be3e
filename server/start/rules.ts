/** Rule files and the files of their unit tests, read for the command line: neither needs a server that runs. */
import { dirname, resolve } from 'node:path'
import { fileText, pathsOf, readRules } from '../wings/alerts/rules/files.ts'
import type { RuleFileProblem, RuleGroupDefinition } from '../wings/alerts/rules/rule-file.ts'
import { runRuleTest } from '../wings/alerts/unit-tests/run.ts'
import { readRuleTestFile } from '../wings/alerts/unit-tests/test-file.ts'

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
