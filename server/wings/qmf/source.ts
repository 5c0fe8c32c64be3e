/**
 * `qmf.*`: objects and events of Qpid brokers, whose methods are controls; and this server as an agent of a broker. Each
 * broker of the configuration has a connection for its console, and a second one if the producer is an agent of it.
 */

import { randomUUID } from 'node:crypto'
import type { Pacer } from '../../kit/io/pacer.ts'
import type { Kit } from '../../kit/kit.ts'
import type { Timer } from '../../kit/running.ts'
import type { Source } from '../../kit/source.ts'
import { AgentState } from './agent/agent-state.ts'
import { BrokerAgent } from './agent/broker-agent.ts'
import { objectSources } from './agent/schema.ts'
import type { QmfBroker } from './broker.ts'
import { type BrokerHandlerFactory, BrokerLink } from './broker-link.ts'
import { formatBroker, type QmfTable, type qmfSection } from './config.ts'
import { Console } from './console.ts'
import { consoleLimits, objectLimits } from './console-events.ts'
import { QmfControls } from './controls/controls.ts'
import { SchemaCache } from './discovery.ts'
import { QmfSensor } from './sensor.ts'
import { VersionChoice } from './version-choice.ts'

export const qmf: Source<typeof qmfSection> = {
  open(kit, tables) {
    const tenants = [...new Set(tables.map(({ tenant }) => tenant))]
    const sensors = tenants.map((tenant) => sensorOf(tenant, tables, kit))
    for (const sensor of sensors) kit.feed.add(sensor)
    kit.controls.follow(new QmfControls(sensors))
    const agents = agentsOf(tables, kit)
    let links: BrokerLinks | undefined
    return {
      statuses: agents,
      async listen() {
        links = new BrokerLinks(tables, sensors, agents, kit)
      },
      close: () => links?.close(),
    }
  },
}

/** The sensor of all brokers of a tenant. */
function sensorOf(tenant: string, tables: readonly QmfTable[], { feed, clock, poll }: Kit): QmfSensor {
  const brokers = tables.filter((table) => table.tenant === tenant).map(({ name }) => name)
  const named = tenant === 'default' ? undefined : tenant
  return new QmfSensor({ tenant, brokers, meter: poll.meterOf(tenant), named, demand: poll.demand }, feed, clock)
}

/** An agent for each broker that wants one. It shows what a consumer of the broker's tenant is shown. */
function agentsOf(tables: readonly QmfTable[], { self, clock, log, peer }: Kit): BrokerAgent[] {
  const { stored, view } = peer
  const wanted = tables.filter(({ isAgent }) => isAgent)
  if (wanted.length === 0) return []
  const state = new AgentState({ stored: stored.qmfAgent, directory: self.dataDir, journal: stored.journal, log })
  return wanted.map(({ name: broker, tenant }) => {
    const sources = objectSources({
      tenant,
      stats: () => view.stats({ tenant, role: '' }),
      channels: () => view.channels(),
      sensors: () => view.sensors,
    })
    return new BrokerAgent({ broker, tenant, label: self.name, sources, state, clock })
  })
}

const TICK_MS = 1_000

/**
 * The connections to all brokers. The bytes for a console wait like any feed, for storage and for the tenant's quota; an agent
 * answers all the same, above all when there is too much of everything else.
 */
class BrokerLinks {
  readonly #clock: Kit['clock']
  readonly #links: readonly BrokerLink[]
  readonly #ticking: Timer

  /** Begins to connect at once. */
  constructor(
    tables: readonly QmfTable[],
    sensors: readonly QmfSensor[],
    agents: readonly BrokerAgent[],
    { self, clock, log, poll, peer }: Kit,
  ) {
    this.#clock = clock
    const pacers = new Map(sensors.map((sensor) => [sensor, peer.pacer(sensor, sensor.meter)]))
    const options = { clock, log, software: self.software, faults: { report: poll.failed } }
    this.#links = tables.flatMap((table) => {
      const sensor = sensors.find(({ owner }) => owner.tenant === table.tenant)
      const pacer = sensor && pacers.get(sensor)
      const agent = agents.find(({ broker }) => broker === table.name)
      // The names of our sessions at the broker, the console's and the agent's, begin alike.
      const session = `cinnabar-${randomUUID()}`
      const factories = [
        sensor && pacer && consoleFactory(table, sensor, { clock, pacer, session }),
        agent && agentFactory(agent, session),
      ]
      return factories.flatMap((factory) => (factory === undefined ? [] : [new BrokerLink(table, factory, options)]))
    })
    for (const link of this.#links) link.connect()
    this.#ticking = clock.setInterval(() => {
      for (const link of this.#links) link.tick(clock.monotonicMs())
    }, TICK_MS)
  }

  async close(): Promise<void> {
    this.#clock.clear(this.#ticking)
    await Promise.all(this.#links.map((link) => link.close()))
  }
}

interface ConsoleOptions {
  readonly clock: Kit['clock']
  readonly pacer: Pacer
  /** The beginning of the name of its sessions. */
  readonly session: string
}

function consoleFactory(
  table: QmfTable,
  sensor: QmfSensor,
  { clock, pacer, session: prefix }: ConsoleOptions,
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
