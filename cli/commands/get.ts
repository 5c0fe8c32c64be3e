/** `cinnabar get`: the current value of a metric. */
import type { Command } from 'commander'
import { BasicType } from '../../client/index.ts'
import { parseAssignments, toTypedArguments } from '../arguments.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { toJson, toText } from '../output.ts'
import { metricParameters, toRecords, unitsOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'

/** `wallMs`: milliseconds since 1970. */
export function addGet(program: Command, cli: Cli, wallMs: () => number = Date.now): void {
  const { terminal } = cli
  withLoginOptions(program.command('get'))
    .description('print the current value; exits with 1 if there is none, or if the answer is incomplete')
    .argument('<metric>', "metric, or several with *: 'host.load.*'")
    .argument('[name=value...]', 'arguments of the metric: host=n1')
    .option('--json', 'print one JSON object per value, also for a loss; times in microseconds since 1970')
    .action(async (metric: string, words: string[], options: LoginOptions & { json?: boolean }) => {
      const assignments = parseAssignments(words)
      await withConsumer(cli, options, async (consumer) => {
        const args = await toTypedArguments(assignments, () => metricParameters(consumer, metric))
        const querying = Promise.all([
          consumer.query(metric, args),
          options.json ? () => '' : unitsOf(consumer, metric),
        ])
        const [message, unitOf] = await withProgress(terminal, `waiting for a value of ${metric}`, querying)
        const list = toRecords(message.value)
        const request = [metric, ...words].join(' ')
        if (list?.records.length === 0)
          throw new Failure(ExitCode.FAILED, `no value: nothing currently matches ${request}`)
        if (message.value.type === BasicType.VOID) {
          throw new Failure(ExitCode.FAILED, `no value of ${request}: its source has sent none, or only old ones`)
        }
        const lost = list?.isCut ? [{ lost: 0, reason: 'too long', metric }] : []
        await terminal.print(
          options.json
            ? [...toJson(metric, message), ...lost].map((object) => JSON.stringify(object)).join('\n')
            : toText(metric, message, { unitOf, colors: terminal.colors, nowMs: wallMs() }),
        )
        if (lost.length === 0) return
        const advice = 'query fewer metrics, hosts or objects at a time'
        throw new Failure(ExitCode.FAILED, `the answer is incomplete because it is too long: ${advice}`)
      })
    })
}
