/** Servers are killed at each step of calls that wait for approval: in a cluster the node that leads, in a tree each of its servers. */
import { describe, expect, it } from 'vitest'
import { natsMissing } from '../support/nats.ts'
import { clusterApprovals, treeApprovals } from './approval-steps.ts'

/** Each step once; `npm run chaos -- --tree-approvals 27` has each with the upper server, the lower one, and both. */
const KILLS = 9

describe('each approved call has run once, or it is reported that nobody knows whether it ran', () => {
  // Skipped where there is no nats-server.
  it.skipIf(natsMissing !== undefined)(
    `in a cluster, over ${KILLS} takeovers`,
    async () => {
      const totals = await clusterApprovals({ seed: 1, count: KILLS, say: () => {} })
      expect(totals).toMatchObject({ kills: KILLS, lost: 0, unexpected: 0, reused: 0, refused: 1 })
      expect(totals['ok']).toBeGreaterThan(KILLS / 2)
      // The program was under way at the steps after the approval.
      expect(totals['unknown']).toBeGreaterThan(0)
    },
    600_000,
  )

  it(`in a tree, over ${KILLS} kills`, { timeout: 600_000 }, async () => {
    const totals = await treeApprovals({ seed: 1, count: KILLS, say: () => {} })
    expect(totals).toMatchObject({ kills: KILLS, lost: 0, unexpected: 0, reused: 0, refused: 1 })
    expect(totals['ok']).toBeGreaterThan(KILLS / 2)
  })
})
