/**
 * A rolling upgrade: one of three nodes is of an earlier version, leads and follows under a feed, and is then started with this
 * version. There is no release with clusters yet, so the earlier version is an early commit that has them, built from the history.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { addTree, HERE, removeTree } from '../../support/commit-tree.ts'
import { natsMissing } from '../../support/nats.ts'
import { PROGRAM } from '../../support/program.ts'
import { runCluster } from '../cluster.ts'
import { FAULTS, type Fault } from './faults.ts'

/**
 * The first commit that can read what this version writes to the log, the alerts of the rules that come with the server among it: an older
 * one can be upgraded, but not follow it.
 */
const EARLIER = 'b04bb31e'
const HAND_OVERS = 4

const missing = natsMissing ?? earlierMissing()
const howTo = missing === undefined ? '' : ` (${missing})`

const directory = mkdtempSync(join(tmpdir(), 'cinnabar-earlier-'))
const tree = join(directory, 'tree')

beforeAll(async () => {
  if (missing === undefined) await addTree(EARLIER, tree, { cwd: HERE, env: process.env })
}, 600_000)
afterAll(async () => {
  await removeTree(tree)
  rmSync(directory, { recursive: true, force: true })
})

// Skipped only where nats-server or the history is missing; the name says what to do.
it.skipIf(missing !== undefined)(
  `a node of an earlier version leads and follows, is upgraded, and nothing is lost${howTo}`,
  { timeout: 900_000 },
  async () => {
    let faults = 0
    const handedOver = FAULTS.find(({ name }) => name === 'handed over') as Fault
    const upgraded: Fault = {
      ...handedOver,
      times: 1,
      async strike(nodes, leader, random) {
        const struck = await handedOver.strike(nodes, leader, random)
        if (++faults < HAND_OVERS) return struck
        const earlier = nodes.named('n1')
        // One that leads was asked to stop by the fault: a second SIGTERM would kill it before it has handed over.
        if (earlier !== leader) await earlier.server.stop()
        earlier.server.program = PROGRAM
        return {
          async mend() {
            await struck.mend()
            if (earlier !== leader) earlier.server.launch()
          },
        }
      },
    }
    const totals = await runCluster({
      seed: 20_261_125,
      count: HAND_OVERS + 2,
      say: () => {},
      // A busy machine must not end a leader before it is asked to hand over.
      nodes: { lease: '2s', programs: { n1: join(tree, 'dist', 'cli', 'main.js') } },
      faults: [upgraded],
    })
    expect(totals).toMatchObject({ lost: 0, unexpected: 0, reused: 0, outOfOrder: 0, committedAgain: 0 })
    // Nothing was accepted and not stored. The earlier version reports a GAP if an EXECUTE was on its way to the disk when it handed
    // over, a fault of its own: test/server/start/closing.test.ts.
    const ofEarlier = totals['restartGaps after the earlier version led'] ?? 0
    expect(totals['restartGaps'], JSON.stringify(totals)).toBe(ofEarlier)
    // From the earlier version to this one and back, more than once.
    expect(totals['times that n1 led']).toBeGreaterThan(1)
    expect((totals['times that n2 led'] ?? 0) + (totals['times that n3 led'] ?? 0)).toBeGreaterThan(2)
    expect(totals['delivered']).toBeGreaterThan(500)
  },
)

function earlierMissing(): string | undefined {
  try {
    execFileSync('git', ['cat-file', '-e', `${EARLIER}^{commit}`], { cwd: HERE, stdio: 'pipe' })
    return undefined
  } catch {
    return `the history does not have commit ${EARLIER}: git fetch --unshallow`
  }
}
