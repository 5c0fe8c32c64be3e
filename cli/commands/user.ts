/** `cinnabar user`: who may log in. A password is asked for or read from a file, never taken from the command line. */
import { type Command, Option } from 'commander'
import { type Arguments, type Consumer, parseIdentity } from '../../client/index.ts'
import { checkOutcome, runControl } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { type LoginOptions, readSecret } from '../login.ts'
import { jsonOf, toTable } from '../output/measured.ts'
import { whileWaiting } from '../progress.ts'
import { recordsOf } from '../records.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import type { Terminal } from '../terminal.ts'

interface PasswordOptions extends LoginOptions {
  readonly passwordFile?: string
}

const ROLES = ['admin', 'operator', 'consumer'] as const
const NAME = 'user, or tenant/user'
const PASSWORD_FILE = 'read the new password from the first line of a file instead of asking'

export function addUser(program: Command, cli: Cli): void {
  const { terminal } = cli
  const user = program.command('user').description('who may log in')

  withLoginOptions(user.command('add'))
    .description('add a user')
    .argument('<name>', NAME)
    .addOption(new Option('--role <role>', 'what the user may do; consumer unless given').choices(ROLES))
    .option('--password-file <file>', PASSWORD_FILE)
    .action((name: string, options: PasswordOptions & { role?: string }) =>
      withNewPassword(cli, name, options, (consumer, args) =>
        tell(consumer, 'user.add', options.role ? { ...args, role: options.role } : args),
      ),
    )

  withLoginOptions(user.command('passwd'))
    .description('give a user another password')
    .argument('<name>', NAME)
    .option('--password-file <file>', PASSWORD_FILE)
    .action((name: string, options: PasswordOptions) =>
      withNewPassword(cli, name, options, (consumer, args) => tell(consumer, 'user.passwd', args)),
    )

  withLoginOptions(user.command('remove'))
    .description('remove a user with all channels')
    .argument('<name>', NAME)
    .action(async (name: string, options: LoginOptions) => {
      const who = whoIs(name)
      await withConsumer(cli, options, (consumer) => tell(consumer, 'user.remove', who))
    })

  withLoginOptions(user.command('list'))
    .description('list the users')
    .option('--json', 'one JSON object per line')
    .action((options: LoginOptions & { json?: boolean }) =>
      withConsumer(cli, options, async (consumer) => {
        const result = await whileWaiting(terminal, 'reading the users', runControl(consumer, 'user.list', {}))
        checkOutcome('user.list', result)
        const { records = [] } = recordsOf(result.value) ?? {}
        if (!options.json) await terminal.print(toTable(records, { colors: terminal.colors }))
        else if (records.length > 0) await terminal.print(records.map(jsonOf).join('\n'))
      }),
    )

  async function tell(consumer: Consumer, control: string, args: Arguments): Promise<void> {
    const result = await whileWaiting(terminal, `${control} is running`, runControl(consumer, control, args))
    checkOutcome(control, result)
    terminal.note(result.detail)
  }
}

function withNewPassword(
  cli: Cli,
  name: string,
  options: PasswordOptions,
  work: (consumer: Consumer, args: Arguments) => Promise<void>,
): Promise<void> {
  const who = whoIs(name)
  return withConsumer(cli, options, async (consumer) => {
    if (!consumer.isConfidential) {
      const advice = 'call this on the machine that the server runs on, or over wss://'
      throw new Failure(ExitCode.FAILED, `the new password would travel where others can read it: ${advice}`)
    }
    const password = await newPassword(cli.terminal, name, options.passwordFile)
    await work(consumer, { ...who, password })
  })
}

/** Throws Failure. */
function whoIs(identity: string): Arguments {
  try {
    const { tenant, name } = parseIdentity(identity)
    return identity.includes('/') ? { user: name, tenant } : { user: name }
  } catch (error) {
    throw new Failure(ExitCode.USAGE, (error as Error).message, { cause: error })
  }
}

async function newPassword(terminal: Terminal, name: string, file: string | undefined): Promise<string> {
  if (file !== undefined) return readSecret(file)
  const first = await terminal.askSecret(`New password of ${name}: `)
  if (first !== (await terminal.askSecret('Once more: '))) {
    throw new Failure(ExitCode.FAILED, 'these were two different passwords: nothing was changed')
  }
  return first
}
