/** `cinnabar channels`: which queues there are, what waits in them, and who is slow and why. */
import { type Command, InvalidArgumentError } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { ExitCode, Failure } from '../failure.ts'
import { droppedOf, isBalanced, isSlow, type Ledger, lagOf, toLedger, whyOf } from '../ledger.ts'
import type { LoginOptions } from '../login.ts'
import { jsonOf } from '../output/measured.ts'
import { formatAge, formatBytes, formatCount, formatDuration } from '../output/quantity.ts'
import { type Column, formatTable } from '../output/table.ts'
import { formatTime, printable } from '../output/text.ts'
import { whileWaiting } from '../progress.ts'
import { numberOf, queryAll, type Record } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Colors } from '../terminal.ts'
import { addChannelsDefine } from './channels-define.ts'

interface ChannelsOptions extends LoginOptions {
  readonly slow?: boolean
  readonly delete?: boolean
  readonly json?: boolean
}

interface Answer {
  readonly records: readonly Record[]
  /** When it was given, by the producer's clock, microseconds since 1970. */
  readonly now: number
}

/** Without a terminal, whose width is known. */
const COLUMNS = 120
const MIN_BINDINGS = 10
/** What is left out on a narrow terminal, from the first on: the other columns say who is slow and why. */
const SPARED = ['flight', 'committed', 'accepted', 'url', 'state', 'identity']
const MAX_URL = 32

export function addChannels(program: Command, cli: Cli): void {
  const { terminal } = cli
  const channels = withLoginOptions(program.command('channels'))
    .description('list your channels, what waits in them and why; an admin sees all')
    .argument('[channel]', 'everything about this one', channelId)
    .option('--slow', 'only those with values that have waited for a second or more, the slowest first')
    .option('--delete', 'delete this one, and all that waits in it')
    .option('--json', 'one JSON object per line, with every counter and binding')
    .enablePositionalOptions()
    .helpCommand(false)
    .action(async (channel: string | undefined, options: ChannelsOptions) => {
      if (options.delete && channel === undefined) {
        throw new Failure(ExitCode.USAGE, 'no channel is named: say which one to delete')
      }
      await withConsumer(cli, options, async (consumer) => {
        if (options.delete) {
          await whileWaiting(terminal, 'deleting the channel', consumer.delChannel(Number(channel)))
          return terminal.note(`channel ${channel} deleted`)
        }
        const asking = ask(consumer, channel)
        const { records, now } = await whileWaiting(terminal, 'reading the channels', asking)
        const chosen = options.slow ? slowest(records, now) : records
        if (options.json) {
          if (chosen.length > 0) await terminal.print(chosen.map(jsonOf).join('\n'))
          return
        }
        const ledgers = chosen.map(toLedger)
        if (options.slow && ledgers.length === 0) return terminal.note('nothing has waited for as long as a second')
        if (channel !== undefined)
          return terminal.print(ledgers.map((one) => details(one, now, terminal.colors)).join('\n'))
        const columns = terminal.screen?.size().columns
        await terminal.print(overview(ledgers, now, consumer.channel, columns, terminal.colors))
      })
    })
  addChannelsDefine(channels, cli)
}

/** Throws Failure where a channel is named that there is not. */
async function ask(consumer: Consumer, channel: string | undefined): Promise<Answer> {
  let now = 0
  const timed: Pick<Consumer, 'query'> = {
    async query(...parameters) {
      const answer = await consumer.query(...parameters)
      now = answer.time
      return answer
    },
  }
  const next = (last: Record) => ({ after: numberOf(last, 'channel') })
  const records = await queryAll(timed, 'producer.channels', channel === undefined ? {} : { channel }, next)
  if (channel === undefined || records.length > 0) return { records, now }
  const advice = '`cinnabar channels` lists those there are; one that nobody uses is dropped after some days'
  throw new Failure(ExitCode.FAILED, `there is no channel ${channel} of yours: ${advice}`)
}

function slowest(records: readonly Record[], now: number): Record[] {
  return records
    .filter((record) => isSlow(toLedger(record), now))
    .sort((a, b) => numberOf(a, 'oldest') - numberOf(b, 'oldest'))
}

interface Shown extends Column {
  /** Left out where it says nothing of any channel. */
  readonly isOptional?: boolean
  readonly of: (ledger: Ledger) => string
}

