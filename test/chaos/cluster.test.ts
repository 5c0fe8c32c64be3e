/** Three nodes and three nats-servers, killed and frozen: nothing is lost, and in the end all nodes have the same. */
import { expect, it } from 'vitest'
import { times } from '../support/long.ts'
import { natsMissing } from '../support/nats.ts'
import { cluster } from './cluster.ts'

const FAULTS = times({ short: 4, long: 20 })

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`

// Skipped only where nats-server is missing; the name says how to install it.
it.skipIf(natsMissing !== undefined)(
  `a cluster struck ${FAULTS} times loses nothing, makes nothing up and gives no id twice${howTo}`,
  {
    timeout: 900_000,
  },
  async () => {
    const totals = await cluster({ seed: 20_261_124, count: FAULTS, say: () => {} })
    expect(totals).toMatchObject({
      faults: FAULTS,
      lost: 0,
      unexpected: 0,
      reused: 0,
      outOfOrder: 0,
      committedAgain: 0,
    })
    // A run in which nothing came proves nothing.
    expect(totals['delivered']).toBeGreaterThan(500)
    expect(totals['takeovers']).toBeGreaterThan(1)
    expect(totals['equal rows']).toBeGreaterThan(10)
  },
)
