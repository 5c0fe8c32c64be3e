/** `cinnabar channels`: which queues exist, what waits in them, and which consumers are slow and why. */
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { channelOrName, parseAssignments, toTypedArguments } from '../arguments.ts'
import { queryChannels, withAllBindings } from '../channel-query.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatAge, formatBytes, formatCount, formatDuration, formatTime, printable } from '../format.ts'
import {
  type ChannelLedger,
  droppedCount,
  explainWait,
  isBalanced,
  isOrphan,
  isSlow,
  lagMs,
  toLedger,
} from '../ledger.ts'
import { type LoginOptions, readSecret } from '../login.ts'
import { type Column, formatFacts, formatTable, type JsonOptions, jsonOf } from '../output.ts'
import { type AnswerRecord, controlParameters, fieldNumber } from '../records.ts'
import { type Cli, checkConfidential, withConsumer, withLoginOptions } from '../session.ts'
import { type Terminal, withProgress } from '../terminal.ts'
import { cellWidth, cutToWidth } from '../width.ts'
import { addChannelsDelete, addChannelsPurge, NO_ORPHANS } from './channels-drop.ts'

interface ChannelsOptions extends JsonOptions {
  readonly slow?: boolean
  readonly orphans?: boolean
}

/** The width of the table if stdout is not a terminal. */
const COLUMNS = 120
const MIN_BINDINGS = 10
/** Columns that a narrow terminal leaves out, in this order: the others show which consumers are slow and why. */
const LEFT_OUT_FIRST = ['flight', 'committed', 'accepted', 'url', 'state', 'identity']
const MAX_URL = 32
const MAX_NAME = 24

export function addChannels(program: Command, cli: Cli): void {
  const { terminal } = cli
  const channels = withLoginOptions(program.command('channels'))
    .description('list your channels, what waits in them and why; an admin sees all channels')
    .argument('[channel]', 'show everything about this one, by its id or name', channelOrName)
    .option('--slow', 'list only channels with values that have waited for at least a second, the slowest first')
    .option(
      '--orphans',
      'list only channels that nobody came back for: `cinnabar channels delete --orphans` deletes them',
    )
    .option('--json', 'print one JSON object per line, with every counter and binding')
    .enablePositionalOptions()
    .helpCommand(false)
    .action(async (channel: number | string | undefined, options: ChannelsOptions) => {
      await withConsumer(cli, options, async (consumer) => {
        const reading = queryChannels(consumer, channel)
        const { records, now } = await withProgress(terminal, 'reading the channels', reading)
        const found = options.orphans ? records.filter((record) => isOrphan(toLedger(record))) : records
        const chosen = options.slow ? slowest(found, now) : found
        const isComplete = options.json === true || channel !== undefined
        const shown = isComplete ? await withAllBindings(consumer, chosen) : chosen
        if (options.json) {
          if (shown.length > 0) await terminal.print(shown.map(jsonOf).join('\n'))
          return
        }
        const ledgers = shown.map(toLedger)
        if (options.slow && ledgers.length === 0) return terminal.note('no value has waited for a second or more')
        if (options.orphans && ledgers.length === 0) return terminal.note(NO_ORPHANS)
        const all = () => overview(ledgers, now, consumer.channel, terminal)
        const text = channel === undefined ? all() : ledgers.map((one) => details(one, now, terminal)).join('\n')
        await terminal.print(text)
      })
    })
  addChannelsDefine(channels, cli)
  addChannelsDelete(channels, cli)
  addChannelsPurge(channels, cli)
}

function slowest(records: readonly AnswerRecord[], now: number): AnswerRecord[] {
  return records
    .filter((record) => isSlow(toLedger(record), now))
    .sort((a, b) => fieldNumber(a, 'oldest') - fieldNumber(b, 'oldest'))
}

interface OverviewColumn extends Column {
  /** Left out if it is empty for every channel. */
  readonly isOptional?: boolean
  readonly of: (ledger: ChannelLedger) => string
}

