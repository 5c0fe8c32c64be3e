/** Runs tests in the copies that `mutants.long.ts` makes: one file at a time, on what is compiled, where the defects are too. */
import { defineConfig } from 'vitest/config'
import { DIST, fromDist } from '../support/from-dist.ts'

const ROOT = new URL('../..', import.meta.url).pathname

export default defineConfig({
  // node_modules is a link to the one of the tree that was copied.
  cacheDir: `${ROOT}dist/.vite`,
  plugins: [fromDist(ROOT)],
  test: {
    root: ROOT,
    include: ['test/**/*.test.ts'],
    isolate: false,
    server: { deps: { external: [DIST] } },
    maxWorkers: 1,
    // Longer than anything in a test waits, so that it can say for what.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
