/** `cinnabar user`: who may log in. A password is asked for or read from a file, never taken from the command line. */
import type { Command } from 'commander'
import type { Arguments, Consumer } from '../../client/index.ts'
import { listByControl, tellControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { IDENTITY, whoIs } from '../identity.ts'
import type { LoginOptions } from '../login.ts'
import { JSON_OPTION, printList } from '../output/listing.ts'
import { readSecret } from '../secret-file.ts'
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

const PASSWORD_FILE = 'read the new password from the first line of a file, with - of the input, instead of asking'

export function addUser(program: Command, cli: Cli): void {
  const { terminal } = cli
  const user = program.command('user').description('who may log in')
  const tell = (consumer: Consumer, control: string, args: Arguments) =>
    tellControl(terminal, consumer, control, args).then(() => {})

  withLoginOptions(user.command('add'))
    .description('add a user')
    .argument('<name>', IDENTITY)
    .option('--role <role>', 'admin, operator, consumer or a role of your own; consumer unless given')
    .option('--password-file <file>', PASSWORD_FILE)
    .option('--no-password', 'no password: only tokens and certificates')
    .action((name: string, { role, ...options }: AddOptions) => {
      const who = { ...whoIs(name), ...(role ? { role } : {}) }
      if (options.password) {
        return withNewPassword(cli, name, options, (consumer, password) =>
          tell(consumer, 'user.add', { ...who, password }),
        )
      }
      if (options.passwordFile) throw new Failure(ExitCode.USAGE, 'either --password-file or --no-password')
      return withConsumer(cli, options, (consumer) => tell(consumer, 'user.add', who))
    })

  withLoginOptions(user.command('passwd'))
    .description('give a user another password')
    .argument('<name>', IDENTITY)
    .option('--password-file <file>', PASSWORD_FILE)
    .action((name: string, options: PasswordOptions) => {
      const who = whoIs(name)
      return withNewPassword(cli, name, options, (consumer, password) =>
        tell(consumer, 'user.passwd', { ...who, password }),
      )
    })

  withLoginOptions(user.command('role'))
    .description('give a user another role')
    .argument('<name>', IDENTITY)
    .argument('<role>', 'admin, operator, consumer, or a role of your own: see `cinnabar role list`')
    .action((name: string, role: string, options: LoginOptions) => {
      const who = whoIs(name)
      return withConsumer(cli, options, (consumer) => tell(consumer, 'user.role', { ...who, role }))
    })

  withLoginOptions(user.command('remove'))
    .description('remove a user with all channels and tokens')
    .argument('<name>', IDENTITY)
    .action((name: string, options: LoginOptions) => {
      const who = whoIs(name)
      return withConsumer(cli, options, (consumer) => tell(consumer, 'user.remove', who))
    })

  withLoginOptions(user.command('list'))
    .description('list the users')
    .option(...JSON_OPTION)
    .action((options: LoginOptions & { json?: boolean }) =>
      withConsumer(cli, options, async (consumer) => {
        const users = await listByControl(terminal, consumer, 'user.list')
        await printList(terminal, users, options.json, { none: 'there are no users' })
      }),
    )
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
  if (first !== (await terminal.askSecret('Once more: '))) {
    throw new Failure(ExitCode.FAILED, 'these were two different passwords: nothing was changed')
  }
  return first
}
