/** All commands, and how errors become messages and exit codes. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { ConnectionError, StatusError } from '../client/index.ts'
import { addAudit } from './commands/audit.ts'
import { addChannels } from './commands/channels.ts'
import { addCompletion } from './commands/completion.ts'
import { addConfig } from './commands/config.ts'
import { addDemo } from './commands/demo.ts'
import { addExec } from './commands/exec.ts'
import { addExplain } from './commands/explain.ts'
import { addFeed } from './commands/feed.ts'
import { addGet } from './commands/get.ts'
import { addMetrics } from './commands/metrics.ts'
import { addRole } from './commands/role.ts'
import { addSensor } from './commands/sensor.ts'
import { addServe } from './commands/serve.ts'
import { addTail } from './commands/tail.ts'
import { addTenant } from './commands/tenant.ts'
import { addToken } from './commands/token.ts'
import { addTop } from './commands/top.ts'
import { addUser } from './commands/user.ts'
import { addWatch } from './commands/watch.ts'
import { ExitCode, Failure } from './failure.ts'
import { printable } from './output/text.ts'
import type { Cli } from './session.ts'
import type { Terminal } from './terminal.ts'

const AFTER_HELP = `
Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 whether a control ran cannot be known.

Without --user, commands log in as the user \`local\` with the secret that the server has written into its data
directory: in the directory where \`npm start\` runs, nothing needs to be said.`

/** What is said to people in its own words. RangeError: an argument too long for the producer. */
const EXPECTED = [Failure, StatusError, ConnectionError, RangeError] as const

/** Runs one command line; gives the exit code. `argv` begins with the command. */
export async function run(argv: readonly string[], cli: Cli): Promise<number> {
  try {
    await createProgram(cli).parseAsync([...argv], { from: 'user' })
    return 0
  } catch (error) {
    return report(error, cli.terminal)
  }
}

/** Everything that can be typed. */
export function createProgram(cli: Cli): Command {
  const { terminal } = cli
  const program = new Command('cinnabar')
    .description('A monitoring server, and the commands to look into it')
    .version(version(), '-V, --version')
    .addHelpText('after', AFTER_HELP)
    .showHelpAfterError('(--help tells more)')
    .exitOverride()
    // What stands behind a command is the command's, also where commands around it have an option of that name.
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
    addConfig,
    addDemo,
    addCompletion,
  ]
  for (const add of commands) add(program, cli)
  return program
}

function report(error: unknown, terminal: Terminal): number {
  // Commander has already said it.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : ExitCode.USAGE
  // Whoever read our output has seen enough.
  if (error instanceof Error && 'code' in error && error.code === 'EPIPE') return 0
  const isExpected = EXPECTED.some((type) => error instanceof type)
  const message = isExpected ? (error as Error).message : `this should not happen: ${(error as Error).stack ?? error}`
  // Line by line: a producer's own words stand in it.
  if (message) terminal.note(`cinnabar: ${message.split('\n').map(printable).join('\n')}`)
  return error instanceof Failure ? error.exitCode : ExitCode.FAILED
}

/** From the package, which stands one directory above both cli/ and dist/. */
function version(): string {
  for (const path of ['../package.json', '../../package.json']) {
    try {
      const { version } = JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { version: string }
      return version
    } catch {}
  }
  return 'unknown'
}
