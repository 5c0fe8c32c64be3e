/** `cinnabar serve` and `cinnabar config check`: the server and its configuration. */
import type { Command } from 'commander'
import { readSections, type Sections } from '../configuration.ts'
import { Failure } from '../failure.ts'
import type { Cli } from '../session.ts'

export function addServe(program: Command): void {
  program
    .command('serve')
    .description('run the server until SIGINT or SIGTERM')
    .option('--config <file>', 'TOML file (CINNABAR_CONFIG); every key has a default')
    .option('--restored', 'the whole machine was set back to an earlier state: consumers are informed')
    .action(async (options: { config?: string; restored?: boolean }) => {
      // The server is imported only here, so that the other commands start fast.
      const { serve } = await import('../../server/start/main.ts')
      const exitCode = await serve(options)
      if (exitCode !== 0) throw new Failure(exitCode, '')
    })
}

export function addConfig(program: Command, { terminal }: Cli): void {
  program
    .command('config')
    .description("inspect the server's configuration")
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
