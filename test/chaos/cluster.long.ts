/** Three machines with a node and a nats-server each, struck in many ways: nothing is lost, and in the end all nodes have the same. */
import { expect, it } from 'vitest'
import { namespacesMissing } from '../rig/namespaces.ts'
import { natsMissing } from '../support/nats.ts'
import { FAULTS } from './cluster/faults.ts'
import { runCluster } from './cluster.ts'

/** Each once; the rig has rounds in which some are more frequent. */
const faults = FAULTS.map((fault) => ({ ...fault, times: 1 }))
const COUNT = FAULTS.length
const SEED = 20_261_141

const missing = [natsMissing, namespacesMissing && `nothing is cut off, and no disk fills: ${namespacesMissing}`]
const howTo = missing.map((reason) => (reason === undefined ? '' : ` (${reason})`)).join('')

// Skipped only where nats-server is missing; the name says how to install it.
it.skipIf(natsMissing !== undefined)(
  `a cluster struck ${COUNT} times loses nothing, makes nothing up and gives no id twice${howTo}`,
  {
    timeout: 900_000,
  },
  async () => {
    const totals = await runCluster({ seed: SEED, count: COUNT, faults, say: () => {} })
    const wanted = {
      faults: COUNT,
      lost: 0,
      unexpected: 0,
      reused: 0,
      outOfOrder: 0,
      committedAgain: 0,
      'takeovers that waited for all nodes': 0,
    }
    // Of all totals only these, so that the report of a failure shows which one it is.
    expect(Object.fromEntries(Object.keys(wanted).map((key) => [key, totals[key]]))).toEqual(wanted)
    if (namespacesMissing === undefined)
      expect(Object.keys(totals)).toEqual(expect.arrayContaining(FAULTS.map(({ name }) => name)))
    // A run in which nothing came proves nothing.
    expect(totals['delivered']).toBeGreaterThan(500)
    expect(totals['takeovers']).toBeGreaterThan(1)
    expect(totals['equal rows']).toBeGreaterThan(10)
  },
)
