/**
 * The package `cinnabar` with all of its program, and of the packages that it needs, in a few files, for tests that start servers
 * again and again: half of the CPU time of a start is spent on finding and reading the 1,200 files of the package as it is
 * installed. Vitest makes it before the tests of the project `process`, unless it is newer than the sources.
 */
import { copyFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type BuildOptions, build } from 'esbuild'
import { builtMs, newerThan, SOURCES } from './built.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const PACKAGE = join(ROOT, 'dist/test/cinnabar')
/** Written last: it says when all of this was made. */
const MANIFEST = join(PACKAGE, 'package.json')

/** What is bundled needs nothing of node_modules but native code, which is found in the folder of its package. */
export const BUNDLING = {
  bundle: true,
  external: ['better-sqlite3', 'better-sqlite3-13', 'koffi'],
  // What it has for Node is CommonJS: bundled, it has no names for whoever imports it while it runs.
  alias: { yaml: join(ROOT, 'node_modules/yaml/browser/index.js') },
  platform: 'node',
  format: 'esm',
  target: 'node20',
  // Packages that are CommonJS ask for modules of Node by it.
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
  logLevel: 'warning',
} as const satisfies BuildOptions

/** The command. */
export const BUNDLED = join(PACKAGE, 'dist/cli/main.js')

/** Called by vitest before the tests of the project. */
export async function setup(): Promise<void> {
  const bundled = statSync(MANIFEST, { throwIfNoEntry: false })?.mtimeMs
  // A build may have come after `npm install`, with other packages.
  if (bundled !== undefined && bundled > builtMs() && newerThan(bundled, SOURCES) === undefined) return
  rmSync(PACKAGE, { recursive: true, force: true })
  await build({
    ...BUNDLING,
    absWorkingDir: ROOT,
    // The program, and the worker threads and what they load, where package.json says that they are.
    entryPoints: [
      'cli/main.ts',
      'storage/sqlite/worker.ts',
      'storage/replicated/worker.ts',
      'auth/password.ts',
      'server/kit/decoding-worker.ts',
      'server/edge/query/thread/worker.ts',
      'server/kit/io/datagrams/worker.ts',
      'server/wings/alerts/put/reading-worker.ts',
      'server/wings/otlp/decoder.ts',
      'server/wings/history/worker.ts',
      'server/wings/history/shared-worker.ts',
      'server/wings/prometheus/decoder.ts',
    ],
    outbase: ROOT,
    outdir: join(PACKAGE, 'dist'),
    chunkNames: 'cli/chunks/[hash]',
    splitting: true,
    alias: { ...BUNDLING.alias, '#server': './server/start' },
  })
  for (const pages of ['web', 'console']) symlinkSync(`../../${pages}`, join(PACKAGE, pages))
  copyFileSync(join(ROOT, 'package.json'), MANIFEST)
}
