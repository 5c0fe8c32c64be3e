import { defineConfig } from 'vitest/config'

/** Where the CI wants the results as JSON: it fails if a test was skipped. */
const report = process.env['TEST_REPORT']

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    include: ['test/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    reporters: report ? ['default', 'json'] : ['default'],
    ...(report ? { outputFile: { json: report } } : {}),
  },
})
