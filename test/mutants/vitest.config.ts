/** Runs tests in the copies that `mutants.long.ts` makes: one file at a time, without a check of what is compiled. */
import { defineConfig } from 'vitest/config'

const ROOT = new URL('../..', import.meta.url).pathname

export default defineConfig({
  // node_modules is a link to the one of the tree that was copied.
  cacheDir: `${ROOT}dist/.vite`,
  test: {
    root: ROOT,
    include: ['test/**/*.test.ts'],
    isolate: false,
    maxWorkers: 1,
    // Longer than anything in a test waits, so that it can say for what.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
