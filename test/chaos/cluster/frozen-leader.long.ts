/**
 * The node that leads hangs: its kernel goes on accepting connections and taking bytes, and ends none. A consumer of the client
 * library that is connected to it finds out by itself, and goes on at another node with the next value.
 */
import { expect, it } from 'vitest'
import { natsMissing } from '../../support/nats.ts'
import { Random } from '../../support/random.ts'
import { Nodes } from './nodes.ts'
import { nextLeader, urlOf, watchingAt } from './watching.ts'

const FREEZES = 3

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`

// Skipped only where nats-server is missing; the name says how to install it.
it.skipIf(natsMissing !== undefined)(
  `a consumer whose node hangs goes on at another one, after seconds of silence${howTo}`,
  { timeout: 600_000 },
  async () => {
    const nodes = await Nodes.start(new Random(1), { lease: '2s' })
    try {
      const any = await watchingAt(nodes.all)
      let leader = nodes.named(await nextLeader(any, ''))
      await any.close()
      for (let freeze = 0; freeze < FREEZES; freeze++) {
        // Connected to the node that leads, with no other node in between.
        const consumer = await watchingAt([leader, ...nodes.all.filter((node) => node !== leader)])
        const lost: string[] = []
        consumer.on('disconnected', ({ code, message }) => lost.push(`${code} ${message}`))
        const frozen = leader
        nodes.freeze(frozen)
        leader = nodes.named(await nextLeader(consumer, frozen.name))
        expect(leader).not.toBe(frozen)
        expect(lost[0]).toContain(`SILENT ${urlOf(frozen)}`)
        expect(lost[0]).toContain('has not answered for 3 seconds')
        nodes.thaw(frozen)
        await consumer.close()
      }
      await nodes.stop()
    } finally {
      await nodes.remove()
    }
  },
)
