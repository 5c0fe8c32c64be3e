/**
 * The program that runs tests of one folder again and again, as its parent asks, in a vitest that stays and transforms each test
 * once. Each run has a process of its own, which loads what is compiled then, so a defect leaves nothing behind.
 */
import { join } from 'node:path'
import { createVitest, type TestCase, type TestModule, type TestSuite, type Vitest } from 'vitest/node'
import type { NamedTest } from './mutant.ts'

export interface TestRun {
  /** The tests that were run: each has passed or failed. A name that several tests have is there several times. */
  readonly ran: readonly (NamedTest & { readonly failure: string | undefined })[]
  /** What failed outside of tests: files that could not be loaded, hooks, what nobody has caught. */
  readonly errors: readonly string[]
}

const directory = process.argv[2] as string
const starting = start()

process.on('message', (tests: readonly NamedTest[]) => {
  run(tests).then(
    (found) => process.send?.(found),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
})
// Its parent is gone: it ends, and with it what it has started, which is in its group.
process.on('disconnect', () => process.kill(0, 'SIGKILL'))

async function start(): Promise<Vitest> {
  const vitest = await createVitest('test', {
    root: directory,
    config: join(directory, 'test/mutants/vitest.config.ts'),
    watch: false,
    reporters: [{}],
  })
  await vitest.standalone()
  return vitest
}

async function run(tests: readonly NamedTest[]): Promise<TestRun> {
  const vitest = await starting
  const files = [...new Set(tests.map(({ file }) => file))]
  const specifications = files.map((file) => {
    const testNamePattern = anyOf(tests.filter((test) => test.file === file))
    return vitest.getRootProject().createSpecification(join(directory, file), { testNamePattern })
  })
  // Vitest remembers the results of earlier orders: a file that breaks its process would have those.
  vitest.state.clearFiles(
    vitest.getRootProject(),
    specifications.map(({ moduleId }) => moduleId),
  )
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications)
  const modules = testModules.filter(({ relativeModuleId }) => files.includes(relativeModuleId))
  return {
    ran: modules.flatMap(testsOf),
    errors: [...modules.flatMap(errorsOf), ...unhandledErrors.map(String)],
  }
}

function anyOf(tests: readonly NamedTest[]): RegExp {
  const names = tests.map(({ name }) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^(?:${names.join('|')})$`)
}

function testsOf(module: TestModule): TestRun['ran'] {
  const file = module.relativeModuleId
  return [...module.children.allTests()].flatMap((test) => {
    const { state, errors = [] } = test.result()
    if (state !== 'passed' && state !== 'failed') return []
    const failure = state === 'failed' ? errors.map(({ message }) => message).join('\n') : undefined
    return [{ file, name: fullName(test), failure }]
  })
}

function fullName({ name, parent }: TestCase | TestSuite): string {
  return parent.type === 'module' ? name : `${fullName(parent)} ${name}`
}

function errorsOf(module: TestModule): string[] {
  const groups = [module, ...module.children.allSuites()]
  return groups.flatMap((group) => group.errors().map(({ message }) => `${module.relativeModuleId}: ${message}`))
}
