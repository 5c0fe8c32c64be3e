/** `cinnabar exec`: runs a control and waits for its result. */
import type { Command } from 'commander'
import { BasicType, valueToJson } from '../../client/index.ts'
import { parseAssignments, toTypedArguments } from '../assignments.ts'
import { controlParameters } from '../catalogue.ts'
import { type ControlResult, checkOutcome, runControl } from '../control.ts'
import type { LoginOptions } from '../login.ts'
import { formatValue } from '../output/text.ts'
import { whileWaiting } from '../progress.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'

export function addExec(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('exec'))
    .description('run a control and print its result; exits with 1 unless that is ok')
    .argument('<control>', 'as `cinnabar get producer.controls` names it')
    .argument('[name=value...]', 'its arguments, as that shows them')
    .option('--json', 'as one JSON object; the time in microseconds since 1970')
    .action(async (control: string, words: string[], options: LoginOptions & { json?: boolean }) => {
      const assignments = parseAssignments(words)
      await withConsumer(cli, options, async (consumer) => {
        const args = await toTypedArguments(assignments, () => controlParameters(consumer, control))
        const running = runControl(consumer, control, args)
        const result = await whileWaiting(terminal, `${control} is running`, running)
        await terminal.print(options.json ? toJson(control, result) : toText(result))
        checkOutcome(control, result)
      })
    })
}

function toJson(control: string, { value, ...result }: ControlResult): string {
  return JSON.stringify({ control, ...result, value: valueToJson(value) })
}

function toText({ outcome, detail, value }: ControlResult): string {
  const said = detail ? `${outcome}: ${detail}` : outcome
  return value.type === BasicType.VOID ? said : `${said}\n${formatValue(value)}`
}
