import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const ROOT = new URL('..', import.meta.url).pathname
/** Begun first, in this order, since they take longest: one that began last would run alone. */
const FIRST = [
  'packaging',
  'chaos',
  'conformance',
  'e2e',
  'docs',
  'agents',
  'bench',
  'web',
  'cli/commands/demo',
  'server/start',
  'server/wings/plugin/serve',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification): number => {
      const index = FIRST.findIndex((path) => moduleId.startsWith(`${ROOT}test/${path}`))
      return index < 0 ? FIRST.length : index
    }
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}

/** With TEST_LONG=1 the long forms are run, of the tests that have one: those that import support/long.ts, and `*.long.ts`. */
const isLong = process.env['TEST_LONG'] === '1'
/** Where the CI wants the results as JSON: it fails if a test was skipped. */
const report = process.env['TEST_REPORT']

function testsWithLongForm(): string[] {
  const paths = readdirSync(`${ROOT}test`, { recursive: true }).map((name) => `test/${name}`)
  const hasLongForm = (path: string) => /\/long\.ts'$/m.test(readFileSync(`${ROOT}${path}`, 'utf8'))
  return paths.filter((path) => path.endsWith('.long.ts') || (path.endsWith('.test.ts') && hasLongForm(path)))
}

export default defineConfig({
  test: {
    root: ROOT,
    include: isLong ? testsWithLongForm() : ['test/**/*.test.ts'],
    // A worker for each file would load the server again for each.
    isolate: false,
    // A machine may be busy with other work: the end of a test that hangs, no measure of speed.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // Half of those that take long wait for processes.
    maxWorkers: Math.ceil(availableParallelism() * 1.5),
    sequence: { sequencer: LongestFirst },
    globalSetup: ['test/support/built.ts'],
    reporters: report ? ['default', 'json'] : ['default'],
    ...(report ? { outputFile: { json: report } } : {}),
  },
})
