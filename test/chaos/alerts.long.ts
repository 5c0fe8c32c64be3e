/** Kills of a server with rules and of the receiver of its notifications, some while one is under way; takeovers of a cluster; and a tree. */
import { expect, it } from 'vitest'
import { natsMissing } from '../support/nats.ts'
import { alerts, clusterAlerts, treeAlerts } from './alerts.ts'

const KILLS = 40
const TAKEOVERS = 3
const KILLS_IN_TREE = 4
const RIGHT = { lost: 0, unexpected: 0, reused: 0 }

it('each transition is a value and a notification, in order, whoever is killed', async () => {
  const totals = await alerts({ seed: 1, count: KILLS, say: () => {} })
  expect(totals).toMatchObject(RIGHT)
  expect(totals['values sent again']).toBeGreaterThan(0)
  expect(totals['notifications sent again']).toBeGreaterThan(0)
  expect(totals['puts cut off']).toBeGreaterThan(0)
}, 600_000)

// Skipped where there is no nats-server.
it.skipIf(natsMissing !== undefined)(
  'each transition is a value and a notification, in order, whoever takes over',
  async () => {
    const totals = await clusterAlerts({ seed: 1, count: TAKEOVERS, say: () => {} })
    expect(totals).toMatchObject(RIGHT)
    expect(totals['notifications']).toBeGreaterThan(TAKEOVERS)
  },
  600_000,
)

it('each transition below is a value above, where each alert that fires is told, and its end', async () => {
  const totals = await treeAlerts({ seed: 1, count: KILLS_IN_TREE, say: () => {} })
  expect(totals).toMatchObject(RIGHT)
  expect(totals['notifications above']).toBeGreaterThan(KILLS_IN_TREE)
}, 600_000)
