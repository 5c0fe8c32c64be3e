/** The server's configuration, loaded only where a command needs it: its schema takes longer than most commands. */
import type { Config } from '../server/start/config.ts'
import type { Sections } from './effective.ts'
import { ExitCode, Failure } from './failure.ts'

/** Throws Failure with every problem. */
export async function readConfiguration(file: string | undefined, env: NodeJS.ProcessEnv): Promise<Config> {
  const { loadConfig } = await import('../server/start/config.ts')
  return orFailure(() => loadConfig({ file, env }))
}

/** The same as the file would say it. Throws Failure with every problem. */
export async function readSections(file: string | undefined, env: NodeJS.ProcessEnv): Promise<Sections> {
  const { effectiveSections } = await import('./effective.ts')
  return orFailure(() => effectiveSections({ file, env }))
}

function orFailure<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    // By its code: importing the class would load the schema.
    if (error instanceof Error && 'code' in error && error.code === 'BAD_CONFIG') {
      throw new Failure(ExitCode.USAGE, error.message, { cause: error })
    }
    throw error
  }
}
