/** A copy of the whole tree in which defects are made, one at a time, and tests are run. */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildSync } from 'esbuild'
import { applyMutant, type Mutant, type NamedTest } from './mutant.ts'
import { TestHost } from './test-host.ts'
import type { TestRun } from './vitest-host.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const NOT_COPIED = new Set(['.git', 'node_modules', 'dist', 'data', 'coverage'])
/** What worker threads are started from: package.json names them in dist/. */
const WORKERS = ['auth/password.ts', 'storage/sqlite/worker.ts', 'storage/replicated/worker.ts']
/** What a test may take, and the process that it runs in: a defect may make it wait for ever. */
const MAX_TEST_MS = 120_000

export class CopiedTree {
  readonly #directory = mkdtempSync(join(tmpdir(), 'mutants-'))
  readonly #host = new TestHost(this.#directory)
  /** The files that the worker threads consist of, from the root of the tree. */
  readonly #workerSources: ReadonlySet<string>
  /** The files that have changed since tests were last run. */
  #changed: string[] = []

  constructor() {
    for (const entry of readdirSync(ROOT)) {
      if (!NOT_COPIED.has(entry)) cpSync(join(ROOT, entry), join(this.#directory, entry), { recursive: true })
    }
    // What is built for browsers, which the server serves; no defect is made there.
    for (const pages of ['dist/console', 'dist/web']) {
      cpSync(join(ROOT, pages), join(this.#directory, pages), { recursive: true })
    }
    symlinkSync(join(ROOT, 'node_modules'), join(this.#directory, 'node_modules'))
    this.#workerSources = this.#buildWorkers()
  }

  /** Runs the test of a mutant with its defect. */
  async runWith(mutant: Mutant): Promise<TestRun> {
    const source = readFileSync(join(this.#directory, mutant.file), 'utf8')
    const broken = applyMutant(mutant, source)
    try {
      this.#write(mutant.file, broken)
      return await this.run([mutant.test])
    } finally {
      this.#write(mutant.file, source)
    }
  }

  #write(file: string, source: string): void {
    writeFileSync(join(this.#directory, file), source)
    this.#changed.push(file)
    if (this.#workerSources.has(file)) this.#buildWorkers()
  }

  /** Runs these tests and no others. Throws if they have no end. */
  run(tests: readonly NamedTest[]): Promise<TestRun> {
    const changed = this.#changed
    this.#changed = []
    return this.#host.run({ changed, tests }, tests.length * MAX_TEST_MS)
  }

  #buildWorkers(): Set<string> {
    const directory = this.#directory
    const { metafile } = buildSync({
      absWorkingDir: directory,
      entryPoints: WORKERS,
      outbase: '.',
      outdir: 'dist',
      bundle: true,
      platform: 'node',
      format: 'esm',
      packages: 'external',
      metafile: true,
    })
    return new Set(Object.keys(metafile.inputs))
  }

  async remove(): Promise<void> {
    await this.#host.stop()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
