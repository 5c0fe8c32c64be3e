/** `cinnabar rules`: rule files of Prometheus. They are checked and tested without a server. */
import type { Command } from 'commander'
import type { RulesReport } from '../../server/start/rules.ts'
import { ExitCode, Failure } from '../failure.ts'
import { printable } from '../format.ts'
import type { Cli } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { addRulesList } from './alerts.ts'
import { addRulesApply } from './rules-apply.ts'
import { addRulesBacktest } from './rules-backtest.ts'

export function addRules(program: Command, cli: Cli): void {
  const { terminal } = cli
  const rules = program
    .command('rules')
    .description('check, test and backtest rule files, put them into force, and list what a server evaluates')
  rules
    .command('check')
    .description('check rule files: their form, expressions and templates')
    .argument('<file...>', 'rule files in YAML')
    .action(async (files: readonly string[]) => {
      const { checkRules } = await import('#server/rules')
      await report(files, checkRules, checked, terminal)
    })
  rules
    .command('test')
    .description('run unit tests of rules, in the format of `promtool test rules`')
    .argument('<file...>', 'files with tests in YAML, which name their rule files')
    .action(async (files: readonly string[]) => {
      const { testRules } = await import('#server/rules')
      await report(files, testRules, ({ tests }) => `${counted(tests, 'test')} passed`, terminal)
    })
  addRulesBacktest(rules, cli)
  addRulesList(rules, cli)
  addRulesApply(rules, cli)
}

/** Throws Failure if a file has problems; the others are shown all the same. */
async function report(
  files: readonly string[],
  read: (path: string) => Promise<RulesReport>,
  summary: (report: RulesReport) => string,
  terminal: Terminal,
): Promise<void> {
  const problems: string[] = []
  for (const file of files) {
    const found = await read(file)
    problems.push(...found.problems)
    if (found.problems.length === 0) await terminal.print(`${printable(file)}: ${summary(found)}`)
  }
  if (problems.length > 0) throw new Failure(ExitCode.FAILED, problems.join('\n').split('\n').map(printable).join('\n'))
}

function checked({ groups, rules, ownRules }: RulesReport): string {
  const counts = `${counted(groups, 'group')}, ${counted(rules, 'rule')}`
  return ownRules === 0
    ? counts
    : `${counts}; Prometheus refuses this file: \`recover\` and \`no_data\` are of Cinnabar`
}

function counted(count: number, word: string): string {
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
