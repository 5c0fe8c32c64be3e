/** `cinnabar channels`: which queues there are and what waits in them. */
import type { Command } from 'commander'
import { BasicType } from '../../client/index.ts'
import type { LoginOptions } from '../login.ts'
import { jsonOf } from '../output/measured.ts'
import { type Column, formatTable } from '../output/table.ts'
import { formatTime } from '../output/text.ts'
import { fieldOf, numberOf, queryAll, type Record, textOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'

const COLUMNS: readonly Column[] = [
  { head: 'channel', align: 'right' },
  { head: 'identity' },
  { head: 'state' },
  { head: 'queued', align: 'right' },
  { head: 'in flight', align: 'right' },
  { head: 'dropped', align: 'right' },
  { head: 'oldest' },
]

export function addChannels(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('channels'))
    .description('list your channels and what waits in them; an admin sees all')
    .option('--json', 'one JSON object per line, with every counter and binding')
    .action((options: LoginOptions & { json?: boolean }) =>
      withConsumer(cli, options, async (consumer) => {
        const next = (last: Record) => ({ after: numberOf(last, 'channel') })
        const channels = await queryAll(consumer, 'producer.channels', {}, next)
        if (!options.json) await terminal.print(formatTable(COLUMNS, channels.map(toRow), terminal.colors))
        else if (channels.length > 0) await terminal.print(channels.map(jsonOf).join('\n'))
      }),
    )
}

function toRow(channel: Record): string[] {
  const text = (name: string) => textOf(channel, name)
  return [
    text('channel'),
    text('identity'),
    text('state'),
    text('queued'),
    text('in_flight'),
    String(dropped(channel)),
    formatTime(numberOf(channel, 'oldest')),
  ]
}

function dropped(channel: Record): number {
  const field = fieldOf(channel, 'dropped')
  const reasons: Record = field?.type === BasicType.REC ? field.value : []
  return reasons.reduce((sum, { value }) => sum + Number(value), 0)
}
