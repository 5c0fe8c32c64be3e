/** `cinnabar user`: who may log in. A password is prompted for or read from a file, never taken from the command line. */
import type { Command } from 'commander'
import { type Consumer, parseIdentity } from '../../client/index.ts'
import { USER_HELP, userArguments } from '../arguments.ts'
import { findChannels } from '../channel-query.ts'
import { confirm, counted, YES_OPTION, type YesOption } from '../confirm.ts'
import { callControl, printControlList, runAndReport } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { toLedger } from '../ledger.ts'
import { type LoginOptions, readSecret } from '../login.ts'
import { JSON_OPTION, type JsonOptions } from '../output.ts'
import { type Cli, checkConfidential, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'

interface PasswordOptions extends LoginOptions {
  readonly passwordFile?: string
}

interface AddOptions extends PasswordOptions {
  readonly role?: string
  /** False with --no-password. */
  readonly password: boolean
}

const PASSWORD_FILE = 'read the new password from the first line of a file (- for standard input) instead of a prompt'

export function addUser(program: Command, cli: Cli): void {
  const { terminal } = cli
  const user = program.command('user').description('manage who may log in')

  withLoginOptions(user.command('add'))
    .description('add a user')
    .argument('<name>', USER_HELP)
    .option('--role <role>', 'admin, operator, consumer or a role of your own (default: consumer)')
    .option('--password-file <file>', PASSWORD_FILE)
    .option('--no-password', 'set no password: the user logs in with tokens and certificates only')
    .action((name: string, { role, ...options }: AddOptions) => {
      const args = { ...userArguments(name), ...(role ? { role } : {}) }
      if (options.password) {
        return withNewPassword(cli, name, options, (consumer, password) =>
          runAndReport(terminal, consumer, 'user.add', { ...args, password }),
        )
      }
      if (options.passwordFile) throw new Failure(ExitCode.USAGE, 'give either --password-file or --no-password')
      return callControl(cli, options, 'user.add', args)
    })

  withLoginOptions(user.command('passwd'))
    .description('change the password of a user')
    .argument('<user>', USER_HELP)
    .option('--password-file <file>', PASSWORD_FILE)
    .action((name: string, options: PasswordOptions) => {
      const args = userArguments(name)
      return withNewPassword(cli, name, options, (consumer, password) =>
        runAndReport(terminal, consumer, 'user.passwd', { ...args, password }),
      )
    })

  withLoginOptions(user.command('role'))
    .description('change the role of a user')
    .argument('<user>', USER_HELP)
    .argument('<role>', 'admin, operator, consumer or a role of your own: see `cinnabar role list`')
    .action((name: string, role: string, options: LoginOptions) =>
      callControl(cli, options, 'user.role', { ...userArguments(name), role }),
    )

  withLoginOptions(user.command('remove'))
    .description('remove a user with all channels and tokens')
    .argument('<user>', USER_HELP)
    .option(...YES_OPTION)
    .action((name: string, options: LoginOptions & YesOption) => {
      const args = userArguments(name)
      return withConsumer(cli, options, async (consumer) => {
        if (!options.yes) await confirm(terminal, options, [await whatGoes(consumer, name)], 'Remove this user?')
        await runAndReport(terminal, consumer, 'user.remove', args)
      })
    })

  withLoginOptions(user.command('list'))
    .description('list the users')
    .option(...JSON_OPTION)
    .action((options: JsonOptions) => printControlList(cli, options, 'user.list', { none: 'there are no users' }))
}

/** As `producer.channels` has it: without the tenant `default`. */
function shown({ tenant, name }: ReturnType<typeof parseIdentity>): string {
  return tenant === 'default' ? name : `${tenant}/${name}`
}

/** Only an admin sees the channels of others. */
async function whatGoes(consumer: Consumer, name: string): Promise<string> {
  const identity = shown(parseIdentity(name))
  const { records } = await findChannels(consumer, undefined)
  const theirs = records.map(toLedger).filter((ledger) => ledger.identity === identity)
  const values = theirs.reduce((sum, { inFlight, queued }) => sum + inFlight + queued, 0)
  const channels = theirs.length === 0 ? 'no channel that you can see' : counted(theirs.length, 'channel')
  return `user ${identity} with ${channels}, ${counted(values, 'value')} not committed, and all tokens`
}

function withNewPassword(
  cli: Cli,
  name: string,
  options: PasswordOptions,
  work: (consumer: Consumer, password: string) => Promise<void>,
): Promise<void> {
  return withConsumer(cli, options, async (consumer) => {
    checkConfidential(consumer, 'the new password')
    await work(consumer, await newPassword(cli.terminal, name, options.passwordFile))
  })
}

async function newPassword(terminal: Terminal, name: string, file: string | undefined): Promise<string> {
  if (file !== undefined) return readSecret(file, terminal)
  const first = await terminal.askSecret(`New password of ${name}: `)
  if (first !== (await terminal.askSecret('Repeat the new password: '))) {
    throw new Failure(ExitCode.FAILED, 'the two passwords differ: nothing was changed')
  }
  return first
}
