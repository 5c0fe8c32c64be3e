import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const ROOT = new URL('..', import.meta.url).pathname
/** Below these, tests start processes: each file has a worker of its own. All others share a few. */
const PROCESSES = /^test\/(agents|bench|chaos|conformance|docs|e2e|packaging|web)\//

/** Where the CI wants the results as JSON: it fails if a test was skipped. */
const report = process.env['TEST_REPORT']

/** The short form of every test; or, with TEST_LONG=1, the long form of those that have one: they import support/long.ts. */
const files = readdirSync(`${ROOT}test`, { recursive: true })
  .map((name) => `test/${name}`)
  .filter((path) => path.endsWith('.test.ts') || (process.env['TEST_LONG'] === '1' && path.endsWith('.long.ts')))
  .filter((path) => process.env['TEST_LONG'] !== '1' || hasLongForm(path))

function hasLongForm(path: string): boolean {
  return path.endsWith('.long.ts') || /\/long\.ts'$/m.test(readFileSync(`${ROOT}${path}`, 'utf8'))
}

export default defineConfig({
  test: {
    root: ROOT,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Half of them wait for processes.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    globalSetup: ['test/support/built.ts'],
    reporters: report ? ['default', 'json'] : ['default'],
    ...(report ? { outputFile: { json: report } } : {}),
    projects: [
      { extends: true, test: { name: 'processes', include: files.filter((path) => PROCESSES.test(path)) } },
      { extends: true, test: { name: 'unit', include: files.filter((path) => !PROCESSES.test(path)), isolate: false } },
    ],
  },
})
