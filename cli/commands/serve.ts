/** `cinnabar serve`, `cinnabar config check` and `cinnabar config reload`: the server and its configuration. */
import type { Command } from 'commander'
import { readSections, type Sections } from '../configuration.ts'
import { callControl } from '../control.ts'
import { Failure } from '../failure.ts'
import type { LoginOptions } from '../login.ts'
import { type Cli, withLoginOptions } from '../session.ts'

export function addServe(program: Command): void {
  program
    .command('serve')
    .description('run the server until SIGINT or SIGTERM; SIGHUP reloads the configuration')
    .option('--config <file>', 'TOML file (CINNABAR_CONFIG); every key has a default')
    .option('--restored', 'the whole machine was set back to an earlier state: consumers are informed')
    .action(async (options: { config?: string; restored?: boolean }) => {
      // While it loads it cannot reload its configuration, and is not to die of being asked to.
      process.on('SIGHUP', () => {})
      // The server is imported only here, so that the other commands start fast.
      const { serve } = await import('#server/main')
      const exitCode = await serve(options)
      if (exitCode !== 0) throw new Failure(exitCode, '')
    })
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
      await terminal.print(json ? JSON.stringify(sections) : toToml(sections))
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
