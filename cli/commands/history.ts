/** `cinnabar history`: what the server remembers, and how much of it. */
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { parseAssignments } from '../arguments.ts'
import { confirm, YES_OPTION, type YesOption } from '../confirm.ts'
import { runAndReport } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatBytes, formatCount, printable } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { type Column, formatTable, JSON_OPTION, type JsonOptions, printList } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldText, toRecords } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { type Colors, withProgress } from '../terminal.ts'
import { addHistoryExport, LABELS_HELP } from './history-export.ts'
import { addHistoryImport } from './history-import.ts'
import { addHistoryReplay } from './history-replay.ts'

const METRIC = 'producer.history'
const SENSORS = 'producer.sensors'
/** What belongs to no tenant, such as `host.*`. */
const OF_NO_TENANT = '(none)'
const NOTHING =
  'nothing is remembered: set `keep` of [history] in the configuration of the server, or log in as somebody who may see it'

const COLUMNS: readonly Column[] = [
  { head: 'tenant' },
  { head: 'samples', align: 'right' },
  { head: 'series', align: 'right' },
  { head: 'bytes', align: 'right' },
  { head: 'since' },
  { head: 'waiting', align: 'right' },
  { head: 'refused', align: 'right' },
  { head: 'lost', align: 'right' },
]

export function addHistory(program: Command, cli: Cli): void {
  const { terminal } = cli
  const history = withLoginOptions(program.command('history'))
    .description('show what the server remembers by tenant: samples, series, bytes, and since when')
    .option(...JSON_OPTION)
    .enablePositionalOptions()
    .helpCommand(false)
    .action((options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const { value } = await withProgress(terminal, 'asking for the history', consumer.query(METRIC))
        const { records = [], isCut } = toRecords(value) ?? {}
        const problem = records.length === 0 ? await problemOf(consumer) : ''
        if (problem !== '') throw new Failure(ExitCode.FAILED, `the history cannot be read: ${problem}`)
        const toText = (all: readonly AnswerRecord[], width?: number) => table(all, terminal.colors, width)
        await printList(terminal, records, options.json, { none: NOTHING, toText })
        if (isCut) throw new Failure(ExitCode.FAILED, 'the answer is incomplete because it is too long')
      }),
    )
  addHistoryExport(history, cli)
  addHistoryImport(history, cli)
  addHistoryReplay(history, cli)
  addHistoryDrop(history, cli)
}

/** What is wrong with the history; empty if nothing is, or it is not shown to this user. */
async function problemOf(consumer: Consumer): Promise<string> {
  const { records = [] } = toRecords((await consumer.query(SENSORS)).value) ?? {}
  const entry = records.find((record) => fieldText(record, 'name').startsWith('history/'))
  return entry === undefined ? '' : fieldText(entry, 'detail')
}

function table(records: readonly AnswerRecord[], colors: Colors, width?: number): string {
  const rows = records.map((record) => {
    const count = (name: string) => formatCount(fieldNumber(record, name))
    const bad = (name: string) => (fieldNumber(record, name) > 0 ? colors.red(count(name)) : '0')
    const oldest = fieldNumber(record, 'oldest')
    return [
      printable(fieldText(record, 'tenant')) || OF_NO_TENANT,
      count('stored'),
      count('series'),
      formatBytes(fieldNumber(record, 'bytes')),
      // Days are those of UTC.
      oldest === 0 ? '-' : new Date(oldest / 1_000).toISOString().slice(0, 10),
      count('waiting'),
      bad('refused'),
      bad('lost'),
    ]
  })
  return formatTable(COLUMNS, rows, colors, width)
}

interface DropOptions extends LoginOptions, YesOption {
  readonly tenant?: string
}

function addHistoryDrop(history: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(history.command('drop'))
    .description('drop what is remembered of a metric up to now, or of a tenant; needs the role admin or a rule')
    .argument('[metric]', 'a metric, here or in Prometheus, or several with *; without it everything of --tenant goes')
    .argument('[name=value...]', LABELS_HELP)
    .option('--tenant <tenant>', "whose history; without it one's own, and for an admin also what belongs to no tenant")
    .option(...YES_OPTION)
    .action(async (metric: string | undefined, words: string[], options: DropOptions) => {
      const { tenant } = options
      if (metric === undefined && tenant === undefined) {
        throw new Failure(ExitCode.USAGE, 'name a metric, or with --tenant the tenant whose history goes')
      }
      const labels = [...parseAssignments(words)].map(([name, text]) => `${name}=${text}`)
      const what = [metric === undefined ? 'everything' : [metric, ...labels].join(' ')]
      if (tenant !== undefined) what.push(`of the tenant ${tenant}`)
      await confirm(terminal, options, [`what is remembered of ${what.join(' ')}`], 'Drop this?')
      await withConsumer(cli, options, (consumer) =>
        runAndReport(terminal, consumer, 'history.drop', {
          ...(metric !== undefined && { metric }),
          ...(labels.length > 0 && { labels: labels.join('\n') }),
          ...(tenant !== undefined && { tenant }),
        }),
      )
    })
}
