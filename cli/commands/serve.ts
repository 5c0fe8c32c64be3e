/** `cinnabar serve`, `cinnabar config check` and `cinnabar config reload`: the server and its configuration. */
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { type Address, formatAddress, parseAddress } from '../../server/kernel/core/address.ts'
import type { Config } from '../../server/start/config.ts'
import { wholeNumber } from '../arguments.ts'
import { DEFAULT_TCP, readConfiguration, readSections, type Sections } from '../configuration.ts'
import { callControl } from '../control.ts'
import { Failure } from '../failure.ts'
import { jsonText } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { type Cli, withLoginOptions } from '../session.ts'

const AFTER_SERVE = `
The options are keys of the configuration, and take precedence over the file and the environment. Without --data and
\`data_dir\` the data is in \`data\` beside the configuration file, or without a file in the directory where the server is started.`

interface ServeOptions {
  readonly config?: string
  readonly data?: string
  readonly listen?: string
  readonly port?: number
  readonly restored?: boolean
}

export function addServe(program: Command, { terminal }: Cli): void {
  program
    .command('serve')
    .description('run the server until SIGINT or SIGTERM; SIGHUP reloads the configuration')
    .option('--config <file>', 'TOML file (CINNABAR_CONFIG); every key has a default')
    .option('--data <directory>', 'where everything durable is (`producer.data_dir`)', directory)
    .option('--listen <host>', 'address to listen on (`listen.tcp`, `listen.http`)', host)
    .option('--port <n>', 'port of `listen.tcp`; `listen.http` has the next one', port)
    .option('--restored', 'the whole machine was set back to an earlier state: consumers are informed')
    .addHelpText('after', AFTER_SERVE)
    .action(async ({ config, restored, ...options }: ServeOptions) => {
      // While it loads it cannot reload its configuration, and is not to die of being asked to.
      process.on('SIGHUP', () => {})
      const overrides = await overridesOf(options, () => readConfiguration(config, terminal.env))
      // The server is imported only here, so that the other commands start fast.
      const { serve } = await import('#server/main')
      const exitCode = await serve({ config, overrides, program: terminal.program, restored })
      if (exitCode !== 0) throw new Failure(exitCode, '')
    })
}

/** The next port is for HTTP. */
const MAX_PORT = 65_534
const port = wholeNumber(0, MAX_PORT, `a port from 0 (any free one) to ${MAX_PORT}`)

/** An empty one is a variable of a script that is not set, not the current directory. */
function directory(text: string): string {
  if (text !== '') return text
  throw new InvalidArgumentError('Expected a path, not empty: `.` is the current directory.')
}

function host(text: string): string {
  const isBare = text.includes(':') && !text.startsWith('[')
  const address = parseAddress(isBare ? `[${text}]:0` : `${text}:0`)
  if (address !== undefined) return address.host
  throw new InvalidArgumentError('Expected a host without a port, such as 0.0.0.0, ::1 or a name: see --port.')
}

/** The same as variables. What is not given stays as it is in the configuration, and HTTP stays off if it is off there. */
async function overridesOf(
  { data, listen, port }: Pick<ServeOptions, 'data' | 'listen' | 'port'>,
  configuration: () => Promise<Config>,
): Promise<Record<string, string>> {
  const overrides: Record<string, string> = data === undefined ? {} : { CINNABAR_PRODUCER_DATA_DIR: resolve(data) }
  if (listen === undefined && port === undefined) return overrides
  // Where `listen.tcp` is switched off, its default counts.
  const { tcp = parseAddress(DEFAULT_TCP)!, http } = (await configuration()).listen
  const address = (now: Address, offset: number): string =>
    formatAddress({ host: listen ?? now.host, port: port === undefined ? now.port : port && port + offset })
  overrides['CINNABAR_LISTEN_TCP'] = address(tcp, 0)
  if (http !== undefined) overrides['CINNABAR_LISTEN_HTTP'] = address(http, 1)
  return overrides
}

const AFTER_RELOAD = `
The server reads the file again that it was started with. A file with any problem changes nothing. Which keys need a restart,
docs/configuration.md says; the answer names those that differ.`

export function addConfig(program: Command, cli: Cli): void {
  const { terminal } = cli
  const config = program.command('config').description("inspect and reload the server's configuration")
  withLoginOptions(config.command('reload'))
    .description('let a running server read its configuration again (admins only)')
    .addHelpText('after', AFTER_RELOAD)
    .action((options: LoginOptions) => callControl(cli, options, 'config.reload', {}))
  config
    .command('check')
    .description('print the effective configuration, or everything that is wrong with it (exit code 2)')
    .option('--config <file>', 'TOML file (CINNABAR_CONFIG)')
    .option('--json', 'print one JSON object')
    .action(async ({ config: file, json = false }: { config?: string; json?: boolean }) => {
      const sections = await readSections(file, terminal.env)
      await terminal.print(json ? jsonText(sections) : toToml(sections))
    })
}

/** JSON's strings, numbers, booleans and lists are valid TOML. */
function toToml(sections: Sections): string {
  const tables = Object.entries(sections).map(([section, values]) => {
    const lines = Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    return [`[${section}]`, ...lines].join('\n')
  })
  return `# OK\n\n${tables.join('\n\n')}`
}
