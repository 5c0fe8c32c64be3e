/** `cinnabar role`: what the users of a role may do, rule by rule. The best match counts; where two are as good, deny wins. */
import { Argument, type Command, InvalidArgumentError } from 'commander'
import { parseAssignments } from '../assignments.ts'
import { listByControl, tellControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, printList } from '../output/listing.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'

const COMMANDS = ['COLLECT', 'EXECUTE', 'DEF_CHANNEL'] as const
const ANY = '*'
const ROLE = 'operator, or one of your own; a new name makes a new role'

export function addRole(program: Command, cli: Cli): void {
  const { terminal } = cli
  const role = program.command('role').description('what the users of a role may do, rule by rule')
  const tell = (options: LoginOptions, control: string, args: Readonly<Record<string, string | number>>) =>
    withConsumer(cli, options, async (consumer) => {
      await tellControl(terminal, consumer, control, args)
    })

  for (const [effect, description] of [
    ['allow', 'allow the users of a role something'],
    ['deny', 'forbid the users of a role something'],
  ] as const) {
    withLoginOptions(role.command(effect))
      .description(description)
      .argument('<role>', ROLE)
      .addArgument(
        new Argument('<command>', 'COLLECT (reading), EXECUTE, DEF_CHANNEL (dialling), or * for all')
          .choices(COMMANDS)
          .argParser(ruled),
      )
      .argument('<object>', "a metric, control or destination; * stands for anything: 'exec.*'")
      .argument('[name=pattern...]', "only where these arguments match: unit='web*'")
      .action((role: string, command: string, object: string, words: string[], options: LoginOptions) => {
        const where = whereOf(words)
        return tell(options, `role.${effect}`, { role, command, object, ...(where ? { where } : {}) })
      })
  }

  withLoginOptions(role.command('forget'))
    .description('take a rule back')
    .argument('<rule>', 'its number, as `cinnabar role list` shows it', ruleNumber)
    .action((rule: number, options: LoginOptions) => tell(options, 'role.forget', { rule }))

  withLoginOptions(role.command('remove'))
    .description('remove a role that no user has, with all its rules')
    .argument('<role>', 'its name')
    .action((role: string, options: LoginOptions) => tell(options, 'role.remove', { role }))

  withLoginOptions(role.command('list'))
    .description('list the rules of all roles')
    .option(...JSON_OPTION)
    .action((options: LoginOptions & { json?: boolean }) =>
      withConsumer(cli, options, async (consumer) => {
        const rules = await listByControl(terminal, consumer, 'role.list')
        await printList(terminal, rules, options.json, { none: 'there are no rules: every role has its defaults' })
      }),
    )
}

/** As the controls take it; empty without words. Throws Failure. */
export function whereOf(words: readonly string[]): string {
  const where = [...parseAssignments(words)].map(([name, pattern]) => `${name}=${pattern}`)
  const apart = where.find((one) => /\s/.test(one))
  if (apart === undefined) return where.join(' ')
  throw new Failure(ExitCode.USAGE, `"${apart}" holds a blank, which stands between arguments: write * for it`)
}

function ruled(text: string): string {
  const command = [...COMMANDS, ANY].find((one) => one === text.toUpperCase())
  if (command) return command
  throw new InvalidArgumentError(`Allowed are ${COMMANDS.join(', ')} and ${ANY}.`)
}

function ruleNumber(text: string): number {
  if (/^[1-9]\d{0,9}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It has to be the number of a rule.')
}
