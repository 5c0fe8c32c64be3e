/** `cinnabar get`: one value, now. */
import type { Command } from 'commander'
import { BasicType } from '../../client/index.ts'
import { parseAssignments, toTypedArguments } from '../assignments.ts'
import { metricParameters, unitsOf } from '../catalogue.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { toJson, toText } from '../output/measured.ts'
import { whileWaiting } from '../progress.ts'
import { recordsOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'

export function addGet(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('get'))
    .description('measure once; exits with 1 where there is no value')
    .argument('<metric>', "a metric, or several by *: 'host.load.*'")
    .argument('[name=value...]', 'its arguments, as host=n1')
    .option('--json', 'one JSON object per value; times in microseconds since 1970')
    .action(async (metric: string, words: string[], options: LoginOptions & { json?: boolean }) => {
      const assignments = parseAssignments(words)
      await withConsumer(cli, options, async (consumer) => {
        const args = await toTypedArguments(assignments, () => metricParameters(consumer, metric))
        const asking = Promise.all([consumer.query(metric, args), options.json ? () => '' : unitsOf(consumer, metric)])
        const [message, unitOf] = await whileWaiting(terminal, `waiting for a value of ${metric}`, asking)
        const list = recordsOf(message.value)
        const asked = [metric, ...words].join(' ')
        if (list?.records.length === 0)
          throw new Failure(ExitCode.FAILED, `no value: there is nothing for ${asked} now`)
        if (message.value.type === BasicType.VOID) {
          throw new Failure(ExitCode.FAILED, `no value of ${asked}: its source has sent none, or none that is fresh`)
        }
        await terminal.print(
          options.json
            ? toJson(metric, message)
                .map((object) => JSON.stringify(object))
                .join('\n')
            : toText(metric, message, unitOf, terminal.colors),
        )
        if (list?.isCut) terminal.note('there is more than fits one answer: ask for less at a time')
      })
    })
}
