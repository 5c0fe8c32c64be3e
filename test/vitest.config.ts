import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { configDefaults, defineConfig } from 'vitest/config'

const ROOT = new URL('..', import.meta.url).pathname
/** Below these, tests start processes: each file has a worker of its own. All others share a few. */
const PROCESSES = ['agents', 'bench', 'chaos', 'conformance', 'docs', 'e2e', 'mutants', 'packaging', 'web'].map(
  (folder) => `test/${folder}/`,
)

/** With TEST_LONG=1 the long forms are run, of the tests that have one: those that import support/long.ts, and `*.long.ts`. */
const isLong = process.env['TEST_LONG'] === '1'
/** Where the CI wants the results as JSON: it fails if a test was skipped. */
const report = process.env['TEST_REPORT']

function testsWithLongForm(): string[] {
  const paths = readdirSync(`${ROOT}test`, { recursive: true }).map((name) => `test/${name}`)
  const hasLongForm = (path: string) => /\/long\.ts'$/m.test(readFileSync(`${ROOT}${path}`, 'utf8'))
  return paths.filter((path) => path.endsWith('.long.ts') || (path.endsWith('.test.ts') && hasLongForm(path)))
}

const long = isLong ? testsWithLongForm() : []

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
      {
        extends: true,
        test: {
          name: 'processes',
          include: isLong
            ? long.filter((path) => PROCESSES.some((folder) => path.startsWith(folder)))
            : PROCESSES.map((folder) => `${folder}**/*.test.ts`),
        },
      },
      {
        extends: true,
        test: {
          name: 'unit',
          include: isLong ? long : ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...PROCESSES.map((folder) => `${folder}**`)],
          isolate: false,
        },
      },
    ],
  },
})
