/** `cinnabar rules apply`, `files` and `remove`: rule files that a server evaluates for a tenant. */
import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import type { RuleChange } from '../../server/start/rules.ts'
import { confirm, counted, YES_OPTION, type YesOption } from '../confirm.ts'
import { callControl, checkOutcome, runAndReport, runControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { printable } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, type JsonOptions } from '../output.ts'
import { printPutList } from '../put-list.ts'
import { fieldText, toRecords } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'
import { safeText } from '../width.ts'

const SIGNS = { added: '+', changed: '~', removed: '-' } as const
const HEADS = ['name', 'author', 'put', 'groups', 'rules', 'problem']

interface ApplyOptions extends LoginOptions, YesOption {
  readonly prune?: boolean
  readonly dryRun?: boolean
}

interface LocalFile {
  readonly name: string
  readonly path: string
  readonly text: string
}

/** What is to be done with a file. */
interface Step {
  readonly name: string
  /** Undefined: it is removed. */
  readonly text: string | undefined
  readonly what: 'new' | 'changed' | 'put again' | 'removed'
  readonly changes: readonly RuleChange[]
}

/** Subcommands of `cinnabar rules`. */
export function addRulesApply(rules: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(rules.command('apply'))
    .description('show what rule files would change of those that users have put, and put them into force')
    .argument('<file...>', 'rule files in YAML, or directories, of which *.yml and *.yaml are taken')
    .option('--prune', 'remove the files that are not among these')
    .option('--dry-run', 'show what would change, and change nothing')
    .option(...YES_OPTION)
    .action(async (paths: readonly string[], options: ApplyOptions) => {
      const files = await localFiles(paths)
      await withConsumer(cli, options, async (consumer) => {
        const steps = await stepsOf(consumer, files, options.prune === true)
        for (const step of steps) await show(terminal, step)
        if (steps.length === 0) terminal.note('nothing changes')
        if (options.dryRun) return
        const removed = steps.filter(({ text }) => text === undefined)
        const names = removed.map(({ name }) => `rule file ${name}, whose alerts end`)
        if (removed.length > 0) await confirm(terminal, options, names, `Remove ${counted(removed.length, 'file')}?`)
        for (const { name, text } of steps) {
          if (text === undefined) await runAndReport(terminal, consumer, 'rules.remove', { name })
          else await runAndReport(terminal, consumer, 'rules.put', { name, rules: text })
        }
      })
    })
  withLoginOptions(rules.command('files'))
    .description('list the rule files that users of your tenant have put')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) =>
      printPutList(cli, options, { control: 'rules.files', none: 'nobody has put a rule file', heads: HEADS }),
    )
  withLoginOptions(rules.command('remove'))
    .description('remove a rule file that was put; the alerts of its rules end')
    .argument('<name>', 'name as listed by `cinnabar rules files`')
    .option(...YES_OPTION)
    .action(async (name: string, options: LoginOptions & YesOption) => {
      await confirm(terminal, options, [`rule file ${name}, whose alerts end`], 'Remove it?')
      await callControl(cli, options, 'rules.remove', { name })
    })
}

/** Rejects with Failure if one of them has a mistake. */
async function localFiles(paths: readonly string[]): Promise<readonly LocalFile[]> {
  const { checkRules } = await import('#server/rules')
  const files = new Map<string, LocalFile>()
  const problems: string[] = []
  for (const path of (await Promise.all(paths.map(filesAt))).flat()) {
    const name = basename(path)
    const other = files.get(name)
    if (other !== undefined)
      throw new Failure(
        ExitCode.USAGE,
        `${printable(path)} has the name of ${printable(other.path)}: files are put by name`,
      )
    problems.push(...(await checkRules(path)).problems)
    files.set(name, { name, path, text: await readFile(path, 'utf8').catch(() => '') })
  }
  if (problems.length > 0) throw new Failure(ExitCode.FAILED, problems.map(printable).join('\n'))
  return [...files.values()]
}

/** Rejects with Failure. */
async function filesAt(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = (await readdir(path)).filter((name) => /\.ya?ml$/.test(name))
    return names.sort().map((name) => join(path, name))
  } catch (error) {
    throw new Failure(ExitCode.FAILED, `${printable(path)}: cannot be read: ${(error as Error).message}`)
  }
}

async function stepsOf(consumer: Consumer, files: readonly LocalFile[], isPruned: boolean): Promise<readonly Step[]> {
  const { ruleChanges } = await import('#server/rules')
  const listed = await runControl(consumer, 'rules.files', {})
  checkOutcome('rules.files', listed)
  const there = new Map((toRecords(listed.value)?.records ?? []).map((record) => [fieldText(record, 'name'), record]))
  const steps: Step[] = []
  for (const { name, text } of files) {
    const record = there.get(name)
    there.delete(name)
    const isSame = record !== undefined && fieldText(record, 'digest') === digestOf(text)
    const isStopped = record !== undefined && fieldText(record, 'problem') !== ''
    if (isSame && !isStopped) continue
    const before = record === undefined || isSame ? '' : await textOf(consumer, name)
    const changes = isSame ? [] : await ruleChanges(before, text)
    steps.push({ name, text, what: record === undefined ? 'new' : isSame ? 'put again' : 'changed', changes })
  }
  for (const name of isPruned ? there.keys() : []) {
    const changes = await ruleChanges(await textOf(consumer, name), '')
    steps.push({ name, text: undefined, what: 'removed', changes })
  }
  return steps
}

async function textOf(consumer: Consumer, name: string): Promise<string> {
  const found = await runControl(consumer, 'rules.files', { name })
  checkOutcome('rules.files', found)
  return String(found.value.value)
}

async function show(terminal: Pick<Terminal, 'print'>, { name, what, changes }: Step): Promise<void> {
  await terminal.print(`${printable(name)}: ${what}`)
  for (const { change, group, rule } of changes)
    if (rule !== '') await terminal.print(`  ${SIGNS[change]} ${safeText(group)}  ${safeText(rule)}`)
    else if (change === 'changed') await terminal.print(`  ${SIGNS[change]} ${safeText(group)}: its settings`)
}

function digestOf(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}
