/** A copy of the whole tree in which defects are made, one at a time, and tests are run. */
import {
  copyFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import ts from 'typescript'
import { BUILT_LAST, COMPILED, expectBuilt } from '../support/built.ts'
import { applyMutant, type Mutant, type NamedTest } from './mutant.ts'
import { TestHost } from './test-host.ts'
import type { TestRun } from './vitest-host.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const NOT_COPIED = new Set(['.git', 'node_modules', 'dist', 'data', 'coverage'])
/** What tests and worker threads load; and what is built for browsers, which the server serves, and which is built last. */
const BUILT = [...COMPILED, 'console', 'web'].map((folder) => join('dist', folder))
/** What a test may take, and the process that it runs in: a defect may make it wait for ever. */
const MAX_TEST_MS = 120_000

export class CopiedTree {
  readonly #directory = mkdtempSync(join(tmpdir(), 'mutants-'))
  readonly #host = new TestHost(this.#directory)
  readonly #compilerOptions = compilerOptions()

  constructor() {
    // Copies are all as old as the copying, which hides that dist/ is older than the sources.
    expectBuilt(COMPILED)
    for (const entry of readdirSync(ROOT)) {
      if (!NOT_COPIED.has(entry)) cpSync(join(ROOT, entry), join(this.#directory, entry), { recursive: true })
    }
    for (const folder of BUILT) cpSync(join(ROOT, folder), join(this.#directory, folder), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules'), join(this.#directory, 'node_modules'))
    for (const thread of bundledThreads()) this.#write(thread, readFileSync(join(ROOT, thread), 'utf8'))
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

  /** Changes a source and what is compiled of it, as a build does. */
  #write(file: string, source: string): void {
    writeFileSync(join(this.#directory, file), source)
    const { outputText } = ts.transpileModule(source, { fileName: file, compilerOptions: this.#compilerOptions })
    writeFileSync(join(this.#directory, 'dist', file.replace(/[.]ts$/, '.js')), outputText)
    copyFileSync(join(ROOT, BUILT_LAST), join(this.#directory, BUILT_LAST))
  }

  /** Runs these tests and no others. Throws if they have no end. */
  run(tests: readonly NamedTest[]): Promise<TestRun> {
    return this.#host.run(tests, tests.length * MAX_TEST_MS)
  }

  async remove(): Promise<void> {
    await this.#host.stop()
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** The build makes one file of each with all that it imports, in which no defect would be: here it imports as it is written. */
function bundledThreads(): readonly string[] {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const threads = scripts['build:threads']?.match(/\S+[.]ts/g)
  if (threads === null || threads === undefined) throw new Error('package.json: build:threads names no thread')
  return threads
}

/** Those of the build; that package.json asks for modules is not looked up for a single file. */
function compilerOptions(): ts.CompilerOptions {
  const { config } = ts.readConfigFile(join(ROOT, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, ROOT)
  return { ...options, module: ts.ModuleKind.ESNext }
}
