/**
 * The links of the node that leads to the feeders of all nodes of its cluster, its own among them: what was sent to an address
 * of one node comes here by the connections of upstreams, and becomes series of this producer. The place in each feeder's
 * channel is replicated with the values, so that the next node that leads goes on where this one ends.
 */
import { streamTransport } from '../../../client/dial/stream.ts'
import type { Transport } from '../../../client/transport.ts'
import type { Kit } from '../../kit/kit.ts'
import { isListening, type ListeningSensor, type Metric, type StatusEntry } from '../../kit/metrics.ts'
import type { FeedingNodes } from '../../kit/producers.ts'
import type { UpstreamTable } from './config.ts'
import { keptUpstream, openUpstream } from './open-upstream.ts'
import { UpstreamReport } from './report.ts'
import { UpstreamSensor } from './sensor.ts'
import type { Upstream } from './upstream.ts'

const INTERVAL_MS = 60_000
const MAX_SERIES = 1_000_000

export class NodeLinks {
  readonly #nodes: FeedingNodes
  readonly #links: Upstream[] = []

  constructor(kit: Kit, nodes: FeedingNodes) {
    this.#nodes = nodes
    for (const tenant of nodes.tenants) {
      const metric = (name: string): Metric | undefined => sensorHere(kit, tenant, name)?.metric(name)
      const sensor = new UpstreamSensor(tenant, { families: nodes.families, metric })
      kit.feed.add(sensor)
      for (const name of nodes.names) this.#links.push(this.#link(kit, name, tenant, sensor))
    }
  }

  /** Entries of `producer.sensors`. */
  get statuses(): readonly StatusEntry[] {
    return this.#links
  }

  /** Connects to the feeders, and takes what that of this node has left. Bindings have to be recovered by now. */
  async begin(): Promise<void> {
    for (const link of this.#links) link.start()
    await this.#nodes.takeOwn()
  }

  async close(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.stop()))
  }

  #link(kit: Kit, name: string, tenant: string, sensor: UpstreamSensor): Upstream {
    // No [[upstream]] can have this name.
    const key = `${tenant}/node/${name}`
    const { fences } = kit.peer.producers
    const hasFence = (sensor: ListeningSensor | undefined): boolean => sensor !== undefined && fences.has(sensor)
    return openUpstream(kit, {
      table: tableOf(name, tenant, this.#nodes.families),
      report: new UpstreamReport({ ...kit, notice: kit.peer.notice, name, kind: 'link', tenant, family: undefined }),
      ...keptUpstream(kit, key),
      sensor,
      peerNode: {
        connect: (signal) => this.#connect(name, tenant, signal),
        isFenced: (metric) => !fences.isEmpty && hasFence(sensorHere(kit, tenant, metric)),
      },
    })
  }

  async #connect(name: string, tenant: string, signal: AbortSignal): Promise<Transport> {
    const stream = await this.#nodes.connect(name, tenant, signal)
    // It is between nodes: under TLS that both have proven, or on this machine.
    return streamTransport(stream, { encrypted: true, loopback: false })
  }
}

function tableOf(name: string, tenant: string, families: readonly string[]): UpstreamTable {
  return {
    name,
    tenant,
    url: undefined,
    listen: undefined,
    where: `node ${name}`,
    metrics: families.map((family) => `${family}*`),
    controls: [],
    tokenFile: undefined,
    user: '',
    secretFile: undefined,
    ca: undefined,
    cert: undefined,
    key: undefined,
    serverName: undefined,
    intervalMs: INTERVAL_MS,
    maxSeries: MAX_SERIES,
    valuesPerSecond: 0,
  }
}

/** The sensor of this node that takes the same feeds. */
function sensorHere({ peer }: Kit, tenant: string, name: string): ListeningSensor | undefined {
  for (const sensor of peer.view.sensors) {
    const { owner, family } = sensor
    if (isListening(sensor) && owner !== 'producer' && owner.tenant === tenant && name.startsWith(family)) return sensor
  }
  return undefined
}
