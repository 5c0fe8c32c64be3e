/** A copy of the whole tree in which defects are made, one at a time, and tests are run. */
import { spawn } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { applyMutant, type Mutant } from './mutant.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const NOT_COPIED = new Set(['.git', 'node_modules', 'dist', 'data', 'coverage'])
/** What worker threads are started from: package.json names them in dist/. */
const WORKERS = ['auth/password.ts', 'storage/sqlite/worker.ts', 'storage/replicated/worker.ts']
/** What a file of tests may take: a defect may make it wait for ever. */
const MAX_FILE_MS = 120_000

export interface TestRun {
  readonly passed: number
  /** The tests that failed: the name and the message of each. */
  readonly failed: readonly string[]
  /** Files that failed though no test in them did: they could not be loaded, or what they need could not be started. */
  readonly unloaded: readonly string[]
  /** What vitest said. */
  readonly output: string
}

interface Report {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly assertionResults: readonly TestResult[]
  }[]
}

interface TestResult {
  readonly status: string
  readonly fullName: string
  readonly failureMessages: readonly string[]
}

export class CopiedTree {
  readonly #directory = mkdtempSync(join(tmpdir(), 'mutants-'))

  constructor() {
    for (const entry of readdirSync(ROOT)) {
      if (!NOT_COPIED.has(entry)) cpSync(join(ROOT, entry), join(this.#directory, entry), { recursive: true })
    }
    // What is built for browsers, which the server serves; no defect is made there.
    for (const pages of ['dist/console', 'dist/web']) {
      cpSync(join(ROOT, pages), join(this.#directory, pages), { recursive: true })
    }
    symlinkSync(join(ROOT, 'node_modules'), join(this.#directory, 'node_modules'))
  }

  /** Runs the test of a mutant with its defect. */
  async runWith(mutant: Mutant): Promise<TestRun> {
    const path = join(this.#directory, mutant.file)
    const source = readFileSync(path, 'utf8')
    writeFileSync(path, applyMutant(mutant, source))
    try {
      return await this.run([mutant.test])
    } finally {
      writeFileSync(path, source)
    }
  }

  async run(tests: readonly string[]): Promise<TestRun> {
    const directory = this.#directory
    this.#buildWorkers()
    const results = join(directory, 'results.json')
    rmSync(results, { force: true })
    const options = ['--bail=1', '--reporter=json', `--outputFile=${results}`]
    const output = await runVitest(directory, [...options, ...tests], tests.length * MAX_FILE_MS)
    if (!existsSync(results)) return { passed: 0, failed: [], unloaded: tests, output }
    const { testResults } = JSON.parse(readFileSync(results, 'utf8')) as Report
    const all = testResults.flatMap(({ assertionResults }) => assertionResults)
    const unloaded = testResults.filter(({ status, assertionResults }) => {
      return status === 'failed' && assertionResults.every((test) => test.status !== 'failed')
    })
    return {
      passed: all.filter(({ status }) => status === 'passed').length,
      failed: all.filter(({ status }) => status === 'failed').map(failureOf),
      unloaded: unloaded.map(({ name }) => name),
      output,
    }
  }

  #buildWorkers(): void {
    const directory = this.#directory
    buildSync({
      entryPoints: WORKERS.map((file) => join(directory, file)),
      outbase: directory,
      outdir: join(directory, 'dist'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
    })
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

function failureOf({ fullName, failureMessages }: TestResult): string {
  return `${fullName}: ${failureMessages.join('\n')}`
}

/** Runs vitest in a folder, in the short form of the tests; returns what it wrote. */
function runVitest(directory: string, options: readonly string[], timeout: number): Promise<string> {
  const { TEST_LONG, TEST_REPORT, VITEST, ...env } = process.env
  const vitest = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'test/mutants/vitest.config.ts', ...options]
  const child = spawn(process.execPath, vitest, { cwd: directory, env, timeout })
  const written: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => written.push(text))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => resolve(written.join('')))
  })
}
