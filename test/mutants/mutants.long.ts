/** That the tests find defects: each patch in this folder makes one, and the test that it names has to fail. */
import { availableParallelism } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CopiedTree } from './copied-tree.ts'
import { type Mutant, mutantsIn, type NamedTest } from './mutant.ts'

const MANY = 60
const PATIENCE_MS = 900_000

const mutants = mutantsIn(new URL('.', import.meta.url).pathname)
const copies: CopiedTree[] = []
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

function nameOf({ file, name }: NamedTest): string {
  return `${file}: ${name}`
}

beforeAll(() => {
  for (let n = 0; n < Math.max(2, availableParallelism()); n++) copies.push(new CopiedTree())
  idle.push(...copies)
})

afterAll(() => Promise.all(copies.map((copy) => copy.remove())))

it(`are at least ${MANY}, in six parts of the code`, () => {
  expect(mutants.length).toBeGreaterThanOrEqual(MANY)
  const areas = new Set(mutants.map(({ name }) => name.split('-')[0]))
  expect([...areas]).toEqual(['auth', 'channels', 'doors', 'protocol', 'sessions', 'storage'])
})

// Beside the mutants, since it needs one copy alone.
it.concurrent(
  'fail for their defects alone: without one each of their tests is there and passes',
  async () => {
    const tests = mutants.map(({ test }) => test)
    const { ran, errors } = await inCopy((copy) => copy.run(tests))
    expect(errors).toEqual([])
    expect(ran.filter(({ failure }) => failure !== undefined)).toEqual([])
    const names = new Set(ran.map(nameOf))
    expect(tests.map(nameOf).filter((name) => !names.has(name))).toEqual([])
  },
  PATIENCE_MS,
)

describe.concurrent('a defect is found', () => {
  it.each(mutants.map((mutant): [string, Mutant] => [`${mutant.name}: ${mutant.defect}`, mutant]))(
    '%s',
    async (_, mutant) => {
      const { ran, errors } = await inCopy((copy) => copy.runWith(mutant))
      const isFound = ran.some(({ failure }) => failure !== undefined)
      if (!isFound) expect(errors, `${mutant.name}: ${nameOf(mutant.test)} could not be run`).toEqual([])
      expect(isFound, `${mutant.name} survives: ${nameOf(mutant.test)} does not fail`).toBe(true)
    },
    PATIENCE_MS,
  )
})
