/** Defines all commands, and turns errors into messages and exit codes. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError, Help } from 'commander'
import { ConnectionError, StatusError } from '../client/index.ts'
import { countOpenFiles } from '../server/kernel/core/open-files.ts'
import { asCalled, lineAsCalled } from './called-as.ts'
import { addAlerts } from './commands/alerts.ts'
import { addApprovals } from './commands/approvals.ts'
import { addAudit } from './commands/audit.ts'
import { addBackup, addRestore } from './commands/backup.ts'
import { addChannels } from './commands/channels.ts'
import { addCluster } from './commands/cluster.ts'
import { addCompletion } from './commands/completion.ts'
import { addControls } from './commands/controls.ts'
import { addDemo } from './commands/demo.ts'
import { addExec } from './commands/exec.ts'
import { addFeed } from './commands/feed.ts'
import { addGet } from './commands/get.ts'
import { addHistory } from './commands/history.ts'
import { addMcp } from './commands/mcp.ts'
import { addMetrics } from './commands/metrics.ts'
import { addNotify } from './commands/notify.ts'
import { addPublish } from './commands/publish.ts'
import { addQuery } from './commands/query.ts'
import { addExplain, addRole } from './commands/role.ts'
import { addRules } from './commands/rules.ts'
import { addSensor } from './commands/sensor.ts'
import { addConfig, addServe } from './commands/serve.ts'
import { addConnections, addStatus } from './commands/status.ts'
import { addTail, addWatch } from './commands/tail.ts'
import { addTenant } from './commands/tenant.ts'
import { addToken } from './commands/token.ts'
import { addTop } from './commands/top.ts'
import { addUpstreams } from './commands/upstreams.ts'
import { addUser } from './commands/user.ts'
import { EXAMPLES } from './examples.ts'
import { ExitCode, errorCode, Failure } from './failure.ts'
import { jsonText, printable } from './format.ts'
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
    return report(error, cli.terminal, isJson(argv))
  }
}

/** The program with all its commands. */
export function createProgram(cli: Cli): Command {
  const { terminal } = cli
  const program = new Command('cinnabar')
    .description('A monitoring server and its command line')
    .version(version(), '-V, --version')
    .addHelpText('after', AFTER_HELP)
    .exitOverride()
    // Options after a command belong to that command, even if its parent commands have an option of the same name.
    .enablePositionalOptions()
    .configureOutput({
      writeOut: (text) => void terminal.print(asCalled(text.trimEnd(), terminal.program)).catch(() => {}),
      writeErr: (text) => terminal.note(asCalled(text.trimEnd(), terminal.program)),
      // What is wrong is reported with the other errors.
      outputError: () => {},
    })
    .configureHelp({
      /** The options of the connection, which many commands share, come after their own. */
      visibleOptions(command) {
        const options = Help.prototype.visibleOptions.call(this, command)
        return [...options.filter((one) => !one.helpGroupHeading), ...options.filter((one) => one.helpGroupHeading)]
      },
      groupItems: (_, visible, groupOf) => Help.prototype.groupItems(visible, visible, groupOf),
    })
  const commands = [
    addServe,
    addStatus,
    addConnections,
    addMetrics,
    addGet,
    addQuery,
    addRules,
    addAlerts,
    addNotify,
    addTop,
    addWatch,
    addTail,
    addHistory,
    addChannels,
    addControls,
    addExec,
    addApprovals,
    addFeed,
    addPublish,
    addSensor,
    addUpstreams,
    addCluster,
    addUser,
    addTenant,
    addRole,
    addToken,
    addExplain,
    addAudit,
    addBackup,
    addRestore,
    addConfig,
    addMcp,
    addDemo,
    addCompletion,
  ]
  for (const add of commands) add(program, cli)
  addExamples(program, terminal)
  return program
}

function addExamples(command: Command, terminal: Terminal, route = ''): void {
  const examples = EXAMPLES[route]?.map((line) => `  ${lineAsCalled(line, terminal.program)}`)
  if (examples) command.addHelpText('after', ['', 'Examples:', ...examples].join('\n'))
  for (const one of command.commands) addExamples(one, terminal, route === '' ? one.name() : `${route} ${one.name()}`)
}

/** Whether the result is to be JSON: then an error is, too. */
function isJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return (end < 0 ? argv : argv.slice(0, end)).includes('--json')
}

function report(error: unknown, { note, program }: Terminal, json: boolean): number {
  // Help that was asked for is no error, and help that was not was printed already.
  if (error instanceof CommanderError && (error.exitCode === 0 || error.code === 'commander.help')) {
    return error.exitCode === 0 ? 0 : ExitCode.USAGE
  }
  // The reader of the output has closed the pipe.
  if (errorCode(error) === 'EPIPE') return 0
  const message = asCalled(messageOf(error), program)
  const exitCode =
    error instanceof Failure ? error.exitCode : error instanceof CommanderError ? ExitCode.USAGE : ExitCode.FAILED
  if (message === '') return exitCode
  if (json) {
    const refusal = error instanceof Failure ? error.cause : error
    const status = refusal instanceof StatusError ? { status: refusal.status } : {}
    note(jsonText({ error: message, ...status, exit_code: exitCode }))
  } else {
    // The lines are escaped one by one, because the message may contain text from the producer.
    note(`cinnabar: ${message.split('\n').map(printable).join('\n')}`)
  }
  return exitCode
}

function messageOf(error: unknown): string {
  if (error instanceof CommanderError) return usageMessage(error)
  const code = String(errorCode(error))
  if (TOO_MANY_FILES.includes(code) || (NOT_FOUND.includes(code) && isFewFiles())) return FEW_FILES
  const isExpected = EXPECTED.some((type) => error instanceof type)
  return isExpected ? (error as Error).message : `unexpected error: ${(error as Error).stack ?? error}`
}

const TOO_MANY_FILES = ['EMFILE', 'ENFILE']
/** Node says so, too, of a module that it could not open. */
const NOT_FOUND = ['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND']
const NEEDED_FILES = 256

function isFewFiles(): boolean {
  return (countOpenFiles().max ?? NEEDED_FILES) < NEEDED_FILES
}

const FEW_FILES =
  'too few files may be open: raise `ulimit -n` (`LimitNOFILE` under systemd). The server needs ' +
  `${NEEDED_FILES} to start, and one more for each connection`

/** Commander's message in our words. */
function usageMessage({ message }: CommanderError): string {
  const text = message
    .replace(/^error: /, '')
    .replace(/^command-argument value ('.*') is invalid for argument '(.*?)'\. /s, '$1 is no $2. ')
    .replace(/^option '(-.*?)' argument ('.*') is invalid\. /s, '$2 cannot be the value of $1. ')
  return `${text}\nThe option --help shows what this command takes`
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
