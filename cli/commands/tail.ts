/**
 * `cinnabar tail`: a durable channel. What was printed is committed; what was not comes again when the channel is
 * resumed. So a value may be printed twice after a crash, and is never left out unsaid.
 */
import { type Command, InvalidArgumentError } from 'commander'
import { type Consumer, StatusError } from '../../client/index.ts'
import { splitWords } from '../assignments.ts'
import { ExitCode, Failure } from '../failure.ts'
import { bind, type FollowOptions, follow, withFollowOptions } from '../follow.ts'
import type { LoginOptions } from '../login.ts'
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
      const asked = splitWords(words)
      if (asked.names.length === 0 && options.channel === undefined) {
        throw new Failure(ExitCode.USAGE, 'no metric is named: name one, or a --channel to go on with')
      }
      const { channel } = options
      const print = async (consumer: Consumer) => {
        if (channel === undefined) await consumer.setChannel(await consumer.defChannel('', { window: WINDOW }))
        try {
          await bind(terminal, consumer, asked)
        } catch (error) {
          // A name that is misspelled must not leave a channel behind that nobody knows of.
          const isRefused = channel === undefined && error instanceof StatusError
          if (isRefused) await consumer.delChannel().catch(() => {})
          throw error
        }
        terminal.note(`channel ${consumer.channel}; go on later with: cinnabar tail --channel ${consumer.channel}`)
        await follow(terminal, consumer, options)
      }
      await withConsumer(cli, options, print, { channel }).catch((error: unknown) => {
        throw channel === undefined ? error : explained(error, channel)
      })
    })
}

function explained(error: unknown, channel: number): unknown {
  const { cause } = error instanceof Failure ? error : { cause: undefined }
  if (!(cause instanceof StatusError) || cause.status !== 'NO_SUCH_CHANNEL') return error
  const advice = '`cinnabar channels` lists those there are; one that nobody uses is dropped after some days'
  return new Failure(ExitCode.FAILED, `there is no channel ${channel} of yours: ${advice}`, { cause })
}

function channelId(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text) && Number(text) <= 0x7fffffff) return Number(text)
  throw new InvalidArgumentError('It has to be the number that `tail` printed at its start.')
}
