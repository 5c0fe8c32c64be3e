/** What a node loads that a server alone does not, and how many connections of consumers it passes on. */
import { expect, test } from 'vitest'
import { frontLimits } from '../../../server/start/node.ts'
import { runToEnd } from '../../support/run-to-end.ts'

test.each([
  ['as a server may have', 10_000, 65_536, { connections: 10_000, held: 2_000 }],
  ['as leave half of its files to the rest of the process', 10_000, 1_024, { connections: 256, held: 52 }],
  [
    'as a server may have, where no system says how many files there may be',
    50,
    undefined,
    { connections: 50, held: 10 },
  ],
])('as many %s', (_, connections, openFiles, expected) => {
  expect(frontLimits(connections, openFiles)).toEqual(expected)
})

test.each([
  ['a server that is alone loads nothing of NATS', 'main', false],
  ['a node does', 'node', true],
])('%s', async (_, module, loads) => {
  const url = new URL(`../../../dist/server/start/${module}.js`, import.meta.url).href
  const script = `import(${JSON.stringify(url)}).then(() => console.log(JSON.stringify(Object.keys(require.cache))))`
  const { code, out } = await runToEnd(process.execPath, ['-e', script], {})
  expect(code).toBe(0)
  expect(JSON.parse(out).some((path: string) => path.includes('@nats-io'))).toBe(loads)
})
