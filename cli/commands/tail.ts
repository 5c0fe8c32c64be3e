/**
 * `cinnabar watch` and `cinnabar tail`: print values as they arrive. The channel of `watch` stores nothing: values that
 * arrive while nobody watches are lost. That of `tail` is durable: what was printed is committed, and what was not is sent
 * again when the channel is resumed. After a crash a value may be printed twice, but none is lost without a message.
 */
import type { Command } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import {
  type Arguments,
  type ChannelOptions,
  ConnectionError,
  type Consumer,
  type GapEvent,
  type Sample,
  StatusError,
} from '../../client/index.ts'
import {
  type Assignments,
  channelId,
  intervalSeconds,
  positiveNumber,
  splitWords,
  toTypedArguments,
} from '../arguments.ts'
import { shellWord } from '../called-as.ts'
import { missingChannel } from '../channel-query.ts'
import { ExitCode, Failure } from '../failure.ts'
import { describeGap, jsonText, printable } from '../format.ts'
import { EXACT_OPTION, type JsonOptions, toJson, toLine } from '../output.ts'
import { Rates } from '../rates.ts'
import {
  type AnswerRecord,
  fieldNumber,
  fieldText,
  metricParameters,
  queryAll,
  similarMetric,
  unitsOf,
  unseen,
  withSuggestion,
} from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { type Terminal, withProgress } from '../terminal.ts'

interface FollowOptions extends JsonOptions {
  readonly exact?: boolean
  readonly count?: number
}

interface WatchOptions extends FollowOptions {
  /** Seconds. */
  readonly interval?: number
  readonly rate?: boolean
}

/** A pipe that is stuck makes the producer wait instead of closing the connection. */
const WINDOW = 512
/** When metrics that nothing matches are named. */
const PATIENCE_MS = 1_000

export function addWatch(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  withLoginOptions(withFollowOptions(program.command('watch')))
    .description('print values as they arrive, until Ctrl-C; values that arrive while nobody watches are lost')
    .argument('<metric...>', "metrics, and arguments for all of them: 'gmetric.*' host=n1")
    .option(
      '--interval <seconds>',
      'interval between measurements of metrics that the server measures itself',
      intervalSeconds,
    )
    .option('--rate', 'print by how much each number grows per second, for counters')
    .action(async (words: string[], options: WatchOptions) => {
      const request = splitWords(words)
      if (request.names.length === 0) throw new Failure(ExitCode.USAGE, 'no metric is given')
      // A closed terminal must not leave a queue that fills for days.
      const channel: ChannelOptions = { durable: false }
      const print = async (consumer: Consumer) => {
        const every = options.interval === undefined ? {} : { interval_ms: Math.round(options.interval * 1_000) }
        const following = { metrics: request.names, units: new FollowedUnits(consumer, request.names, options) }
        await subscribeAll(cli.terminal, consumer, request, every)
        await follow(cli.terminal, consumer, following, options, clock)
      }
      await withConsumer(cli, options, print, channel)
    })
}

