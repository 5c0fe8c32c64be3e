/** `cinnabar status` and `cinnabar connections`: the state of the server, and who is connected to it. */
import type { Command } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import { BasicType, type Consumer, valueToJson } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatAge, formatBytes, formatCount, formatDuration, formatTime, jsonText, printable } from '../format.ts'
import { type Column, formatFacts, formatTable, JSON_OPTION, type JsonOptions, printList } from '../output.ts'
import { type AnswerRecord, fieldNumber, fieldsOf, fieldText, findField, queryAll } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { type Colors, withProgress } from '../terminal.ts'

/** The time over which rates are measured. */
const RATE_MS = 1_000

interface Rates {
  /** Values per second. */
  readonly accepted: number
  readonly sent: number
}

export function addStatus(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  const { terminal } = cli
  withLoginOptions(program.command('status'))
    .description('show the state of the server; exits with 1 if it is not ready. Admins see all of it')
    .option('--json', 'print one JSON object')
    .action((options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const [stats, rates] = await withProgress(terminal, 'reading the state', measure(consumer, clock))
        if (options.json) {
          const { accepted, sent } = rates ?? {}
          const json = valueToJson({ type: BasicType.REC, value: stats }) as object
          const perSecond = rates && { accepted_per_second: accepted, sent_per_second: sent }
          await terminal.print(jsonText({ ...json, ready: isReady(stats), ...perSecond }))
        } else {
          const columns = terminal.screen?.size().columns
          await terminal.print(formatFacts(factsOf(stats, rates, terminal.colors), terminal.colors, columns))
        }
        if (!isReady(stats)) throw new Failure(ExitCode.FAILED, '')
      }),
    )
}

/** Resolves with the newest state, and with the rates if the user sees the counters. */
async function measure(consumer: Consumer, clock: ClientClock): Promise<[AnswerRecord, Rates | undefined]> {
  const read = async () => {
    const { value, time } = await consumer.query('producer.stats')
    return { stats: fieldsOf(value), time }
  }
  const first = await read()
  if (findField(first.stats, 'sent_values') === undefined) return [first.stats, undefined]
  await new Promise<void>((resolve) => clock.setTimeout(resolve, RATE_MS))
  const second = await read()
  const seconds = (second.time - first.time) / 1e6
  const rate = (name: string) => {
    const growth = fieldNumber(second.stats, name) - fieldNumber(first.stats, name)
    return seconds > 0 ? Math.round(growth / seconds) : 0
  }
  return [second.stats, { accepted: rate('accepted_values'), sent: rate('sent_values') }]
}

function isReady(stats: AnswerRecord): boolean {
  return fieldText(stats, 'storage') === 'ok'
}

const NOT_READY: Readonly<Record<string, string>> = {
  full: 'the disk is full: arriving values are dropped, and reported as lost, until there is room',
  failed: 'storing has failed, and the server ends: see its log',
}

function factsOf(
  stats: AnswerRecord,
  rates: Rates | undefined,
  colors: Colors,
): (readonly [name: string, text: string])[] {
  const text = (name: string) => fieldText(stats, name)
  const count = (name: string) => fieldNumber(stats, name)
  const has = (name: string) => findField(stats, name) !== undefined
  const storage = text('storage')
  const listeners = findField(stats, 'listeners')
  const urls = listeners?.type === BasicType.ARRAY ? listeners.value.items.map((url) => printable(String(url))) : []
  const [free, size] = [count('disk_free_bytes'), count('disk_size_bytes')]
  const waiting = count('unauthenticated_connections')
  const refused = [
    ['refused_connections', 'connections found no place'],
    ['evicted_connections', 'connections gave way to others'],
    ['refused_passwords', 'passwords were not checked'],
    ['refused_scrapes', 'scrapes found no turn'],
    ['refused_approvals', 'calls found no place to wait for approval'],
    ['refused_source_connections', 'connections of sources were refused: too few file descriptors'],
    ['forgotten_names', 'named channels were lost, and no GAP reports it'],
    ['faults', 'unexpected errors of the server itself'],
  ] as const
  const troubles = refused.filter(([name]) => count(name) > 0).map(([name, what]) => `${count(name)} ${what}`)
  return [
    ['server', `${text('name')}, ${text('software')}`],
    ['up', formatDuration(count('uptime') * 1_000)],
    ['ready', isReady(stats) ? colors.green('yes') : colors.red(`no: ${NOT_READY[storage] ?? storage}`)],
    ...urls.map((url, i) => [i === 0 ? 'listens on' : '', url] as const),
    ['connections', `${count('connections')}${waiting > 0 ? `, and ${waiting} that have not logged in` : ''}`],
    ['channels', String(count('channels'))],
    ...(rates
      ? [['values', `${formatCount(rates.accepted)}/s accepted, ${formatCount(rates.sent)}/s sent`] as const]
      : []),
    ...(has('disk_size_bytes')
      ? [['disk', `${formatBytes(free)} free of ${formatBytes(size)} (${share(free, size)} %)`] as const]
      : []),
    ['not stored yet', formatBytes(count('unstored_bytes'))],
    ['memory', formatBytes(count('resident_bytes'))],
    ...(has('backup_total_bytes') && count('backup_total_bytes') > 0
      ? [
          [
            'backup',
            `${formatBytes(count('backup_copied_bytes'))} of ${formatBytes(count('backup_total_bytes'))}`,
          ] as const,
        ]
      : []),
    ...troubles.map((trouble, i) => [i === 0 ? 'since the start' : '', colors.yellow(trouble)] as const),
  ]
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : Math.round((100 * part) / whole)
}

export function addConnections(program: Command, cli: Cli, wallMs: () => number = Date.now): void {
  const { terminal } = cli
  withLoginOptions(program.command('connections'))
    .description('list your connections: from where, since when and how; an admin sees those of all users')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) =>
      withConsumer(cli, options, async (consumer) => {
        const next = (last: AnswerRecord) => ({ after: fieldNumber(last, 'channel') })
        const reading = queryAll(consumer, 'producer.connections', {}, next)
        const records = await withProgress(terminal, 'reading the connections', reading)
        const toText = (_: unknown, width?: number) => formatTable(COLUMNS, records.map(rowOf), terminal.colors, width)
        await printList(terminal, records, options.json, { none: 'there are no connections', toText })
      }),
    )

  function rowOf(record: AnswerRecord): string[] {
    const text = (name: string) => fieldText(record, name)
    const since = fieldNumber(record, 'since')
    const transport = [text('transport'), text('layers')].filter((part) => part !== '').join(' + ')
    const age = formatAge(Math.max(0, wallMs() - since / 1_000))
    return [
      text('identity'),
      text('address') || '-',
      transport,
      text('method'),
      text('channel'),
      age,
      formatTime(since),
    ]
  }
}

const COLUMNS: readonly Column[] = [
  { head: 'user' },
  { head: 'address' },
  { head: 'transport' },
  { head: 'login' },
  { head: 'channel', align: 'right' },
  { head: 'for', align: 'right' },
  { head: 'since' },
]
