/** How many connections of consumers a node passes on while it follows. */
import { expect, test } from 'vitest'
import { frontLimits } from '../../../server/start/node.ts'

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
