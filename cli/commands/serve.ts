/** `cinnabar serve`: the server itself. Loaded only here, so that the other commands start fast. */
import type { Command } from 'commander'
import { Failure } from '../failure.ts'

export function addServe(program: Command): void {
  program
    .command('serve')
    .description('run the server until SIGINT or SIGTERM')
    .option('--config <file>', 'TOML file (CINNABAR_CONFIG); every key has a default')
    .action(async (options: { config?: string }) => {
      const { serve } = await import('../../server/start/main.ts')
      const exitCode = await serve(options)
      if (exitCode !== 0) throw new Failure(exitCode, '')
    })
}
