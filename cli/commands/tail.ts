/**
 * `cinnabar watch` and `cinnabar tail`: print values as they arrive. The channel of `watch` stores nothing: values that
 * arrive while nobody watches are lost. That of `tail` is durable: what was printed is committed, and what was not is sent
 * again when the channel is resumed. After a crash a value may be printed twice, but none is lost without a message.
 */
import type { Command } from 'commander'
import { type ChannelOptions, type Consumer, type Gap, type Sample, StatusError } from '../../client/index.ts'
import { type Assignments, channelId, positiveNumber, splitWords, toTypedArguments } from '../arguments.ts'
import { shellWord } from '../called-as.ts'
import { ExitCode, Failure } from '../failure.ts'
import { describeGap, gapReason, printable } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { toJson, toLine } from '../output.ts'
import { metricParameters } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { type Terminal, withProgress } from '../terminal.ts'
import { missingChannel } from './channels.ts'

interface FollowOptions extends LoginOptions {
  readonly json?: boolean
  readonly count?: number
}

/** A pipe that is stuck makes the producer wait instead of closing the connection. */
const WINDOW = 512

export function addWatch(program: Command, cli: Cli): void {
  withFollowOptions(program.command('watch'))
    .description('print values as they arrive, until Ctrl-C; values that arrive while nobody watches are lost')
    .argument('<metric...>', "metrics, and arguments for all of them: 'gmetric.*' host=n1")
    .action(async (words: string[], options: FollowOptions) => {
      const request = splitWords(words)
      if (request.names.length === 0) throw new Failure(ExitCode.USAGE, 'no metric is given')
      // A closed terminal must not leave a queue that fills for days.
      const channel: ChannelOptions = { durable: false }
      const print = async (consumer: Consumer) => {
        await subscribeAll(cli.terminal, consumer, request)
        await follow(cli.terminal, consumer, options)
      }
      await withConsumer(cli, options, print, channel)
    })
}

export function addTail(program: Command, cli: Cli): void {
  const { terminal } = cli
  withFollowOptions(program.command('tail'))
    .description('print values without losing any, until Ctrl-C; continue later with --name or --channel')
    .argument('[metric...]', 'metrics, and arguments for all of them; those already on the channel stay')
    .option('--name <name>', 'name of the channel: continue with yours of this name, or make it')
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
        if (channel === undefined) {
          await consumer.setChannel(
            await consumer.defChannel('', { window: WINDOW, ...(name !== undefined && { name }) }),
          )
        }
        if (name !== undefined && request.names.length === 0 && consumer.unfollowed.length === 0) {
          throw new Failure(ExitCode.FAILED, `no metric is bound on the channel ${name} yet: name one`)
        }
        try {
          await subscribeAll(terminal, consumer, request)
        } catch (error) {
          // A misspelled name must not leave a channel that nobody knows of.
          const isRefused = channel === undefined && name === undefined && error instanceof StatusError
          if (isRefused) await consumer.delChannel().catch(() => {})
          throw error
        }
        const place = name === undefined ? `--channel ${consumer.channel}` : `--name ${shellWord(printable(name))}`
        terminal.note(`channel ${consumer.channel}; continue later with: ${terminal.program} tail ${place}`)
        if (request.names.length > 0) noteUnfollowed(terminal, consumer)
        await follow(terminal, consumer, options)
      }
      await withConsumer(cli, options, print, { channel }).catch((error: unknown) => {
        throw channel === undefined ? error : explainMissingChannel(error, channel)
      })
    })
}

/** What an earlier call has bound, perhaps with other arguments, comes too. */
function noteUnfollowed(terminal: Terminal, { unfollowed }: Consumer): void {
  for (const { id, metric, args } of unfollowed) {
    const given = Object.entries(args).map(([name, value]) => ` ${name}=${value}`)
    terminal.note(`also bound on this channel: ${printable(metric + given.join(''))} (metric id ${id})`)
  }
}

function withFollowOptions(command: Command): Command {
  return withLoginOptions(
    command
      .option('--count <n>', 'stop after this many values', positiveNumber)
      .option('--json', 'print one JSON object per line, also for losses; times in microseconds since 1970'),
  )
}

/** Subscribes to each metric, with the arguments for all of them. */
async function subscribeAll(
  terminal: Terminal,
  consumer: Consumer,
  { names, assignments }: { readonly names: readonly string[]; readonly assignments: Assignments },
): Promise<void> {
  for (const metric of names) {
    const subscribing = toTypedArguments(assignments, () => metricParameters(consumer, metric)).then((args) =>
      consumer.follow(metric, args),
    )
    await withProgress(terminal, `subscribing to ${metric}`, subscribing)
  }
}

/**
 * Prints what arrives until Ctrl-C, a number of values, or the final end of the connection. A value counts as handled
 * when the system has accepted its output.
 */
async function follow(terminal: Terminal, consumer: Consumer, options: FollowOptions): Promise<void> {
  const undoInterrupt = terminal.onInterrupt(() => void consumer.close())
  const { json = false, count = Number.POSITIVE_INFINITY } = options
  const nameOf = (id: number) => consumer.nameOf(id) || `#${id}`
  const undoGap = consumer.on('gap', (gap) => {
    terminal.note(describeGap(gap, nameOf))
    // A program reads only stdout; the values are missing at this place. If nobody reads it, printing the next value fails.
    if (json) terminal.print(gapJson(gap, nameOf)).catch(() => {})
  })
  let values = 0
  try {
    for await (const sample of consumer) {
      const name = sample.name || nameOf(sample.metric)
      await terminal.print(json ? sampleJson(name, sample) : toLine(name, sample, terminal.colors))
      if (++values < count) continue
      if (sample.transaction !== 0) await consumer.commit(sample.transaction)
      break
    }
  } finally {
    undoGap()
    undoInterrupt()
  }
}

function sampleJson(name: string, sample: Sample): string {
  const committed = sample.transaction === 0 ? {} : { transaction: sample.transaction }
  return toJson(name, sample)
    .map((object) => JSON.stringify({ ...object, ...committed }))
    .join('\n')
}

function gapJson({ count, metric, reason, from, to }: Gap, nameOf: (id: number) => string): string {
  const of = metric === 0 ? {} : { metric: nameOf(metric) }
  return JSON.stringify({ lost: count, reason: gapReason(reason) ?? reason, ...of, from, to })
}

function explainMissingChannel(error: unknown, channel: number): unknown {
  const { cause } = error instanceof Failure ? error : { cause: undefined }
  if (!(cause instanceof StatusError) || cause.status !== 'NO_SUCH_CHANNEL') return error
  return missingChannel(channel, { cause })
}
