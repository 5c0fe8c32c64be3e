/**
 * Connections to Qpid brokers: each broker of the configuration has one for its console, and where the producer is an agent
 * of it a second one. A newcomer would read what a broker sends as it comes: what a console is told waits as any feed
 * does, for storage and for the tenant's quota. An agent answers all the same, above all when there is too much of the rest.
 */
import { randomUUID } from 'node:crypto'
import type { QmfTable } from '../../sources/qmf/config.ts'
import type { Pacer } from '../io/pacer.ts'
import { type Pacing, pacersOf } from '../io/pacer.ts'
import type { AgentPost } from './agent/post.ts'
import type { QmfBroker } from './broker.ts'
import { BrokerLink, type LinkOptions, type Party } from './broker-link.ts'
import { formatBroker } from './broker-url.ts'
import { Console } from './console.ts'
import { consoleLimits } from './console-options.ts'
import { SchemaCache } from './schemas.ts'
import type { QmfSensor } from './sensor.ts'

const TICK_MS = 1_000

export type QmfConnecting = LinkOptions & Pacing

/** What there is to connect: sensors of each tenant that has brokers, and the agents of those that have one. */
export interface QmfParties {
  readonly sensors: readonly QmfSensor[]
  readonly agents?: readonly AgentPost[]
}

/** Begins at once. */
export function connectQmf(
  { sensors, agents = [] }: QmfParties,
  tables: readonly QmfTable[],
  options: QmfConnecting,
): { close(): Promise<void> } {
  const { clock } = options
  const pacerOf = pacersOf(sensors, options)
  const links = tables.flatMap((table) => {
    const sensor = sensors.find(({ owner }) => owner.tenant === table.tenant)
    const agent = agents.find(({ broker }) => broker === table.name)
    // What is ours at the broker, the console's and the agent's, begins alike.
    const session = `cinnabar-${randomUUID()}`
    const parties = [
      sensor && consoleParty(table, sensor, { ...options, pacer: pacerOf(sensor), session }),
      agent && agentParty(agent, session),
    ]
    return parties.flatMap((party) => (party === undefined ? [] : [new BrokerLink(table, party, options)]))
  })
  for (const link of links) void link.connect()
  const ticking = clock.setInterval(() => {
    for (const link of links) link.tick(clock.monotonicMs())
  }, TICK_MS)
  return {
    async close() {
      clock.clear(ticking)
      await Promise.all(links.map((link) => link.close()))
    },
  }
}

function consoleParty(
  table: QmfTable,
  sensor: QmfSensor,
  { clock, pacer, session: ours }: LinkOptions & { readonly pacer: Pacer; readonly session: string },
): Party {
  const broker = sensor.broker(table.name) as QmfBroker
  const cache = new SchemaCache()
  return {
    said: { ready: 'a broker is connected', lost: 'a broker is not connected' },
    session: `${ours}-console`,
    feed: (speaker, socket) => pacer.feed(speaker, socket),
    open({ session, connect, ready, down }) {
      sensor.counters.connections++
      broker.detail = `connected to ${formatBroker(table)}, learning what there is`
      const console = new Console({
        session,
        intervalMs: table.intervalMs,
        cache,
        limits: { ...consoleLimits, objects: table.maxObjects },
        counters: sensor.counters,
        clock,
        connect,
        events: {
          learned: (schema) => broker.learned(schema),
          ready: () => {
            ready()
            broker.detail = `connected to ${formatBroker(table)}`
            broker.ready()
          },
          object: (sample) => broker.object(sample),
          gone: (id) => broker.gone(id),
          event: (key, event) => broker.event(key, event),
          heartbeat: (time) => broker.heartbeat(time),
          down,
        },
      })
      broker.connected(console)
      return console
    },
    down: (reason) => broker.down(`waiting, ${reason}`),
  }
}

function agentParty(agent: AgentPost, ours: string): Party {
  return {
    said: { ready: 'the agent is attached to a broker', lost: 'the agent is not attached to a broker' },
    session: `${ours}-agent`,
    open: ({ session, connect, ready, down }) => agent.open(session, { attached: () => ready(), down }, connect),
    down: (reason) => agent.down(reason),
  }
}
