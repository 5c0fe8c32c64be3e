/**
 * Two projects. `fast`: tests of what runs in this process. `process`: those that start processes, browsers or clusters, which
 * run after the others. In the long form `rigs` are a third one, which runs last. In all of them, few files at a time.
 * With TEST_LONG=1 each file that has a long form runs in that one; `*.long.ts` have no other.
 */
import { readdirSync, readFileSync, statfsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { startsProcesses } from './projects.ts'
import { DIST, fromDist } from './support/from-dist.ts'

const ROOT = new URL('..', import.meta.url).pathname
const CORES = availableParallelism()
/** Begun first, in this order, since they take longest: one that began last would run alone. */
const FIRST = [
  'packaging/packages',
  'conformance',
  'server/start/main',
  'mutants',
  'chaos',
  'cli/commands/demo',
  'bench',
  'storage/replicated',
  'contracts',
  'docs',
  'e2e',
  'web',
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

/** What is written to a disk for nobody costs time: directories of tests are made in memory where there is room for all of them. */
const MEMORY = '/dev/shm'
const ENOUGH_BYTES = 4 * 2 ** 30

/** Whether there is a file system with enough room, from which programs can be started. */
function isFit(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    const mounts = readFileSync('/proc/mounts', 'utf8').split('\n')
    const [, , , options = 'noexec'] = mounts.find((line) => line.split(' ')[1] === path)?.split(' ') ?? []
    return bavail * bsize >= ENOUGH_BYTES && !options.split(',').includes('noexec')
  } catch {
    return false
  }
}

// The workers inherit it, and so does all that they start.
if (process.env['TMPDIR'] === undefined && isFit(MEMORY)) process.env['TMPDIR'] = MEMORY

const isLong = process.env['TEST_LONG'] === '1'
/** Where the CI wants the results as JSON: it fails if a test was skipped. */
const report = process.env['TEST_REPORT']
/** Makes what those start that start servers. */
const BUNDLE = 'test/support/bundle.ts'
/** One more than there are cores, since many wait for the clock or a disk. */
const AT_ONCE = CORES + 1
/** In the long form they strike for long, and are judged by times: no more of them at once than there are cores. */
const RIGS = /^test\/(bench|chaos)\//

const files = readdirSync(join(ROOT, 'test'), { recursive: true })
  .map((name) => `test/${name}`)
  .filter((path) => path.endsWith('.test.ts') || (isLong && path.endsWith('.long.ts') && !path.endsWith('/long.ts')))
const inProcess = files.filter((path) => !startsProcesses(ROOT, path))
const ofProcesses = files.filter((path) => !inProcess.includes(path))
const rigs = ofProcesses.filter((path) => isLong && RIGS.test(path))
const others = ofProcesses.filter((path) => !rigs.includes(path))

interface Project {
  readonly name: string
  readonly files: readonly string[]
  readonly groupOrder: number
  readonly maxWorkers: number
  readonly globalSetup?: string[]
}

function project({ name, files, groupOrder, maxWorkers, globalSetup = [] }: Project) {
  return {
    extends: true as const,
    test: { name, include: [...files], sequence: { groupOrder }, maxWorkers, globalSetup },
  }
}

export default defineConfig({
  plugins: [fromDist(ROOT)],
  test: {
    root: ROOT,
    // A worker for each file would load the server again for each.
    isolate: false,
    server: { deps: { external: [DIST] } },
    // They end what would never come, and are longer than any patience inside of a test, which says what it waited for.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    sequence: { sequencer: LongestFirst },
    projects: [
      project({ name: 'fast', files: inProcess, groupOrder: 0, maxWorkers: AT_ONCE }),
      project({ name: 'process', files: others, groupOrder: 1, maxWorkers: AT_ONCE, globalSetup: [BUNDLE] }),
      ...(isLong
        ? [project({ name: 'rigs', files: rigs, groupOrder: 2, maxWorkers: CORES, globalSetup: [BUNDLE] })]
        : []),
    ],
    globalSetup: ['test/support/built.ts'],
    setupFiles: ['test/support/left-running.ts'],
    reporters: report ? ['default', 'json'] : ['default'],
    ...(report ? { outputFile: { json: report } } : {}),
  },
})
