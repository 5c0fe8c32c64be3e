/**
 * Connections to Qpid brokers: each broker of the configuration has one for its console, and a second one if the
 * producer is an agent of it. A newcomer would read a broker's bytes as they come: those for a console wait like any
 * feed, for storage and for the tenant's quota. An agent answers all the same, above all when there is too much of
 * everything else.
 */
import { randomUUID } from 'node:crypto'
import type { Pacer } from '../io/pacer.ts'
import { type Pacing, pacersOf } from '../io/pacer.ts'
import type { BrokerAgent } from './agent/broker-agent.ts'
import type { QmfBroker } from './broker.ts'
import { type BrokerHandlerFactory, BrokerLink, type BrokerLinkOptions } from './broker-link.ts'
import { formatBroker } from './broker-url.ts'
import type { QmfTable } from './config.ts'
import { Console } from './console.ts'
import { consoleLimits } from './console-events.ts'
import { SchemaCache } from './discovery.ts'
import type { QmfSensor } from './sensor.ts'

const TICK_MS = 1_000

export type QmfConnecting = BrokerLinkOptions & Pacing

/** What is connected: the sensor of each tenant with brokers, and the agents of brokers with one. */
export interface QmfConnected {
  readonly sensors: readonly QmfSensor[]
  readonly agents?: readonly BrokerAgent[]
}

/** Begins to connect at once. */
export function connectQmf(
  { sensors, agents = [] }: QmfConnected,
  tables: readonly QmfTable[],
  options: QmfConnecting,
): { close(): Promise<void> } {
  const { clock } = options
  const pacerOf = pacersOf(sensors, options)
  const links = tables.flatMap((table) => {
    const sensor = sensors.find(({ owner }) => owner.tenant === table.tenant)
    const agent = agents.find(({ broker }) => broker === table.name)
    // The names of our sessions at the broker, the console's and the agent's, begin alike.
    const session = `cinnabar-${randomUUID()}`
    const factories = [
      sensor && consoleFactory(table, sensor, { ...options, pacer: pacerOf(sensor), session }),
      agent && agentFactory(agent, session),
    ]
    return factories.flatMap((factory) => (factory === undefined ? [] : [new BrokerLink(table, factory, options)]))
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

function consoleFactory(
  table: QmfTable,
  sensor: QmfSensor,
  { clock, pacer, session: prefix }: BrokerLinkOptions & { readonly pacer: Pacer; readonly session: string },
): BrokerHandlerFactory {
  const broker = sensor.broker(table.name) as QmfBroker
  const cache = new SchemaCache()
  return {
    messages: { ready: 'broker connected', lost: 'broker not connected' },
    session: `${prefix}-console`,
    feed: (handler, reading) => pacer.feed(handler, reading),
    open({ session, connect, ready, down }) {
      sensor.counters.connections++
      broker.detail = `connected to ${formatBroker(table)}, learning its classes and objects`
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

function agentFactory(agent: BrokerAgent, prefix: string): BrokerHandlerFactory {
  return {
    messages: { ready: 'agent attached to broker', lost: 'agent not attached to broker' },
    session: `${prefix}-agent`,
    open: ({ session, connect, ready, down }) => agent.open(session, { attached: () => ready(), down }, connect),
    down: (reason) => agent.down(reason),
  }
}
