/** `cinnabar explain`: whether a user may do something, and which rule or default decides it. */
import { Argument, type Command, InvalidArgumentError } from 'commander'
import { BasicType, valueToJson } from '../../client/index.ts'
import { checkOutcome, runControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { IDENTITY, whoIs } from '../identity.ts'
import type { LoginOptions } from '../login.ts'
import { whileWaiting } from '../progress.ts'
import { fieldOf, type Record, textOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { whereOf } from './role.ts'

/** What a rule can be about; the first five are all reading. */
const COMMANDS = ['COLLECT', 'QUERY', 'SUBSCRIBE', 'BUFFER', 'GET', 'EXECUTE', 'DEF_CHANNEL'] as const

export function addExplain(program: Command, cli: Cli): void {
  const { terminal } = cli
  withLoginOptions(program.command('explain'))
    .description('say whether a user may do something, and by which rule; exits with 1 where not')
    .argument('<name>', IDENTITY)
    .addArgument(new Argument('<command>', 'COLLECT, EXECUTE, DEF_CHANNEL, ...').choices(COMMANDS).argParser(command))
    .argument('<object>', 'the metric, control or destination')
    .argument('[name=value...]', 'with these arguments')
    .option('--json', 'as one JSON object')
    .action(
      (user: string, command: string, object: string, words: string[], options: LoginOptions & { json?: boolean }) => {
        whoIs(user)
        const where = whereOf(words)
        const args = { user, command, object, ...(where ? { where } : {}) }
        return withConsumer(cli, options, async (consumer) => {
          const asking = runControl(consumer, 'role.explain', args)
          const result = await whileWaiting(terminal, 'asking role.explain', asking)
          checkOutcome('role.explain', result)
          const { value } = result
          const verdict: Record = value.type === BasicType.REC ? value.value : []
          const isAllowed = fieldOf(verdict, 'allowed')?.value === true
          const said = `${isAllowed ? 'allowed' : 'denied'}: ${textOf(verdict, 'because')}`
          await terminal.print(options.json ? JSON.stringify(valueToJson(value)) : said)
          if (!isAllowed) throw new Failure(ExitCode.FAILED, '')
        })
      },
    )
}

function command(text: string): string {
  const found = COMMANDS.find((one) => one === text.toUpperCase())
  if (found) return found
  throw new InvalidArgumentError(`Allowed are ${COMMANDS.join(', ')}.`)
}
