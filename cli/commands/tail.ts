/**
 * `cinnabar tail`: a durable channel. What was printed is committed; what was not comes again when the channel is
 * resumed. So a value may be printed twice after a crash, and is never left out unsaid.
 */
import { type Command, InvalidArgumentError } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { splitWords, toTypedArguments } from '../assignments.ts'
import { metricParameters } from '../catalogue.ts'
import { Commits } from '../commits.ts'
import { ExitCode, Failure } from '../failure.ts'
import { type FollowOptions, follow, withFollowOptions } from '../follow.ts'
import type { LoginOptions } from '../login.ts'
import { fieldOf, numberOf, queryAll, recordsOf, textOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'

/** So that a pipe that is stuck makes the producer wait, and not close the connection. */
const WINDOW = 512

export function addTail(program: Command, cli: Cli): void {
  const { terminal } = cli
  withFollowOptions(withLoginOptions(program.command('tail')))
    .description('print values without missing any, until Ctrl-C; go on later with --channel')
    .argument('[metric...]', 'metrics, and arguments for all of them; those already on the channel stay as they are')
    .option('--channel <id>', 'go on with this channel', channelId)
    .action(async (words: string[], options: LoginOptions & FollowOptions & { channel?: number }) => {
      const { names: metrics, assignments } = splitWords(words)
      if (metrics.length === 0 && options.channel === undefined) {
        throw new Failure(ExitCode.USAGE, 'no metric is named: name one, or a --channel to go on with')
      }
      await withConsumer(cli, options, async (consumer) => {
        const names = new Map<number, string>()
        if (options.channel !== undefined) await readBindings(consumer, options.channel, names)
        const channel = options.channel ?? (await consumer.defChannel('', { window: WINDOW }))
        const entries = consumer.entries()
        await consumer.setChannel(channel)
        terminal.note(`channel ${channel}; go on later with: cinnabar tail --channel ${channel}`)
        const bound = new Set(names.values())
        for (const metric of metrics.filter((name) => !bound.has(name))) {
          const args = await toTypedArguments(assignments, () => metricParameters(consumer, metric))
          const id = await consumer.collect(metric, args)
          names.set(id, metric)
          await consumer.subscribe(id)
        }
        const commits = new Commits(consumer)
        await follow({ terminal, entries, names, options, printed: (entry) => commits.add(entry.transaction) })
        await commits.settled()
      })
    })
}

/** Which metrics stand behind the ids that an earlier call has bound. Throws Failure where there is no such channel. */
async function readBindings(consumer: Consumer, channel: number, names: Map<number, string>): Promise<void> {
  const [found] = await queryAll(consumer, 'producer.channels', { channel: String(channel) }, () => ({}))
  if (!found) {
    const advice = '`cinnabar channels` lists those there are; one that nobody uses is dropped after some days'
    throw new Failure(ExitCode.FAILED, `there is no channel ${channel} of yours: ${advice}`)
  }
  const bindings = fieldOf(found, 'bindings')
  const { records = [] } = (bindings && recordsOf(bindings)) ?? {}
  for (const binding of records) names.set(numberOf(binding, 'metric'), textOf(binding, 'name'))
}

function channelId(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text) && Number(text) <= 0x7fffffff) return Number(text)
  throw new InvalidArgumentError('It has to be the number that `tail` printed at its start.')
}
