/**
 * `qmf.*`: objects and events of Qpid brokers, whose methods are controls; and this server as an agent of a broker. Each
 * broker of the configuration has a connection for its console, and a second one if the producer is an agent of it.
 */

import { randomUUID } from 'node:crypto'
import { type Pacer, type Pacing, pacersOf } from '../../kit/io/pacer.ts'
import type { Source, SourceContext } from '../../kit/source.ts'
import { AgentState } from './agent/agent-state.ts'
import { BrokerAgent } from './agent/broker-agent.ts'
import { objectSources } from './agent/schema.ts'
import type { QmfBroker } from './broker.ts'
import { type BrokerHandlerFactory, BrokerLink, type BrokerLinkOptions } from './broker-link.ts'
import { formatBroker, type QmfTable, type qmfSection } from './config.ts'
import { Console } from './console.ts'
import { consoleLimits, objectLimits } from './console-events.ts'
import { QmfControls } from './controls/controls.ts'
import { SchemaCache } from './discovery.ts'
import { QmfSensor } from './sensor.ts'
import { VersionChoice } from './version-choice.ts'

export const qmf: Source<typeof qmfSection> = {
  open(context, tables) {
    const { hub, pacing, log, clock, server } = context
    const tenants = [...new Set(tables.map(({ tenant }) => tenant))]
    const sensors = tenants.map((tenant) => sensorOf(tenant, tables, context))
    const agents = agentsOf(tables, context)
    return {
      sensors,
      controlSource: new QmfControls(hub, tenants),
      statuses: agents,
      async listen(listeners) {
        const { software } = server.stats({ tenant: 'default', role: '' })
        listeners.opened(connectBrokers(tables, sensors, agents, { ...pacing, clock, log, software }))
      },
    }
  },
}

/** The sensor of all brokers of a tenant. */
function sensorOf(tenant: string, tables: readonly QmfTable[], { hub, clock, quotas }: SourceContext): QmfSensor {
  const brokers = tables.filter((table) => table.tenant === tenant).map(({ name }) => name)
  const named = tenant === 'default' ? undefined : tenant
  return new QmfSensor({ tenant, brokers, meter: quotas.of(tenant).values, named }, hub, clock)
}

/** An agent for each broker that wants one. It shows what a consumer of the broker's tenant is shown. */
function agentsOf(tables: readonly QmfTable[], context: SourceContext): BrokerAgent[] {
  const { producer, hub, clock, log, server, qmfAgent, journal } = context
  const wanted = tables.filter(({ isAgent }) => isAgent)
  if (wanted.length === 0) return []
  const state = new AgentState({ stored: qmfAgent, directory: producer.dataDir, journal, log })
  return wanted.map(({ name: broker, tenant }) => {
    const sources = objectSources({
      tenant,
      stats: () => server.stats({ tenant, role: '' }),
      channels: () => server.channels(),
      sensors: () => hub.sensors,
    })
    return new BrokerAgent({ broker, tenant, label: producer.name, sources, state, clock })
  })
}

const TICK_MS = 1_000

/**
 * Begins to connect at once. The bytes for a console wait like any feed, for storage and for the tenant's quota; an agent
 * answers all the same, above all when there is too much of everything else.
 */
function connectBrokers(
  tables: readonly QmfTable[],
  sensors: readonly QmfSensor[],
  agents: readonly BrokerAgent[],
  options: BrokerLinkOptions & Pacing,
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
  const refusedClasses = new Set<string>()
  const choice = new VersionChoice(table.version)
  return {
    messages: { ready: 'broker connected', lost: 'broker not connected' },
    session: `${prefix}-console`,
    feed: (handler, reading) => pacer.feed(handler, reading),
    open({ session, connect, ready, down }) {
      sensor.counters.connections++
      broker.state = `connected to ${formatBroker(table)}, learning its classes and objects`
      const console = new Console({
        session,
        choice,
        intervalMs: table.intervalMs,
        cache,
        refusedClasses,
        limits: { ...consoleLimits, ...objectLimits(table.maxObjects) },
        counters: sensor.counters,
        clock,
        connect,
        events: {
          learned: (schema) => broker.learned(schema),
          ready: () => {
            ready()
            broker.state = `connected to ${formatBroker(table)} by QMF v${choice.version}`
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
