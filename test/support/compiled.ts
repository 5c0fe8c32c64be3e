/**
 * A program of the tests as one file of JavaScript, with the packages that it needs: it starts in a fraction of the time that a
 * loader for TypeScript takes. It lies as deep in the package as what is compiled, and finds the package and its worker threads
 * by that: those of the bundle in tests, those that were built if run by hand.
 */
import { renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { buildSync } from 'esbuild'
import { BUNDLING } from './bundle.ts'
import { SERVER_PROGRAM } from './program.ts'

/** What only tests need is not bundled: it has its own way to find its parts. */
const TOOLS = ['vitest', 'esbuild']

const ROOT = new URL('../..', import.meta.url).pathname
const FOLDER = join(dirname(SERVER_PROGRAM), '../test/programs')
/** Each is compiled once by a process. */
const made = new Map<string, string>()

/** `program`: its path from the root of the tree. Gives the path of the file. */
export function compiled(program: string): string {
  const before = made.get(program)
  if (before !== undefined) return before
  const file = join(FOLDER, `${basename(program, '.ts')}.mjs`)
  // Two tests may do this at once.
  const outfile = `${file}.${process.pid}`
  buildSync({
    ...BUNDLING,
    external: [...BUNDLING.external, ...TOOLS],
    entryPoints: [join(ROOT, program)],
    outfile,
    sourcemap: 'inline',
  })
  renameSync(outfile, file)
  made.set(program, file)
  return file
}
