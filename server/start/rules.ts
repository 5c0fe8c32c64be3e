/** Rule files and the files of their unit tests, read for the command line: neither needs a server that runs. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { type RuleFileProblem, type RuleGroupDefinition, readRuleFile } from '../wings/alerts/rules/rule-file.ts'
import { runRuleTest } from '../wings/alerts/unit-tests/run.ts'
import { readRuleTestFile } from '../wings/alerts/unit-tests/test-file.ts'

/** A file is parsed in one step. */
const MAX_FILE_BYTES = 4 << 20

/** What was found in a file; `problems` are whole lines, with the file and the line in it. */
export interface RulesReport {
  readonly groups: number
  readonly rules: number
  readonly tests: number
  readonly problems: readonly string[]
}

/** Reads rule files as a server would. */
export async function checkRules(path: string): Promise<RulesReport> {
  const { groups, problems } = await groupsOf(path)
  return { groups: groups.length, rules: rulesIn(groups), tests: 0, problems }
}

/** Runs the unit tests of a file in promtool's format. */
export async function testRules(path: string): Promise<RulesReport> {
  const text = await textOf(path)
  if ('problem' in text) return { groups: 0, rules: 0, tests: 0, problems: [text.problem] }
  const file = await readRuleTestFile(text.text)
  if ('problems' in file) return { groups: 0, rules: 0, tests: 0, problems: located(path, file.problems) }
  const groups: RuleGroupDefinition[] = []
  const problems: string[] = []
  for (const pattern of file.ruleFiles) {
    const paths = await pathsOf(resolve(dirname(path), pattern))
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
  return { groups: groups.length, rules: rulesIn(groups), tests: file.tests.length, problems }
}

async function groupsOf(
  path: string,
): Promise<{ readonly groups: readonly RuleGroupDefinition[]; readonly problems: readonly string[] }> {
  const text = await textOf(path)
  if ('problem' in text) return { groups: [], problems: [text.problem] }
  const file = await readRuleFile(text.text)
  return 'groups' in file
    ? { groups: file.groups, problems: [] }
    : { groups: [], problems: located(path, file.problems) }
}

async function textOf(path: string): Promise<{ readonly text: string } | { readonly problem: string }> {
  try {
    const { size } = await stat(path)
    if (size > MAX_FILE_BYTES) return { problem: `${path}: it has ${size} bytes, at most ${MAX_FILE_BYTES} are read` }
    return { text: await readFile(path, 'utf8') }
  } catch (error) {
    return { problem: `${path}: cannot be read: ${(error as Error).message}` }
  }
}

/** The files that a pattern stands for, whose last part may have stars and question marks. */
async function pathsOf(pattern: string): Promise<readonly string[]> {
  const last = basename(pattern)
  if (!/[*?]/.test(last)) return [pattern]
  const parts = last
    .replace(/[^*?\w]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('?', '[^/]')
  const expression = new RegExp(`^${parts}$`)
  const names = await readdir(dirname(pattern)).catch(() => [])
  return names
    .filter((name) => expression.test(name))
    .sort()
    .map((name) => resolve(dirname(pattern), name))
}

function located(path: string, problems: readonly RuleFileProblem[]): string[] {
  return problems.map(({ message, line }) => `${path}${line === undefined ? '' : `:${line}`}: ${message}`)
}

function rulesIn(groups: readonly RuleGroupDefinition[]): number {
  return groups.reduce((count, { rules }) => count + rules.length, 0)
}