function overview(ledgers: readonly ChannelLedger[], now: number, own: number, { screen, colors }: Terminal): string {
  const columns = screen?.size().columns
  const all = (bindingsWidth: number): readonly OverviewColumn[] => [
    { head: 'channel', align: 'right', of: ({ channel }) => String(channel) },
    { head: 'name', isOptional: true, of: ({ name }) => cutToWidth(printable(name), MAX_NAME) },
    { head: 'identity', of: ({ identity }) => cutToWidth(identity, MAX_NAME) },
    { head: 'url', isOptional: true, of: ({ url }) => cutToWidth(url, MAX_URL) },
    { head: 'state', of: ({ state }) => state },
    { head: 'bindings', of: (ledger) => bindingsText(ledger, bindingsWidth) },
    { head: 'accepted', align: 'right', of: ({ accepted }) => formatCount(accepted) },
    { head: 'committed', align: 'right', of: ({ committed }) => formatCount(committed) },
    { head: 'flight', align: 'right', of: ({ inFlight }) => formatCount(inFlight) },
    { head: 'queued', align: 'right', of: queuedText },
    { head: 'dropped', isOptional: true, of: droppedText },
    { head: 'lag', align: 'right', of: (ledger) => lagText(ledger, now, formatAge) },
    { head: 'why', of: (ledger) => (ledger.channel === own ? 'this command itself' : explainWait(ledger, now)) },
  ]
  const used = (bindingsWidth: number, omitted: number) =>
    all(bindingsWidth)
      .filter(({ head }) => !LEFT_OUT_FIRST.slice(0, omitted).includes(head))
      .filter(({ isOptional, of }) => !isOptional || ledgers.some((one) => of(one) !== ''))
  // The bindings take the room that the other columns leave.
  const left = (omitted: number) => {
    const others = used(0, omitted).filter(({ head }) => head !== 'bindings')
    const widths = others.map(({ head, of }) =>
      Math.max(head.length, ...ledgers.map((ledger) => cellWidth(of(ledger)))),
    )
    return (columns ?? COLUMNS) - widths.reduce((sum, width) => sum + width + 2, 0)
  }
  let omitted = 0
  while (columns !== undefined && omitted < LEFT_OUT_FIRST.length && left(omitted) < MIN_BINDINGS) omitted++
  const fitting = used(Math.max(MIN_BINDINGS, left(omitted)), omitted)
  const rows = ledgers.map((ledger) => fitting.map(({ of }) => of(ledger)))
  return formatTable(fitting, rows, colors)
}

