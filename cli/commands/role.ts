/**
 * `cinnabar role` and `cinnabar explain`: the rules of roles, and which of them applies to a call. The most specific
 * rule decides; of two equally specific rules, deny does.
 */
import { Argument, type Command, InvalidArgumentError } from 'commander'
import { type Arguments, valueToJson } from '../../client/index.ts'
import { parseAssignments, USER_HELP, userArguments, wholeNumber } from '../arguments.ts'
import { confirm, YES_OPTION, type YesOption } from '../confirm.ts'
import { callControl, checkOutcome, printControlList, runControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { jsonText } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, type JsonOptions } from '../output.ts'
import { fieldsOf, fieldText, findField } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'

interface AllowOptions extends LoginOptions {
  readonly approval?: string
}

const RULE_COMMANDS = ['COLLECT', 'EXECUTE', 'DEF_CHANNEL', 'PUBLISH', '*'] as const
/** The first five are all covered by rules about COLLECT. */
const EXPLAINED_COMMANDS = [
  'COLLECT',
  'QUERY',
  'SUBSCRIBE',
  'BUFFER',
  'GET',
  'EXECUTE',
  'DEF_CHANNEL',
  'PUBLISH',
] as const
const ROLE_HELP = 'operator or a role of your own; a new name creates the role'

export function addRole(program: Command, cli: Cli): void {
  const role = program.command('role').description('manage what the users of each role may do')
  const call = (options: LoginOptions, control: string, args: Arguments) => callControl(cli, options, control, args)

  for (const [effect, description] of [
    ['allow', 'allow something to the users of a role'],
    ['deny', 'deny something to the users of a role'],
  ] as const) {
    const adding = withLoginOptions(role.command(effect))
      .description(description)
      .argument('<role>', ROLE_HELP)
      .addArgument(
        new Argument(
          '<command>',
          'COLLECT (all reading), EXECUTE, DEF_CHANNEL (dialling), PUBLISH (values over HTTP), or * for all; an allowed * does not include PUBLISH',
        )
          .choices(RULE_COMMANDS.slice(0, -1))
          .argParser(oneOf(RULE_COMMANDS)),
      )
      .argument('<object>', "a metric, control or destination; * matches anything: 'exec.*'")
      .argument('[name=pattern...]', "limit the rule to calls with these arguments: unit='web*'")
    if (effect === 'allow')
      adding.option('--approval <role>', 'for EXECUTE: users of this role have to approve each call')
    adding.action((role: string, command: string, object: string, words: string[], options: AllowOptions) => {
      const { approval, ...login } = options
      const where = whereClause(words)
      const args = { role, command, object, ...(where ? { where } : {}), ...(approval ? { approval } : {}) }
      return call(login, `role.${effect}`, args)
    })
  }

  withLoginOptions(role.command('forget'))
    .description('delete a rule')
    .argument(
      '<rule>',
      'number as listed by `cinnabar role list`',
      wholeNumber(1, 9_999_999_999, 'the number of a rule'),
    )
    .action((rule: number, options: LoginOptions) => call(options, 'role.forget', { rule }))

  withLoginOptions(role.command('remove'))
    .description('remove a role that no user has, with all its rules')
    .argument('<role>', 'name of the role')
    .option(...YES_OPTION)
    .action(async (role: string, options: LoginOptions & YesOption) => {
      await confirm(cli.terminal, options, [`role ${role} with all its rules`], 'Remove this role?')
      await call(options, 'role.remove', { role })
    })

  withLoginOptions(role.command('list'))
    .description('list the rules of all roles')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) =>
      printControlList(cli, options, 'role.list', { none: 'there are no rules: every role has its defaults' }),
    )
}

export function addExplain(program: Command, cli: Cli): void {
  withLoginOptions(program.command('explain'))
    .description('show whether a user may do something, and which rule decides; exits with 1 if not allowed')
    .argument('<user>', USER_HELP)
    .addArgument(
      new Argument('<command>', 'COLLECT, EXECUTE, DEF_CHANNEL, PUBLISH, ...')
        .choices(EXPLAINED_COMMANDS)
        .argParser(oneOf(EXPLAINED_COMMANDS)),
    )
    .argument('<object>', 'the metric, control or destination')
    .argument('[name=value...]', 'arguments of the call')
    .option('--json', 'print one JSON object')
    .action((user: string, command: string, object: string, words: string[], options: JsonOptions) => {
      userArguments(user)
      const where = whereClause(words)
      return explain(cli, options, { user, command, object, ...(where ? { where } : {}) })
    })
}

/** Rejects with Failure unless the call is allowed. */
function explain(cli: Cli, options: JsonOptions, args: Arguments): Promise<void> {
  const { terminal } = cli
  return withConsumer(cli, options, async (consumer) => {
    const running = runControl(consumer, 'role.explain', args)
    const result = await withProgress(terminal, 'waiting for role.explain', running)
    checkOutcome('role.explain', result)
    const { value } = result
    const verdict = fieldsOf(value)
    const isAllowed = findField(verdict, 'allowed')?.value === true
    const text = `${isAllowed ? 'allowed' : 'denied'}: ${fieldText(verdict, 'because')}`
    await terminal.print(options.json ? jsonText(valueToJson(value)) : text)
    if (!isAllowed) throw new Failure(ExitCode.FAILED, '')
  })
}

/** The arguments in the form that the controls take; empty without words. Throws Failure. */
function whereClause(words: readonly string[]): string {
  const where = [...parseAssignments(words)].map(([name, pattern]) => `${name}=${pattern}`)
  const spaced = where.find((one) => /\s/.test(one))
  if (spaced === undefined) return where.join(' ')
  throw new Failure(ExitCode.USAGE, `"${spaced}" contains a space, which separates arguments: write * instead`)
}

function oneOf(commands: readonly string[]): (text: string) => string {
  return (text) => {
    const found = commands.find((command) => command === text.toUpperCase())
    if (found) return found
    throw new InvalidArgumentError(`Allowed are ${commands.slice(0, -1).join(', ')} and ${commands.at(-1)}.`)
  }
}
