/**
 * The node that leads hangs: its kernel goes on accepting connections and taking bytes, and ends none. A consumer of the client
 * library that is connected to it finds out by itself, and goes on at another node with the next value.
 */
import { expect, it } from 'vitest'
import { type Consumer, connect, type PlainRecord } from '../../../client/index.ts'
import { natsMissing } from '../../support/nats.ts'
import { Random } from '../../support/random.ts'
import { PASSWORD } from '../../support/server-process.ts'
import { type ChaosNode, Nodes } from './nodes.ts'

const LOGIN = { identity: 'admin', password: PASSWORD }
/** Of each step: nodes and nats-servers start in it, or another node takes over. */
const PATIENCE_MS = 60_000
const FREEZES = 3

const howTo = natsMissing === undefined ? '' : ` (${natsMissing})`
const urlOf = ({ server: { listener } }: ChaosNode): string => `tcp://${listener.host}:${listener.port}`
const leaderIn = (plain: unknown): string => String((plain as PlainRecord)['leader'])

/** Which node leads says each value of this metric, by a channel that outlives the node. */
async function consumerOf(nodes: readonly ChaosNode[]): Promise<Consumer> {
  const options = { name: 'watched', waitForServerMs: PATIENCE_MS, deadlineMs: PATIENCE_MS }
  const consumer = await connect(nodes.map(urlOf), LOGIN, options)
  await consumer.follow('producer.cluster', { interval_ms: 100 })
  return consumer
}

/** Takes values until one says that another node leads, and gives its name. */
async function nextLeader(consumer: Consumer, before: string): Promise<string> {
  let last = 0
  for await (const { plain, transaction } of consumer.samples({ signal: AbortSignal.timeout(PATIENCE_MS) })) {
    expect(transaction).toBeGreaterThan(last)
    last = transaction
    const name = leaderIn(plain)
    if (name !== '' && name !== before) return name
  }
  throw new Error('the consumer was closed')
}

// Skipped only where nats-server is missing; the name says how to install it.
it.skipIf(natsMissing !== undefined)(
  `a consumer whose node hangs goes on at another one, after seconds of silence${howTo}`,
  { timeout: 600_000 },
  async () => {
    const nodes = await Nodes.start(new Random(1), { lease: '2s' })
    try {
      const any = await consumerOf(nodes.all)
      let leader = nodes.named(await nextLeader(any, ''))
      await any.close()
      for (let freeze = 0; freeze < FREEZES; freeze++) {
        // Connected to the node that leads, with no other node in between.
        const consumer = await consumerOf([leader, ...nodes.all.filter((node) => node !== leader)])
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
