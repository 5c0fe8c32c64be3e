/**
 * Nodes whose processes are frozen and killed and whose wires are cut at random: nothing acknowledged is lost, one node leads.
 * `CLUSTER_SEED=123 npx vitest run ... --testTimeout=0 node.random` makes the runs of a seed again, and a failure of theirs
 * small. `CLUSTER_RUNS=10000` goes on for longer.
 */
import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { times } from '../../support/long.ts'
import { LEASE_MS, ModelCluster, type ModelNode } from './model.ts'

const NAMES = ['n1', 'n2', 'n3']

const step = fc.record({
  what: fc.constantFrom('kill', 'restart', 'freeze', 'thaw', 'cut', 'heal', 'hand-over', 'stop', 'nothing'),
  who: fc.constantFrom(...NAMES),
  ms: fc.integer({ min: 10, max: 2.5 * LEASE_MS }),
})
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

function take({ what, who }: Step, cluster: ModelCluster): void {
  const node = cluster.at(who)
  const { process } = node
  if (what === 'kill') node.kill()
  else if (what === 'restart' && (process === undefined || process.ended !== 'not yet')) node.start()
  else if (what === 'freeze') process?.clock.freeze()
  else if (what === 'thaw') process?.clock.thaw()
  else if (what === 'cut') node.isCut = true
  else if (what === 'heal') node.isCut = false
  else if (what === 'hand-over') process?.clock.run(() => void process.node.handOver().catch(() => {}))
  else if (what === 'stop') process?.clock.run(() => process.node.stop())
}

async function runWriting(cluster: ModelCluster, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 50) {
    await cluster.run(50)
    for (const { process } of cluster.nodes.values()) {
      if (process?.clock.isFrozen === false) process.server?.write()
    }
    expectOneLeaderPerEpoch(cluster)
  }
}

function expectOneLeaderPerEpoch(cluster: ModelCluster): void {
  const led = [...cluster.nodes.values()]
    .filter(({ leads }) => leads)
    .map(({ disk }) => `${disk.place.log}/${disk.place.epoch}`)
  expect(new Set(led).size).toBe(led.length)
}

/** Everything works again; who was to be stopped is stopped first. */
async function repair(node: ModelNode, cluster: ModelCluster): Promise<void> {
  node.isCut = false
  node.process?.clock.thaw()
  await cluster.run(10 * LEASE_MS)
  if (node.process === undefined || node.process.ended !== 'not yet') node.start()
}

/** So few are a test that its limit ends what hangs, and not many runs on a slow machine. */
const RUNS_PER_TEST = 5
const RUNS = Number(process.env['CLUSTER_RUNS'] ?? times({ short: 10, long: 40 }))
const SEED = process.env['CLUSTER_SEED']
const seeds =
  SEED === undefined
    ? Array.from({ length: Math.ceil(RUNS / RUNS_PER_TEST) }, () => randomInt(2 ** 31))
    : [Number(SEED)]

test.each(seeds)(
  'nothing that was acknowledged is lost, and in the end one node leads and all have the same: seed %i',
  async (seed) => {
    const random = fc.array(step, { minLength: 5, maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(random, fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), async (steps, chance) => {
        const cluster = new ModelCluster(NAMES, () => chance.next().value ?? 0)
        try {
          cluster.startAll()
          await cluster.until(() => cluster.leaders.length > 0)
          for (const each of steps) {
            take(each, cluster)
            await runWriting(cluster, each.ms)
          }
          for (const node of cluster.nodes.values()) await repair(node, cluster)
          await runWriting(cluster, 10 * LEASE_MS)
          await cluster.run(LEASE_MS)
          expect(cluster.leaders, cluster.describe()).toHaveLength(1)
          const acknowledged = new Set(cluster.acknowledged)
          for (const { disk, aside, process, name } of cluster.nodes.values()) {
            const found = disk.content.filter((id) => acknowledged.has(id))
            expect(found, name).toEqual(cluster.acknowledged)
            // A leader that was deposed never has what the log has not.
            expect(aside, name).toEqual([])
            expect(process?.ended).toBe('not yet')
          }
          expect(cluster.acknowledged.length).toBeGreaterThan(0)
        } finally {
          cluster.end()
        }
      }),
      // To make a failure small takes longer than a test may: without a seed of its own, it is reported as it was found.
      { seed, numRuns: RUNS_PER_TEST, endOnFailure: SEED === undefined },
    )
  },
)
