/** `cinnabar notify`: who is told of alerts, as users put it while the server runs; and a test of that. */
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import type { NotifierFiles } from '../../server/start/notifiers.ts'
import { confirm, counted, YES_OPTION, type YesOption } from '../confirm.ts'
import { callControl, checkOutcome, runAndReport, runControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { printable } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, type JsonOptions } from '../output.ts'
import { printPutList } from '../put-list.ts'
import { type AnswerRecord, fieldText, toRecords } from '../records.ts'
import { type Cli, checkConfidential, withConsumer, withLoginOptions } from '../session.ts'

const HEADS = ['name', 'url', 'author', 'put', 'problem']

interface ApplyOptions extends LoginOptions, YesOption {
  readonly prune?: boolean
  readonly dryRun?: boolean
}

export function addNotify(program: Command, cli: Cli): void {
  const { terminal } = cli
  const notify = program.command('notify').description('say who is told of alerts, and try that out')
  withLoginOptions(notify.command('apply'))
    .description(
      'show what tables [[notify]] would change of the notifiers that users have put, and put them into force',
    )
    .argument('<file...>', 'files in TOML, with tables as in the configuration')
    .option('--prune', 'remove the notifiers that are not among these')
    .option('--dry-run', 'show what would change, and change nothing')
    .option(...YES_OPTION)
    .action(async (paths: readonly string[], options: ApplyOptions) => {
      const { readNotifierFiles } = await import('#server/notifiers')
      const files = await readNotifierFiles(paths)
      if ('problems' in files) throw new Failure(ExitCode.FAILED, files.problems.map(printable).join('\n'))
      await withConsumer(cli, options, async (consumer) => {
        checkConfidential(consumer, 'what the notifiers say')
        const changes = await changesOf(consumer, files)
        const changed = changes.filter((record) => fieldText(record, 'change') !== 'same')
        const removed = options.prune ? await othersOf(consumer, files) : []
        for (const record of changed) await terminal.print(textOf(record))
        for (const name of removed) await terminal.print(`${printable(name)}: removed`)
        if (changed.length + removed.length === 0) terminal.note('nothing changes')
        if (options.dryRun) return
        const names = removed.map((name) => `notifier ${name}, with the log of what it told`)
        if (removed.length > 0)
          await confirm(terminal, options, names, `Remove ${counted(removed.length, 'notifier')}?`)
        const put = files.only(changed.map((record) => fieldText(record, 'name')))
        if (changed.length > 0) await runAndReport(terminal, consumer, 'notify.put', { ...put })
        for (const name of removed) await runAndReport(terminal, consumer, 'notify.remove', { name })
      })
    })
  withLoginOptions(notify.command('list'))
    .description('list the notifiers that users of your tenant have put')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) =>
      printPutList(cli, options, { control: 'notify.list', none: 'nobody has put a notifier', heads: HEADS }),
    )
  withLoginOptions(notify.command('remove'))
    .description('remove a notifier that was put, with the log of what it told')
    .argument('<name>', 'name as listed by `cinnabar notify list`')
    .option(...YES_OPTION)
    .action(async (name: string, options: LoginOptions & YesOption) => {
      await confirm(terminal, options, [`notifier ${name}, with the log of what it told`], 'Remove it?')
      await callControl(cli, options, 'notify.remove', { name })
    })
  withLoginOptions(notify.command('test'))
    .description('send a marked test through a notifier, and print the answer of the receiver')
    .argument('<name>', 'name of the notifier, in the configuration or as listed by `cinnabar notify list`')
    .action((name: string, options: LoginOptions) =>
      withConsumer(cli, options, (consumer) => runAndReport(terminal, consumer, 'notify.test', { name })),
    )
}

async function changesOf(consumer: Consumer, files: NotifierFiles): Promise<readonly AnswerRecord[]> {
  const tried = await runControl(consumer, 'notify.put', { ...files.only(files.names), dry_run: true })
  checkOutcome('notify.put', tried)
  return toRecords(tried.value)?.records ?? []
}

/** The names of those that were put and are not in the files. */
async function othersOf(consumer: Consumer, { names }: NotifierFiles): Promise<readonly string[]> {
  const listed = await runControl(consumer, 'notify.list', {})
  checkOutcome('notify.list', listed)
  const there = (toRecords(listed.value)?.records ?? []).map((record) => fieldText(record, 'name'))
  return there.filter((name) => !names.includes(name))
}

function textOf(record: AnswerRecord): string {
  const [name, change, keys] = ['name', 'change', 'keys'].map((head) => printable(fieldText(record, head)))
  if (change === 'changed' && keys === '') return `${name}: put again`
  return keys === '' ? `${name}: ${change}` : `${name}: ${change}: ${keys?.replaceAll(' ', ', ')}`
}
