/**
 * Processes and worker threads of tests run what is compiled, as users do: a server is up in a third of the time that its
 * sources take. So `dist/` has to be there and newer than the sources.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = new URL('../..', import.meta.url).pathname
/** The build writes this last, whether it has changed or not. */
const BUILT_LAST = 'dist/web/client.js'
/** What the worker threads of the store and of the password hasher are made from. */
const WORKERS = ['auth', 'storage']

/** Throws with what to do if something in these folders is newer than what was compiled. */
export function expectBuilt(folders: readonly string[]): void {
  const built = statSync(join(ROOT, BUILT_LAST), { throwIfNoEntry: false })?.mtimeMs
  if (built === undefined) throw new Error('dist/ is missing: run npm run build')
  for (const path of folders.flatMap(sourcesIn)) {
    if (statSync(join(ROOT, path)).mtimeMs > built) throw new Error(`${path} is newer than dist/: run npm run build`)
  }
}

function sourcesIn(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true }).map(String)
  return names.filter((name) => name.endsWith('.ts')).map((name) => join(folder, name))
}

/** Called by vitest before all tests. */
export function setup(): void {
  expectBuilt(WORKERS)
}
