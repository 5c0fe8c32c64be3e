/**
 * Processes and worker threads of tests run what is compiled, as users do: a server is up in a third of the time that its
 * sources take. So `dist/` has to be there and newer than the sources.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = new URL('../..', import.meta.url).pathname
/** The build writes this last, whether it has changed or not. */
export const BUILT_LAST = 'dist/web/client.js'
/** What the worker threads of the store, of the password hasher and of the doors are made from. */
const WORKERS = ['auth', 'storage', 'protocol', 'server/kit', 'server/wings/otlp', 'server/wings/prometheus']
/** What is compiled file by file. */
export const COMPILED = ['auth', 'client', 'promql', 'protocol', 'server', 'storage']
/** What the program `cinnabar` is made from. */
export const SOURCES = ['auth', 'cli', 'client', 'promql', 'protocol', 'server', 'storage']

/** Throws with what to do if something in these folders is newer than what was compiled. */
export function expectBuilt(folders: readonly string[]): void {
  const newer = newerThan(builtMs(), folders)
  if (newer !== undefined) throw new Error(`${newer} is newer than dist/: run npm run build`)
}

/** When the build was made. */
export function builtMs(): number {
  const built = statSync(join(ROOT, BUILT_LAST), { throwIfNoEntry: false })?.mtimeMs
  if (built === undefined) throw new Error('dist/ is missing: run npm run build')
  return built
}

/** A source in these folders that was changed after this time. */
export function newerThan(ms: number, folders: readonly string[]): string | undefined {
  return folders.flatMap(sourcesIn).find((path) => statSync(join(ROOT, path)).mtimeMs > ms)
}

function sourcesIn(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true }).map(String)
  return names.filter((name) => name.endsWith('.ts')).map((name) => join(folder, name))
}

/** Called by vitest before all tests. */
export function setup(): void {
  expectBuilt(WORKERS)
}
