/** `cinnabar approvals`, `approve` and `refuse`: what waits until somebody approves it, and what becomes of that. */
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { callControl } from '../control.ts'
import { formatTime } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { formatFacts, JSON_OPTION, type JsonOptions, type Listing, printList } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldsOf, fieldText, findField, queryAll } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { type Colors, withProgress } from '../terminal.ts'

const ID_HELP = 'id as listed by `cinnabar approvals`'

export function addApprovals(program: Command, cli: Cli): void {
  const { terminal } = cli
  const listing: Listing = {
    none: 'nothing waits for your approval',
    toText: (records, width) => records.map((record) => toText(record, terminal.colors, width)).join('\n\n'),
  }
  withLoginOptions(program.command('approvals'))
    .description('list the calls of controls that wait for your approval, and your own that wait')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const waiting = await withProgress(terminal, 'reading what waits', waitingCalls(consumer))
        await printList(terminal, waiting, options.json, listing)
      }),
    )
  withLoginOptions(program.command('approve'))
    .description('let a call run that waits for your approval; its result is for whoever has asked')
    .argument('<id>', ID_HELP)
    .action((id: string, options: LoginOptions) => callControl(cli, options, 'control.approve', { id }))
  withLoginOptions(program.command('refuse'))
    .description('refuse a call that waits for your approval, or take back one of your own: it does not run')
    .argument('<id>', ID_HELP)
    .requiredOption('--reason <text>', 'why, for whoever has asked')
    .action((id: string, { reason, ...options }: LoginOptions & { readonly reason: string }) =>
      callControl(cli, options, 'control.refuse', { id, reason }),
    )
}

/** Calls that wait for the approval of whoever is logged in, and their own that wait. */
export function waitingCalls(consumer: Pick<Consumer, 'query'>): Promise<readonly AnswerRecord[]> {
  const next = (last: AnswerRecord) => ({ after: findField(last, 'asked')?.value as bigint })
  return queryAll(consumer, 'producer.approvals', {}, next)
}

/** What somebody needs to know to decide, a line for each. */
function toText(record: AnswerRecord, colors: Colors, width?: number): string {
  const dryRun = fieldsOf(findField(record, 'dry_run'))
  const output = fieldsOf(findField(dryRun, 'value'))
  const isOwn = findField(record, 'own')?.value === true
  const facts: (readonly [string, string])[] = [
    ['id', fieldText(record, 'id')],
    ['control', fieldText(record, 'control')],
    ...fieldsOf(findField(record, 'args')).map((field) => [`  ${field.name}`, fieldText([field], field.name)] as const),
    ['asked by', `${fieldText(record, 'asker')}${isOwn ? ' (you)' : ''} from ${fieldText(record, 'address')}`],
    ['asked at', formatTime(fieldNumber(record, 'asked'))],
    ['waits until', formatTime(fieldNumber(record, 'until'))],
    ['for a', fieldText(record, 'role')],
    ['by', fieldText(record, 'rule')],
    ['dry run', dryRun.length === 0 ? 'is running' : dryRunText(dryRun)],
    ...output.map((field) => [`  ${field.name}`, fieldText([field], field.name)] as const),
  ]
  return formatFacts(facts, colors, width)
}

function dryRunText(dryRun: AnswerRecord): string {
  const [outcome, detail] = [fieldText(dryRun, 'outcome'), fieldText(dryRun, 'detail')]
  return detail === '' ? outcome : `${outcome}: ${detail}`
}
