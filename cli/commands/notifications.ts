/** `cinnabar alerts log`, `silences`, `silence`, `ack` and `unsilence`: who was told of alerts, and of which nobody is told. */
import type { Command } from 'commander'
import type { Arguments } from '../../client/index.ts'
import { wholeSeconds } from '../arguments.ts'
import { callControl } from '../control.ts'
import { formatTime } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { formatTable, JSON_OPTION, type JsonOptions, type Listing, printList } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldText, toRecords } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { type Colors, withProgress } from '../terminal.ts'

interface SilenceOptions extends LoginOptions {
  /** In seconds. */
  readonly for?: number
  readonly comment?: string
}

interface LogOptions extends JsonOptions {
  readonly notifier?: string
  readonly alert?: string
}

const LOG_HEADS = ['time', 'notifier', 'group', 'firing', 'resolved', 'outcome', 'attempts', 'answer']
const SILENCE_HEADS = ['id', 'kind', 'matchers', 'begins', 'ends', 'author', 'comment']
const TIMES: readonly string[] = ['time', 'begins', 'ends']
export const MATCHER_HELP =
  'which alerts: matchers such as \'severity="page"\' or \'host=~"web.*"\'; all of them have to match'

/** Subcommands of `cinnabar alerts`. */
export function addNotifications(alerts: Command, cli: Cli): void {
  const listing = (heads: readonly string[], none: string): Listing => ({
    none,
    toText: (records, width) => table(heads, records, cli.terminal.colors, width),
  })
  withLoginOptions(alerts.command('log'))
    .description('list who was told of alerts, when, and with what answer')
    .option('--notifier <name>', 'only what this notifier has told')
    .option(
      '--alert <fingerprint>',
      'only what was told of this alert, by its `fingerprint` in `cinnabar alerts --json`',
    )
    .option(...JSON_OPTION)
    .action(({ notifier, alert, ...options }: LogOptions) => {
      const args = { ...(notifier !== undefined && { notifier }), ...(alert !== undefined && { alert }) }
      return printMetric(
        cli,
        options,
        'producer.notifications',
        args,
        listing(LOG_HEADS, 'nobody was told of an alert'),
      )
    })
  withLoginOptions(alerts.command('silences'))
    .description('list the alerts of which nobody is told for a while')
    .option('--ended', 'those that have ended within the last five days instead')
    .option(...JSON_OPTION)
    .action(({ ended = false, ...options }: JsonOptions & { readonly ended?: boolean }) => {
      const none = ended ? 'nothing has ended within the last five days' : 'nothing is silenced or acknowledged'
      return printMetric(cli, options, 'producer.silences', ended ? { ended } : {}, listing(SILENCE_HEADS, none))
    })
  addSilencing(alerts, cli, 'silence', 'tell nobody of alerts for a while', '2h')
  addSilencing(alerts, cli, 'ack', 'take care of alerts that fire: nobody is told of them again', '7d')
  withLoginOptions(alerts.command('unsilence'))
    .description('end a silence or an acknowledgement')
    .argument('<id>', 'id as listed by `cinnabar alerts silences`')
    .action((id: string, options: LoginOptions) => callControl(cli, options, 'alert.unsilence', { id }))
}

function addSilencing(alerts: Command, cli: Cli, name: 'silence' | 'ack', description: string, usual: string): void {
  const control = name === 'ack' ? 'alert.acknowledge' : 'alert.silence'
  withLoginOptions(alerts.command(name))
    .description(description)
    .argument('<matcher...>', MATCHER_HELP)
    .option('--for <duration>', `for how long (default: ${usual})`, wholeSeconds)
    .option('--comment <text>', 'why, for the others')
    .action((matchers: readonly string[], options: SilenceOptions) => {
      const { for: duration = wholeSeconds(usual), comment } = options
      const args = { matchers: matchers.join('\n'), seconds: BigInt(duration), ...(comment ? { comment } : {}) }
      return callControl(cli, options, control, args)
    })
}

function printMetric(cli: Cli, options: JsonOptions, metric: string, args: Arguments, listing: Listing): Promise<void> {
  const { terminal } = cli
  return withConsumer(cli, options, async (consumer) => {
    const { value } = await withProgress(terminal, `reading ${metric}`, consumer.query(metric, args))
    const { records, isCut } = toRecords(value) ?? { records: [], isCut: false }
    await printList(terminal, records, options.json, listing)
    if (isCut) terminal.note('there are more, for which the answer had no room')
  })
}

function table(heads: readonly string[], records: readonly AnswerRecord[], colors: Colors, width?: number): string {
  const rows = records.map((record) =>
    heads.map((head) => (TIMES.includes(head) ? formatTime(fieldNumber(record, head)) : fieldText(record, head))),
  )
  const columns = heads.map((head) => ({ head }))
  return formatTable(columns, rows, colors, width)
}
