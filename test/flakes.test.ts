/** What `npm run test:flakes` says of reports of vitest. */
import { expect, test } from 'vitest'
import { describeFailures, failuresIn } from './flakes.ts'

const passed = { status: 'passed', fullName: 'adds', failureMessages: [] }
const failed = { status: 'failed', fullName: 'waits', failureMessages: ['Error: too late\n    at there'] }
const fileOf = (status: string, assertionResults: (typeof passed)[], message = '') => ({
  testResults: [{ name: '/tree/a.test.ts', status, message, assertionResults }],
})

test('a run that failed nowhere has no failures', () => {
  expect(failuresIn(fileOf('passed', [passed]))).toEqual(new Map())
})

test('a failure has its file, its name and the first line of why', () => {
  expect(failuresIn(fileOf('failed', [passed, failed as never]))).toEqual(
    new Map([['/tree/a.test.ts: waits', 'Error: too late']]),
  )
})

test('a file that could not be loaded is a failure', () => {
  expect(failuresIn(fileOf('failed', [], 'no such module\nmore'))).toEqual(
    new Map([['/tree/a.test.ts', 'no such module']]),
  )
})

test('failures are counted over all runs, the most frequent first', () => {
  const [rare, often] = [new Map([['b', 'why b']]), new Map([['a', 'why a']])]
  expect(describeFailures([rare, often, new Map(), new Map([...often])])).toEqual([
    '2 of 4: a\n    why a',
    '1 of 4: b\n    why b',
  ])
})
