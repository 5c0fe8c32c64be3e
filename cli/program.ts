/** Defines all commands, and turns errors into messages and exit codes. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { ConnectionError, StatusError } from '../client/index.ts'
import { addAudit } from './commands/audit.ts'
import { addBackup, addRestore } from './commands/backup.ts'
import { addChannels } from './commands/channels.ts'
import { addCompletion } from './commands/completion.ts'
import { addDemo } from './commands/demo.ts'
import { addExec } from './commands/exec.ts'
import { addFeed } from './commands/feed.ts'
import { addGet } from './commands/get.ts'
import { addMetrics } from './commands/metrics.ts'
import { addExplain, addRole } from './commands/role.ts'
import { addSensor } from './commands/sensor.ts'
import { addConfig, addServe } from './commands/serve.ts'
import { addTail, addWatch } from './commands/tail.ts'
import { addTenant } from './commands/tenant.ts'
import { addToken } from './commands/token.ts'
import { addTop } from './commands/top.ts'
import { addUser } from './commands/user.ts'
import { ExitCode, Failure } from './failure.ts'
import { printable } from './format.ts'
import type { Cli } from './session.ts'
import type { Terminal } from './terminal.ts'

const AFTER_HELP = `
Exit codes: 0 success, 1 failure, 2 wrong usage or configuration, 3 it is not known whether a control ran.

Without --user, commands log in as the user \`local\` with the secret that the server stores in its data directory. In the
directory where the server was started, no login options are needed.`

/** Errors whose message is shown to people as it is. A RangeError is an argument too long for the producer. */
const EXPECTED = [Failure, StatusError, ConnectionError, RangeError] as const

/** Runs one command line and resolves with the exit code. `argv` begins with the command. */
export async function run(argv: readonly string[], cli: Cli): Promise<number> {
  try {
    await createProgram(cli).parseAsync([...argv], { from: 'user' })
    return 0
  } catch (error) {
    return report(error, cli.terminal)
  }
}

/** The program with all its commands. */
export function createProgram(cli: Cli): Command {
  const { terminal } = cli
  const program = new Command('cinnabar')
    .description('A monitoring server and its command line')
    .version(version(), '-V, --version')
    .addHelpText('after', AFTER_HELP)
    .showHelpAfterError('(see --help)')
    .exitOverride()
    // Options after a command belong to that command, even if its parent commands have an option of the same name.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => void terminal.print(text.trimEnd()).catch(() => {}),
      writeErr: (text) => terminal.note(text.trimEnd()),
    })
  const commands = [
    addServe,
    addMetrics,
    addGet,
    addTop,
    addWatch,
    addTail,
    addChannels,
    addExec,
    addFeed,
    addSensor,
    addUser,
    addTenant,
    addRole,
    addToken,
    addExplain,
    addAudit,
    addBackup,
    addRestore,
    addConfig,
    addDemo,
    addCompletion,
  ]
  for (const add of commands) add(program, cli)
  return program
}

function report(error: unknown, terminal: Terminal): number {
  // Commander has already printed the message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : ExitCode.USAGE
  // The reader of the output has closed the pipe.
  if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return 0
  const isExpected = EXPECTED.some((type) => error instanceof type)
  const message = isExpected ? (error as Error).message : `unexpected error: ${(error as Error).stack ?? error}`
  // The lines are escaped one by one, because the message may contain text from the producer.
  if (message) terminal.note(`cinnabar: ${message.split('\n').map(printable).join('\n')}`)
  return error instanceof Failure ? error.exitCode : ExitCode.FAILED
}

/** Read from package.json, which is one directory above both cli/ and dist/. */
function version(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { version: string }
      return version
    } catch {}
  }
  return 'unknown'
}
