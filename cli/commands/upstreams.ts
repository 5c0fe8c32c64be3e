/** `cinnabar upstreams`: the servers that this one consumes, and how far behind it is with each. */
import type { Command } from 'commander'
import { type Consumer, type Field, StatusError } from '../../client/index.ts'
import { Failure } from '../failure.ts'
import { formatAge, formatBytes, formatCount } from '../format.ts'
import { type ChannelLedger, droppedCount, lagMs, toLedger } from '../ledger.ts'
import { type Column, formatTable, JSON_OPTION, type JsonOptions, printList } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldsOf, fieldText, findField, queryAll, toRecords } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'

const PREFIX = 'upstream/'
const COLUMNS: readonly Column[] = [
  { head: 'upstream' },
  { head: 'state' },
  { head: 'taken', align: 'right' },
  { head: 'waiting', align: 'right' },
  { head: 'bytes', align: 'right' },
  { head: 'lag', align: 'right' },
  { head: 'lost', align: 'right' },
  { head: '' },
]

interface ConsumedServer {
  /** Its entry in `producer.sensors`. */
  readonly record: AnswerRecord
  readonly name: string
  /** The channel there that feeds durable channels here; undefined if there is none, or it cannot be read now. */
  readonly ledger: ChannelLedger | undefined
  /** Microseconds since 1970, by the clock of the server that is asked. */
  readonly now: number
}

export function addUpstreams(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('upstreams'))
    .description('list the servers that this one consumes, and what waits there for it')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const found = await withProgress(terminal, 'reading the upstreams', consumed(consumer))
        const toText = (_: unknown, width?: number) => formatTable(COLUMNS, found.map(rowOf), terminal.colors, width)
        await printList(terminal, found.map(toShown), options.json, { none: 'this server consumes no other', toText })
      }),
    )
}

async function consumed(consumer: Consumer): Promise<ConsumedServer[]> {
  const sample = await consumer.query('producer.sensors')
  const sensors = toRecords(sample.value)?.records ?? []
  const upstreams = sensors.filter((sensor) => fieldText(sensor, 'name').startsWith(PREFIX))
  return Promise.all(
    upstreams.map(async (record) => {
      const name = fieldText(record, 'name').slice(PREFIX.length)
      return { record, name, ledger: await ledgerAt(consumer, name), now: sample.time }
    }),
  )
}

/** What that server says of the channel that this one empties there. */
async function ledgerAt(consumer: Consumer, producer: string): Promise<ChannelLedger | undefined> {
  const id = consumer.capabilities?.producer?.id
  if (id === undefined) return undefined
  try {
    const next = (last: AnswerRecord) => ({ after: fieldNumber(last, 'channel') })
    const channels = await queryAll(consumer, 'producer.channels', { producer }, next)
    return channels.map(toLedger).find(({ name }) => name === `upstream:${id}`)
  } catch (error) {
    // It is not connected, or the channels there are nobody's business here: the rest is worth showing.
    if (error instanceof StatusError || error instanceof Failure) return undefined
    throw error
  }
}

function rowOf({ record, name, ledger, now }: ConsumedServer): string[] {
  const counters = fieldsOf(findField(record, 'counters'))
  const waiting = ledger && [
    formatCount(ledger.queued + ledger.inFlight),
    formatBytes(ledger.queuedBytes),
    formatAge(lagMs(ledger, now)),
    formatCount(droppedCount(ledger)),
  ]
  const taken = formatCount(fieldNumber(counters, 'values'))
  return [name, fieldText(record, 'state'), taken, ...(waiting ?? ['-', '-', '-', '-']), fieldText(record, 'detail')]
}

/** The entry of the sensor with what its channel says. */
function toShown({ record, ledger, now }: ConsumedServer): AnswerRecord {
  if (ledger === undefined) return record
  const count = (name: string, value: number) => ({ name, type: 4, value: BigInt(Math.round(value)) }) as Field
  return [
    ...record,
    count('waiting', ledger.queued + ledger.inFlight),
    count('waiting_bytes', ledger.queuedBytes),
    count('lag_ms', lagMs(ledger, now)),
    count('lost', droppedCount(ledger)),
  ]
}