export function addTail(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  const { terminal } = cli
  withLoginOptions(withFollowOptions(program.command('tail')))
    .description('print values without losing any, until Ctrl-C; continue later with --name or --channel')
    .argument('[metric...]', 'metrics, and arguments for all of them; those already on the channel stay')
    .option(
      '--name <name>',
      'name of the channel to continue with; with a metric, creates the channel if you have none with this name',
    )
    .option('--channel <id>', 'continue with this channel', channelId)
    .action(async (words: string[], options: FollowOptions & { channel?: number; name?: string }) => {
      const request = splitWords(words)
      const { channel, name } = options
      if (name !== undefined && channel !== undefined) {
        throw new Failure(ExitCode.USAGE, 'a channel has one name and one id: give --name or --channel, not both')
      }
      if (request.names.length === 0 && channel === undefined && name === undefined) {
        throw new Failure(ExitCode.USAGE, 'no metric is given: name one, or a --name or --channel to continue with')
      }
      const print = async (consumer: Consumer) => {
        if (name !== undefined && request.names.length === 0) await checkNamed(consumer, name)
        if (channel === undefined) {
          await consumer.setChannel(
            await consumer.defChannel('', { window: WINDOW, ...(name !== undefined && { name }) }),
          )
        }
        if (name !== undefined && request.names.length === 0 && consumer.unfollowed.length === 0) {
          throw new Failure(ExitCode.FAILED, `no metric is bound on the channel ${name} yet: name one`)
        }
        const earlier = consumer.unfollowed.map(({ metric }) => metric)
        const metrics = [...new Set([...request.names, ...earlier])]
        const units = new FollowedUnits(consumer, metrics, options)
        try {
          await subscribeAll(terminal, consumer, request)
        } catch (error) {
          // A misspelled name must not leave a channel that nobody knows of.
          const isRefused = channel === undefined && name === undefined && !(error instanceof ConnectionError)
          if (isRefused) await consumer.delChannel().catch(() => {})
          throw error
        }
        const place = name === undefined ? `--channel ${consumer.channel}` : `--name ${shellWord(printable(name))}`
        terminal.note(`channel ${consumer.channel}; continue later with: ${terminal.program} tail ${place}`)
        if (request.names.length > 0) noteUnfollowed(terminal, consumer)
        await follow(terminal, consumer, { metrics, units }, options, clock)
      }
      await withConsumer(cli, options, print, { channel }).catch((error: unknown) => {
        throw channel === undefined ? error : explainMissingChannel(error, channel)
      })
    })
}

/** A misspelt name must not create a channel: rejects with Failure if the user has none with this name. An admin sees others'. */
async function checkNamed(consumer: Consumer, name: string): Promise<void> {
  const next = (last: AnswerRecord) => ({ after: fieldNumber(last, 'channel') })
  const ownersOf = async (channel: string) => {
    const records = await queryAll(consumer, 'producer.channels', { channel }, next)
    return records.map((record) => fieldText(record, 'identity'))
  }
  // 0 is the current channel, which tells who this is.
  const [[user], owners] = await Promise.all([ownersOf('0'), ownersOf(name)])
  if (user !== undefined && owners.includes(user)) return
  const advice = `\`cinnabar tail METRIC --name ${shellWord(printable(name))}\` creates it`
  throw new Failure(
    ExitCode.FAILED,
    `you have no channel ${name}: ${advice}; \`cinnabar channels\` lists your channels`,
  )
}

/** What an earlier call has bound, perhaps with other arguments, comes too. */
function noteUnfollowed(terminal: Terminal, { unfollowed }: Consumer): void {
  for (const { id, metric, args } of unfollowed) {
    const given = Object.entries(args).map(([name, value]) => ` ${name}=${value}`)
    terminal.note(`also bound on this channel: ${printable(metric + given.join(''))} (metric id ${id})`)
  }
}

function withFollowOptions(command: Command): Command {
  return command
    .option('--count <n>', 'stop after this many values', positiveNumber)
    .option(...EXACT_OPTION)
    .option('--json', 'print one JSON object per line, also for losses; times in microseconds since 1970')
}

/** Subscribes to each metric, with the arguments for all of them. */
async function subscribeAll(
  terminal: Terminal,
  consumer: Consumer,
  { names, assignments }: { readonly names: readonly string[]; readonly assignments: Assignments },
  more: Arguments = {},
): Promise<void> {
  for (const metric of names) {
    const subscribing = toTypedArguments(assignments, () => metricParameters(consumer, metric)).then((args) =>
      consumer.follow(metric, { ...more, ...args }),
    )
    await withProgress(terminal, `subscribing to ${metric}`, withSuggestion(consumer, metric, subscribing))
  }
}