/** Shows everything about one channel, one line per counter. */
function details(ledger: ChannelLedger, now: number, { screen, colors }: Terminal): string {
  const columns = screen?.size().columns
  const { accepted, committed, inFlight, queued } = ledger
  const dropped = droppedCount(ledger)
  const sum = committed + inFlight + queued + dropped
  const addition = `${committed} committed + ${inFlight} in flight + ${queued} queued + ${dropped} dropped`
  const balance = isBalanced(ledger)
    ? `${accepted} accepted = ${addition}`
    : colors.red(`${accepted} accepted, but ${addition} = ${sum}`)
  const lag = ledger.oldest === 0 ? '-' : `${lagText(ledger, now, formatDuration)}, since ${formatTime(ledger.oldest)}`
  const facts: readonly (readonly [string, string])[] = [
    ['channel', String(ledger.channel)],
    ['name', printable(ledger.name) || '-'],
    ['identity', ledger.identity],
    ['url', ledger.url || '-'],
    ['state', `${ledger.state}: ${explainWait(ledger, now)}`],
    ['durable', ledger.isDurable ? 'yes' : 'no: values that are not sent are kept in memory, and not for long'],
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
  const heads: readonly Column[] = [{ head: 'metric', align: 'right' }, { head: 'mode' }, { head: 'name' }]
  const bound = ledger.bindings.map(({ metric, mode, name }) => [String(metric), mode, name])
  const bindings = bound.length === 0 ? 'no bindings' : formatTable(heads, bound, colors, columns)
  return [formatFacts(facts, colors, columns), '', bindings].join('\n')
}

/** Writes bytes like `ls -h`, since there is little room. */
function queuedText({ queued, queuedBytes }: ChannelLedger): string {
  return queued === 0 ? '0' : `${formatCount(queued)} (${formatBytes(queuedBytes).replace(/ (.).*/, '$1')})`
}

function droppedText({ dropped }: ChannelLedger): string {
  return dropped
    .filter(({ count }) => count > 0)
    .map(({ reason, count }) => `${formatCount(count)} ${printable(reason)}`)
    .join(', ')
}

function lagText(ledger: ChannelLedger, now: number, format: (ms: number) => string): string {
  return ledger.oldest === 0 ? '-' : format(lagMs(ledger, now))
}

/** Shortens the list to the form `gmetric.* +2`. */
function bindingsText({ bindings: [first], bound }: ChannelLedger, width: number): string {
  if (!first) return '-'
  const rest = bound > 1 ? ` +${bound - 1}` : ''
  return cutToWidth(first.name, Math.max(1, width - rest.length)) + rest
}

interface DefineOptions extends LoginOptions {
  readonly dialSecretFile?: string
  readonly bearerFile?: string
  readonly name?: string
  readonly subscribe?: readonly string[]
}

/** The minimum of [MON 14]. */
const MIN_SECRET_BYTES = 16
const DESTINATION = /^(tcp|tls|ws|wss|gmetric|(prometheus|otlp)\+https?):\/\//i
/** One-way, or with a certificate as the proof. */
const SECRETLESS = /^(gmetric|tls|wss|(prometheus|otlp)\+https?):/i

/** `cinnabar channels define`: creates a channel for which the producer dials the consumer [MON 14]. */
function addChannelsDefine(channels: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(channels.command('define'))
    .description('define a channel whose URL the server dials, and print its id')
    .argument(
      '<destination>',
      'tcp://, tls://, ws:// or wss:// URL of a consumer that listens; gmetric://HOST:PORT; or prometheus+https:// or otlp+https:// URL of a system that takes requests',
    )
    .argument('[name=value...]', 'settings as for the control channel.configure: max_bytes=1048576')
    .option(
      '--dial-secret-file <file>',
      'file whose first line authenticates the consumer: at least 16 bytes; without it, its certificate does',
    )
    .option(
      '--bearer-file <file>',
      'file whose first line is a token, which the server shows to a destination of prometheus+https:// or otlp+https://',
    )
    .option(
      '--name <name>',
      'name of the channel: creates it if you have none with this name, otherwise changes its settings to those given',
    )
    .option(
      '--subscribe <metric>',
      'metric to send over the channel; may be repeated',
      (metric, before: string[] = []) => [...before, metric],
    )
    .action((destination: string, words: string[], options: DefineOptions) => {
      const settings = parseAssignments(words)
      if (settings.has('bearer')) {
        throw new Failure(ExitCode.USAGE, 'others can see the command line: use --bearer-file FILE for the token')
      }
      if (settings.has('secret')) {
        throw new Failure(ExitCode.USAGE, 'others can see the command line: use --dial-secret-file FILE for the secret')
      }
      if (!DESTINATION.test(destination)) {
        const forms = 'tcp://, tls://, ws://, wss://, gmetric://, prometheus+https:// or otlp+https://'
        throw new Failure(ExitCode.USAGE, `the server cannot dial ${destination}: give a URL with ${forms}`)
      }
      if (options.dialSecretFile === undefined && !SECRETLESS.test(destination)) {
        throw new Failure(
          ExitCode.USAGE,
          'the consumer must authenticate itself to the server: add --dial-secret-file FILE, or use tls:// or wss://',
        )
      }
      return withConsumer(cli, options, async (consumer) => {
        const typed = await toTypedArguments(settings, () => controlParameters(consumer, 'channel.configure'))
        const secret = await secretOf(options, consumer)
        const bearer = await bearerOf(options, consumer)
        const { name } = options
        const defining = consumer.defChannel(destination, {
          ...typed,
          ...(name && { name }),
          ...(secret && { secret }),
          ...(bearer && { bearer }),
        })
        const channel = await withProgress(terminal, 'defining the channel', defining)
        try {
          for (const metric of options.subscribe ?? []) {
            await consumer.subscribe(await consumer.collect(metric), channel)
          }
        } catch (error) {
          // A misspelled metric must not leave a channel that nobody knows of.
          if (name === undefined) await consumer.delChannel(channel).catch(() => {})
          throw error
        }
        await terminal.print(String(channel))
        terminal.note(`\`${terminal.program} channels ${channel}\` shows whether it is connected`)
      })
    })

  async function bearerOf({ bearerFile }: DefineOptions, consumer: Consumer): Promise<Uint8Array | undefined> {
    if (bearerFile === undefined) return undefined
    checkConfidential(consumer, 'the token')
    return new TextEncoder().encode(await readSecret(bearerFile, terminal))
  }

  async function secretOf({ dialSecretFile }: DefineOptions, consumer: Consumer): Promise<Uint8Array | undefined> {
    if (dialSecretFile === undefined) return undefined
    checkConfidential(consumer, 'the secret')
    const secret = new TextEncoder().encode(await readSecret(dialSecretFile, terminal))
    if (secret.length >= MIN_SECRET_BYTES) return secret
    const length = `at least ${MIN_SECRET_BYTES} bytes`
    throw new Failure(ExitCode.USAGE, `the secret in ${dialSecretFile} is too short: it must have ${length}`)
  }
}
