/**
 * The node that leads falls silent, and ends no connection: it hangs, or its cables are pulled, and what is sent to it vanishes. A
 * consumer of the client library that is connected to it finds out by itself, and goes on with the next value as soon as another node
 * serves.
 */
import { expect, it } from 'vitest'
import type { Consumer } from '../../../client/index.ts'
import { percentile } from '../../rig/figures.ts'
import { namespacesMissing } from '../../rig/namespaces.ts'
import type { User } from '../../rig/world/link.ts'
import { natsMissing } from '../../support/nats.ts'
import { Random } from '../../support/random.ts'
import { PASSWORD } from '../../support/server-process.ts'
import type { Mend } from './faults.ts'
import { type ChaosNode, Nodes } from './nodes.ts'
import { leaderOfAll, servedAfter } from './probe.ts'
import { leaderSeen, nextLeader, urlOf, watchingAt } from './watching.ts'

const TIMES = 3
const PATIENCE_MS = 60_000
/** What docs/cluster.md promises, once another node serves. */
const GOES_ON_MS = 2_000
const USER: User = { name: 'admin', secret: PASSWORD, keys: undefined }

interface Silence {
  readonly how: string
  /** Whether machines have to be unplugged. */
  readonly needsCables: boolean
  begin(nodes: Nodes, leader: ChaosNode): Mend
}

const silences: readonly Silence[] = [
  {
    how: 'hangs',
    needsCables: false,
    begin(nodes, leader) {
      nodes.freeze(leader)
      return () => nodes.thaw(leader)
    },
  },
  {
    how: 'has its cables pulled',
    needsCables: true,
    begin: (nodes, leader) => nodes.cutOff(leader, ['nodes', 'nats', 'access']),
  },
]

/** A consumer that is connected to the node which leads, with no other node in between. */
async function watchedLeader(nodes: Nodes): Promise<{ consumer: Consumer; leader: ChaosNode; epoch: number }> {
  for (;;) {
    const { leader, epoch } = await leaderOfAll(nodes, USER)
    const consumer = await watchingAt([leader, ...nodes.all.filter((node) => node !== leader)])
    if ((await leaderSeen(consumer)) === leader.name) return { consumer, leader, epoch }
    // A nats-server that has just come back may bring about another election, and then another node leads.
    await consumer.close()
  }
}

for (const { how, needsCables, begin } of silences) {
  const withoutCables = namespacesMissing && `${namespacesMissing}: run the tests with sudo`
  const missing = natsMissing ?? (needsCables ? withoutCables : undefined)
  const howTo = missing === undefined ? '' : ` (${missing})`
  // Skipped where nats-server or the right to make networks is missing; the name says what to do.
  it.skipIf(missing !== undefined)(
    `a consumer whose node ${how} goes on at another one as soon as that serves${howTo}`,
    { timeout: 600_000 },
    async (context) => {
      const nodes = await Nodes.start(new Random(1), { lease: '2s' })
      try {
        if (needsCables && nodes.machines.missing !== undefined) context.skip(nodes.machines.missing)
        const lateMs: number[] = []
        for (let time = 0; time < TIMES; time++) {
          const { consumer, leader, epoch } = await watchedLeader(nodes)
          const lost: string[] = []
          consumer.on('disconnected', ({ code, message }) => lost.push(`${code} ${message}`))
          const mend = begin(nodes, leader)
          const signal = AbortSignal.timeout(PATIENCE_MS)
          const serves = servedAfter(epoch, nodes, USER, signal).then(
            () => performance.now(),
            async (cause: unknown) => {
              throw new Error(`no other node served than ${leader.name}: ${await nodes.look()}`, { cause })
            },
          )
          const goesOn = nextLeader(consumer, leader.name).then(
            (next) => ({ next, at: performance.now() }),
            async (cause: unknown) => {
              // If none served, that is the reason.
              await serves
              throw new Error(`the consumer has not gone on: ${lost.join('; ')}; ${await nodes.look()}`, { cause })
            },
          )
          const [servesAt, { next, at }] = await Promise.all([serves, goesOn])
          expect(next).not.toBe(leader.name)
          expect(lost[0]).toContain(`SILENT ${urlOf(leader)}`)
          expect(lost[0]).toContain('has not answered for 3 seconds')
          lateMs.push(Math.round(at - servesAt))
          await mend()
          await consumer.close()
        }
        // One may have come when this machine had much else to do.
        const said = `milliseconds after another node served: ${lateMs.join(', ')}`
        expect(percentile(lateMs, 0.5), said).toBeLessThan(GOES_ON_MS)
        await leaderOfAll(nodes, USER)
        await nodes.stop()
      } finally {
        await nodes.remove()
      }
    },
  )
}
