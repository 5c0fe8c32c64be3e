/**
 * Before tests: `dist/` is there and up to date. Processes and worker threads of tests run what is compiled, as users do;
 * a server is up in a third of the time that its sources take.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

const ROOT = new URL('../..', import.meta.url).pathname
/** What the build writes last, whether it changed or not. */
const BUILT_LAST = 'dist/web/client.js'
const SOURCES = ['auth', 'cli', 'client', 'protocol', 'server', 'storage']
/** What runs in worker threads: all that is compiled of a test that starts no process. */
const WORKERS = ['auth', 'storage']

export default function expectBuilt({ name }: TestProject): void {
  const built = statSync(join(ROOT, BUILT_LAST), { throwIfNoEntry: false })?.mtimeMs
  if (built === undefined) throw new Error('dist/ is missing: run npm run build')
  for (const path of (name === 'unit' ? WORKERS : SOURCES).flatMap(filesIn)) {
    if (statSync(join(ROOT, path)).mtimeMs > built) throw new Error(`${path} is newer than dist/: run npm run build`)
  }
}

function filesIn(folder: string): string[] {
  const names = readdirSync(join(ROOT, folder), { recursive: true }).map(String)
  return names.filter((name) => name.endsWith('.ts')).map((name) => join(folder, name))
}
