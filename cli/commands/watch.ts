/** `cinnabar watch`: values as they come. Its channel holds nothing back: what is missed while nobody looks is gone. */
import type { Command } from 'commander'
import type { Consumer } from '../../client/index.ts'
import { splitWords } from '../assignments.ts'
import { ExitCode, Failure } from '../failure.ts'
import { bind, type FollowOptions, follow, withFollowOptions } from '../follow.ts'
import type { LoginOptions } from '../login.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'

export function addWatch(program: Command, cli: Cli): void {
  withFollowOptions(withLoginOptions(program.command('watch')))
    .description('print values as they come, until Ctrl-C; nothing is kept while nobody watches')
    .argument('<metric...>', "metrics, and arguments for all of them: 'gmetric.*' host=n1")
    .action(async (words: string[], options: LoginOptions & FollowOptions) => {
      const asked = splitWords(words)
      if (asked.names.length === 0) throw new Failure(ExitCode.USAGE, 'no metric is named')
      // A closed terminal must not leave a queue that fills for days.
      const channel = { durable: false }
      const print = async (consumer: Consumer) => {
        await bind(cli.terminal, consumer, asked)
        await follow(cli.terminal, consumer, options)
      }
      await withConsumer(cli, options, print, channel)
    })
}
