/** What `npm run test:flakes` says of reports of vitest. */
import { expect, test } from 'vitest'
import { describeFailures, failuresIn } from './flakes.ts'

const passed = { status: 'passed', fullName: 'adds', failureMessages: [] }
const failed = { status: 'failed', fullName: 'waits', failureMessages: ['Error: too late\n    at there'] }
const fileOf = (status: string, assertionResults: (typeof passed)[], message = '') => ({
  testResults: [{ name: '/tree/a.test.ts', status, message, assertionResults }],
})

test('a run that failed nowhere has no failures', () => {
  expect(failuresIn(fileOf('passed', [passed]), 0)).toEqual(new Map())
})

test('a failure has its file, its name and the first line of why', () => {
  expect(failuresIn(fileOf('failed', [passed, failed as never]), 1)).toEqual(
    new Map([['/tree/a.test.ts: waits', 'Error: too late']]),
  )
})

test('a file that could not be loaded is a failure', () => {
  const { testResults } = fileOf('failed', [], 'no such module\nmore')
  const others = fileOf('passed', [passed]).testResults
  expect(failuresIn({ testResults: [...testResults, ...others] }, 1)).toEqual(
    new Map([['/tree/a.test.ts', 'no such module']]),
  )
})

test('a run that ended badly though no test failed is a failure', () => {
  expect(failuresIn(fileOf('passed', [passed]), 1)).toEqual(
    new Map([['vitest', 'it ended with 1, though no test failed']]),
  )
})

test('a run without any test proves nothing', () => {
  expect(() => failuresIn({ testResults: [] }, 1)).toThrow('no test was run')
  expect(() => failuresIn(fileOf('failed', [], 'no such module'), 1)).toThrow('no test was run')
})

test('failures are counted over all runs, the most frequent first', () => {
  const [rare, often] = [new Map([['b', 'why b']]), new Map([['a', 'why a']])]
  expect(describeFailures([rare, often, new Map(), new Map([...often])])).toEqual([
    '2 of 4: a\n    why a',
    '1 of 4: b\n    why b',
  ])
})
