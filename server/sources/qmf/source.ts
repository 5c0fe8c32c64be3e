/** `qmf.*`: objects and events of Qpid brokers, whose methods are controls; and this server as an agent of a broker. */

import type { Source, SourceContext } from '../source.ts'
import { AgentStateFile, BrokerAgent } from './agent/broker-agent.ts'
import { objectSources } from './agent/schema.ts'
import type { QmfTable, qmfSection } from './config.ts'
import { connectQmf } from './connect.ts'
import { QmfControls } from './controls/controls.ts'
import { QmfSensor } from './sensor.ts'

export const qmf: Source<typeof qmfSection> = {
  open(context, tables) {
    const { hub, pacing, log } = context
    const tenants = [...new Set(tables.map(({ tenant }) => tenant))]
    const sensors = tenants.map((tenant) => sensorOf(tenant, tables, context))
    const agents = agentsOf(tables, context)
    return {
      sensors,
      controlSource: new QmfControls(hub, tenants),
      statuses: agents,
      async listen(listeners) {
        listeners.opened(connectQmf({ sensors, agents }, tables, { ...pacing, clock: context.clock, log }))
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
function agentsOf(tables: readonly QmfTable[], { producer, hub, clock, log, server }: SourceContext): BrokerAgent[] {
  const wanted = tables.filter(({ isAgent }) => isAgent)
  if (wanted.length === 0) return []
  const stateFile = new AgentStateFile(producer.dataDir, log)
  return wanted.map(({ name: broker, tenant }) => {
    const sources = objectSources({
      tenant,
      stats: () => server.stats({ tenant, role: '' }),
      channels: () => server.channels(),
      sensors: () => hub.sensors,
    })
    return new BrokerAgent({ broker, tenant, label: producer.name, sources, stateFile, clock })
  })
}