interface Following {
  readonly metrics: readonly string[]
  readonly units: FollowedUnits
}

/** Asked for before the values, so that they are there first; no value waits for its unit. */
class FollowedUnits {
  #unitOf: (metric: string) => string = () => ''

  constructor(consumer: Consumer, metrics: readonly string[], { json = false }: FollowOptions) {
    if (json) return
    unitsOf(consumer, metrics, true).then(
      (unitOf) => {
        this.#unitOf = unitOf
      },
      () => {},
    )
  }

  /** Empty if it is not known. */
  of(metric: string): string {
    return this.#unitOf(metric)
  }
}

/**
 * Prints what arrives until Ctrl-C, a number of values, or the final end of the connection. A value counts as handled
 * when the system has accepted its output.
 */
async function follow(
  terminal: Terminal,
  consumer: Consumer,
  { metrics, units }: Following,
  options: WatchOptions,
  clock: ClientClock,
): Promise<void> {
  const undoInterrupt = terminal.onInterrupt(() => void consumer.close())
  const { json = false, count = Number.POSITIVE_INFINITY, rate: isRate = false, exact: isExact } = options
  const nameOf = (id: number) => consumer.nameOf(id) || `#${id}`
  const undoGap = consumer.on('gap', (gap) => {
    terminal.note(describeGap(gap, nameOf))
    // A program reads only stdout; the values are missing at this place. If nobody reads it, printing the next value fails.
    if (json) terminal.print(gapJson(gap, nameOf)).catch(() => {})
  })
  const waiting = clock.setTimeout(() => {
    void noteMissing(terminal, consumer, metrics).catch(() => {})
  }, PATIENCE_MS)
  const rates = new Rates()
  let values = 0
  try {
    const showing = {
      colors: terminal.colors,
      isExact,
      unitOf: (metric: string) => (isRate ? perSecond(units.of(metric)) : units.of(metric)),
    }
    for await (const sample of consumer) {
      const name = sample.name || nameOf(sample.id)
      const shown = isRate ? rates.of(name, sample) : sample
      if (shown === undefined) continue
      await terminal.print(json ? sampleJson(name, shown, isRate) : toLine(name, shown, showing))
      if (++values < count) continue
      if (sample.transaction !== 0) await consumer.commit(sample.transaction)
      break
    }
  } finally {
    waiting.cancel()
    undoGap()
    undoInterrupt()
  }
}

/** Says which metrics nothing matches yet: one that is misspelt would wait for ever. */
async function noteMissing(terminal: Terminal, consumer: Consumer, metrics: readonly string[]): Promise<void> {
  for (const metric of metrics) {
    if (!(await unseen(consumer, metric))) continue
    const similar = await similarMetric(consumer, metric)
    terminal.note(`nothing matches ${printable(metric)} now; waiting (Ctrl-C ends).${printable(similar)}`)
  }
}

function perSecond(unit: string): string {
  return unit === '' || unit === '1' ? '/s' : `${unit}/s`
}

type Followed = Pick<Sample, 'time' | 'value' | 'transaction'>

function sampleJson(name: string, sample: Followed, isRate: boolean): string {
  const more = {
    ...(isRate && { per_second: true }),
    ...(sample.transaction !== 0 && { transaction: sample.transaction }),
  }
  return toJson(name, sample)
    .map((object) => jsonText({ ...object, ...more }))
    .join('\n')
}

function gapJson({ count, id, reason, from, to }: GapEvent, nameOf: (id: number) => string): string {
  const of = id === 0 ? {} : { metric: nameOf(id) }
  return jsonText({ lost: count, reason, ...of, from, to })
}

function explainMissingChannel(error: unknown, channel: number): unknown {
  const { cause } = error instanceof Failure ? error : { cause: undefined }
  if (!(cause instanceof StatusError) || cause.status !== 'NO_SUCH_CHANNEL') return error
  return missingChannel(channel, { cause })
}
