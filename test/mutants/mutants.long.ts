/** That the tests find defects: each patch in this folder makes one, and the test file that it names has to fail. */
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CopiedTree } from './copied-tree.ts'
import { type Mutant, mutantsIn } from './mutant.ts'

const MANY = 60
const PATIENCE_MS = 900_000

const mutants = mutantsIn(new URL('.', import.meta.url).pathname)
/** Copies in which nothing runs at the moment, and those who wait for one. */
const idle: CopiedTree[] = []
const waiting: ((copy: CopiedTree) => void)[] = []

function release(copy: CopiedTree): void {
  const next = waiting.shift()
  if (next === undefined) idle.push(copy)
  else next(copy)
}

async function inCopy<T>(run: (copy: CopiedTree) => Promise<T>): Promise<T> {
  const copy = idle.pop() ?? (await new Promise<CopiedTree>((resolve) => waiting.push(resolve)))
  try {
    return await run(copy)
  } finally {
    release(copy)
  }
}

beforeAll(() => {
  for (let n = 0; n < Math.max(2, availableParallelism()); n++) release(new CopiedTree())
})

afterAll(() => {
  for (const copy of idle) copy.remove()
})

it(`are at least ${MANY}, in five parts of the code`, () => {
  expect(mutants.length).toBeGreaterThanOrEqual(MANY)
  const areas = new Set(mutants.map(({ name }) => name.split('-')[0]))
  expect([...areas]).toEqual(['auth', 'channels', 'protocol', 'sessions', 'storage'])
})

it(
  'fail for their defects alone: without one their tests pass',
  async () => {
    const tests = [...new Set(mutants.map(({ test }) => test))]
    const { passed, failed, unloaded, output } = await inCopy((copy) => copy.run(tests))
    expect({ failed, unloaded }, output).toEqual({ failed: [], unloaded: [] })
    expect(passed).toBeGreaterThan(tests.length)
  },
  PATIENCE_MS,
)

describe.concurrent('a defect is found', () => {
  it.each(mutants.map((mutant): [string, Mutant] => [`${mutant.name}: ${mutant.defect}`, mutant]))(
    '%s',
    async (_, mutant) => {
      const { failed, unloaded, output } = await inCopy((copy) => copy.runWith(mutant))
      expect(unloaded, `${mutant.name}: ${mutant.test} could not be run:\n${output}`).toEqual([])
      expect(failed.length, `${mutant.name} survives: no test in ${mutant.test} fails`).toBeGreaterThan(0)
    },
    PATIENCE_MS,
  )
})
