/** The short form; `npm run chaos -- --cluster-history 20` is the long one. */
import { expect, it } from 'vitest'
import { natsMissing } from '../support/nats.ts'
import { clusterHistory } from './cluster-history.ts'

const TAKEOVERS = 3

// Skipped where there is no nats-server.
it.skipIf(natsMissing !== undefined)(
  'each node has everything that was acknowledged, once, after leaders were killed and have handed over',
  async () => {
    const totals = await clusterHistory({ seed: 1, count: TAKEOVERS, say: () => {} })
    expect(totals).toMatchObject({ takeovers: TAKEOVERS, lost: 0, unexpected: 0, reused: 0 })
    expect(totals['acknowledged']).toBeGreaterThan(TAKEOVERS)
  },
  300_000,
)
