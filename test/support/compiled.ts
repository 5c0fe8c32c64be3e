/**
 * A program of the tests as one file of JavaScript in dist/: it starts in a fraction of the time that a loader for
 * TypeScript takes, and its worker threads are found there.
 */
import { renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { buildSync } from 'esbuild'

const ROOT = new URL('../..', import.meta.url).pathname

/** `program`: its path from the root of the tree. Gives the path of the file. */
export function compiled(program: string): string {
  const file = join(ROOT, 'dist/test', `${basename(program, '.ts')}.mjs`)
  // Two tests may do this at once.
  const outfile = `${file}.${process.pid}`
  buildSync({
    entryPoints: [join(ROOT, program)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    sourcemap: 'inline',
  })
  renameSync(outfile, file)
  return file
}
