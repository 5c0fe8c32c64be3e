/** `cinnabar config check`: what the server would run with, or what is wrong; nothing is started. */
import type { Command } from 'commander'
import { readSections } from '../configuration.ts'
import type { Sections } from '../effective.ts'
import type { Cli } from '../session.ts'

export function addConfig(program: Command, { terminal }: Cli): void {
  program
    .command('config')
    .description("the server's configuration")
    .command('check')
    .description('print the effective configuration, or all that is wrong with it (exit code 2)')
    .option('--config <file>', 'TOML file (CINNABAR_CONFIG)')
    .option('--json', 'as one JSON object')
    .action(async ({ config: file, json = false }: { config?: string; json?: boolean }) => {
      const sections = await readSections(file, terminal.env)
      await terminal.print(json ? JSON.stringify(sections) : toToml(sections))
    })
}

/** JSON's strings, numbers, truth values and lists are TOML as well. */
function toToml(sections: Sections): string {
  const tables = Object.entries(sections).map(([section, values]) => {
    const lines = Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    return [`[${section}]`, ...lines].join('\n')
  })
  return `# OK\n\n${tables.join('\n\n')}`
}
