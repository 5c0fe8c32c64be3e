/** Which tests run in the project of those that start processes. */
import { expect, test } from 'vitest'
import { startsProcesses } from './projects.ts'

const ROOT = new URL('..', import.meta.url).pathname

test.each([
  ['test/e2e/kill.test.ts', true],
  ['test/web/page.test.ts', true],
  // It starts nats-servers, by what it imports.
  ['test/storage/replicated/store.test.ts', true],
  ['test/server/kernel/channels/settlement.test.ts', false],
  ['test/protocol/monitor/value.test.ts', false],
])('%s: %s', (path, expected) => {
  expect(startsProcesses(ROOT, path)).toBe(expected)
})