/** `columns`: how wide a terminal is; undefined where there is none. */
function overview(
  ledgers: readonly Ledger[],
  now: number,
  own: number,
  columns: number | undefined,
  colors: Colors,
): string {
  const shown = (bindingsWidth: number): readonly Shown[] => [
    { head: 'channel', align: 'right', of: ({ channel }) => String(channel) },
    { head: 'identity', of: ({ identity }) => cut(identity, 24) },
    { head: 'url', isOptional: true, of: ({ url }) => cut(url, MAX_URL) },
    { head: 'state', of: ({ state }) => state },
    { head: 'bindings', of: ({ bindings }) => shortly(bindings, bindingsWidth) },
    { head: 'accepted', align: 'right', of: ({ accepted }) => formatCount(accepted) },
    { head: 'committed', align: 'right', of: ({ committed }) => formatCount(committed) },
    { head: 'flight', align: 'right', of: ({ inFlight }) => formatCount(inFlight) },
    { head: 'queued', align: 'right', of: queuedText },
    { head: 'dropped', isOptional: true, of: droppedText },
    {
      head: 'unstored',
      isOptional: true,
      align: 'right',
      of: ({ unstored }) => (unstored ? formatCount(unstored) : ''),
    },
    { head: 'lag', align: 'right', of: (ledger) => lagText(ledger, now, formatAge) },
    { head: 'why', of: (ledger) => (ledger.channel === own ? 'this call itself' : whyOf(ledger, now)) },
  ]
  const used = (bindingsWidth: number, spared: number) =>
    shown(bindingsWidth)
      .filter(({ head }) => !SPARED.slice(0, spared).includes(head))
      .filter(({ isOptional, of }) => !isOptional || ledgers.some((one) => of(one) !== ''))
  // The bindings take what the others leave.
  const left = (spared: number) => {
    const others = used(0, spared).filter(({ head }) => head !== 'bindings')
    const widths = others.map(({ head, of }) => Math.max(head.length, ...ledgers.map((ledger) => of(ledger).length)))
    return (columns ?? COLUMNS) - widths.reduce((sum, width) => sum + width + 2, 0)
  }
  let spared = 0
  while (columns !== undefined && spared < SPARED.length && left(spared) < MIN_BINDINGS) spared++
  const fitting = used(Math.max(MIN_BINDINGS, left(spared)), spared)
  const rows = ledgers.map((ledger) => fitting.map(({ of }) => of(ledger)))
  return formatTable(fitting, rows, colors)
}

/** Everything about one channel, a line for each counter. */
function details(ledger: Ledger, now: number, colors: Colors): string {
  const { accepted, committed, inFlight, queued } = ledger
  const dropped = droppedOf(ledger)
  const sum = committed + inFlight + queued + dropped
  const addition = `${committed} committed + ${inFlight} in flight + ${queued} queued + ${dropped} dropped`
  const balance = isBalanced(ledger)
    ? `${accepted} accepted = ${addition}`
    : colors.red(`${accepted} accepted, but ${addition} = ${sum}`)
  const lag = ledger.oldest === 0 ? '-' : `${lagText(ledger, now, formatDuration)}, since ${formatTime(ledger.oldest)}`
  const lines: readonly (readonly [string, string])[] = [
    ['channel', String(ledger.channel)],
    ['identity', ledger.identity],
    ['url', ledger.url || '-'],
    ['state', `${ledger.state}: ${whyOf(ledger, now)}`],
    ['durable', ledger.isDurable ? 'yes' : 'no: what is not sent is kept in memory, and not for long'],
    ['lag', lag],
    ['accepted', String(accepted)],
    ['committed', String(committed)],
    ['in flight', String(inFlight)],
    ['queued', `${queued} (${formatBytes(ledger.queuedBytes)})`],
    ['dropped', String(dropped)],
    ...ledger.dropped.map(({ reason, count }) => [`  ${printable(reason)}`, String(count)] as const),
    ['balance', balance],
    ['stored', `through transaction ${ledger.stored}`],
    ['unstored', String(ledger.unstored)],
    ['gaps', String(ledger.gaps)],
  ]
  const width = Math.max(...lines.map(([name]) => name.length))
  const facts = lines.map(([name, text]) => `${name.padEnd(width)}  ${text}`)
  const heads: readonly Column[] = [{ head: 'metric', align: 'right' }, { head: 'mode' }, { head: 'name' }]
  const bound = ledger.bindings.map(({ metric, mode, name }) => [String(metric), mode, name])
  const bindings = bound.length === 0 ? ['no bindings'] : [formatTable(heads, bound, colors)]
  return [...facts, '', ...bindings].join('\n')
}

/** Bytes as `ls -h` has them, since there is little room. */
function queuedText({ queued, queuedBytes }: Ledger): string {
  return queued === 0 ? '0' : `${formatCount(queued)} (${formatBytes(queuedBytes).replace(/ (.).*/, '$1')})`
}

function droppedText({ dropped }: Ledger): string {
  return dropped
    .filter(({ count }) => count > 0)
    .map(({ reason, count }) => `${formatCount(count)} ${printable(reason)}`)
    .join(', ')
}

function lagText(ledger: Ledger, now: number, format: (ms: number) => string): string {
  return ledger.oldest === 0 ? '-' : format(lagOf(ledger, now))
}

/** As `gmetric.* +2`. */
function shortly(bindings: Ledger['bindings'], width: number): string {
  const [first, ...more] = bindings
  if (!first) return '-'
  const rest = more.length > 0 ? ` +${more.length}` : ''
  return cut(first.name, Math.max(1, width - rest.length)) + rest
}

function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`
}

function channelId(text: string): string {
  if (/^[1-9]\d{0,9}$/.test(text) && Number(text) <= 0x7fffffff) return text
  throw new InvalidArgumentError('It has to be the id of a channel, as `cinnabar channels` lists them.')
}
