/**
 * `npm run test:flakes -- N [--load] [TESTS...]`: runs the tests N times and prints what failed how often. With `--load` both cores
 * are kept busy meanwhile by processes that do nothing else. A test that fails in some runs only is a fault of its design.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const ROOT = new URL('..', import.meta.url).pathname
const USAGE = 'usage: npm run test:flakes -- N [--load] [TESTS...]'

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly TestResult[]
  }[]
}

interface TestResult {
  readonly status: string
  readonly fullName: string
  readonly failureMessages: readonly string[]
}

/**
 * Each failed test of a run that ended with the exit code `code`, with the first line of why. Throws Error if it has run no test at
 * all: nothing has failed then, and nothing is known.
 */
export function failuresIn({ testResults }: Report, code: number | null): Map<string, string> {
  if (testResults.every(({ assertionResults }) => assertionResults.length === 0)) {
    throw new Error('no test was run: npm test says why')
  }
  const failures = new Map<string, string>()
  for (const { name, status, message, assertionResults } of testResults) {
    const path = name.startsWith(ROOT) ? name.slice(ROOT.length) : name
    const failed = assertionResults.filter((test) => test.status === 'failed')
    for (const { fullName, failureMessages } of failed)
      failures.set(`${path}: ${fullName}`, firstLine(failureMessages[0]))
    if (status === 'failed' && failed.length === 0) failures.set(path, firstLine(message))
  }
  if (failures.size === 0 && code !== 0) failures.set('vitest', `it ended with ${code}, though no test failed`)
  return failures
}

function firstLine(text = ''): string {
  return text.split('\n', 1)[0] ?? ''
}

/** What `runs` runs have failed at, the most often first, in lines. */
export function describeFailures(runs: readonly ReadonlyMap<string, string>[]): string[] {
  const counts = new Map<string, { times: number; why: string }>()
  for (const failures of runs) {
    for (const [test, why] of failures) counts.set(test, { times: (counts.get(test)?.times ?? 0) + 1, why })
  }
  const rows = [...counts].sort(([, a], [, b]) => b.times - a.times)
  return rows.map(([test, { times, why }]) => `${times} of ${runs.length}: ${test}\n    ${why}`)
}

/** Runs vitest once. Rejects with Error if it has written no report, or has run no test. */
async function run(report: string, tests: readonly string[]): Promise<Map<string, string>> {
  rmSync(report, { force: true })
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/vitest.config.ts', ...tests]
  const env = { ...process.env, TEST_REPORT: report }
  const child = spawn(process.execPath, vitest, { cwd: ROOT, env, stdio: ['ignore', 'ignore', 'inherit'] })
  const [code] = await once(child, 'exit')
  return failuresIn(JSON.parse(readFileSync(report, 'utf8')) as Report, code)
}

function keepBusy(): ChildProcess[] {
  const loop = ['-e', 'for (;;);']
  return Array.from({ length: availableParallelism() }, () => spawn(process.execPath, loop, { stdio: 'ignore' }))
}

async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args, options: { load: { type: 'boolean' } }, allowPositionals: true })
  const [count = '', ...tests] = positionals
  const times = Number(count)
  if (!Number.isInteger(times) || times < 1) throw new Error(USAGE)
  const directory = mkdtempSync(join(tmpdir(), 'cinnabar-flakes-'))
  const loads = values.load ? keepBusy() : []
  const runs: Map<string, string>[] = []
  try {
    while (runs.length < times) {
      const begun = performance.now()
      const failures = await run(join(directory, 'report.json'), tests)
      runs.push(failures)
      const seconds = Math.round((performance.now() - begun) / 1000)
      console.log(`run ${runs.length} of ${times}: ${failures.size} failed, ${seconds} s`)
    }
  } finally {
    for (const load of loads) load.kill('SIGKILL')
    rmSync(directory, { recursive: true })
  }
  for (const line of describeFailures(runs)) console.log(line)
  return runs.every(({ size }) => size === 0) ? 0 : 1
}

if (process.argv[1] === import.meta.filename) {
  process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
    console.error(error.message)
    return 2
  })
}
