/** The figures of one node for Prometheus: what its process uses, and how it sees the cluster. On a follower these are all there is. */
import { Exposition, type FamilyType, labelsText } from '../../protocol/prometheus/exposition.ts'
import type { SensorStatus } from '../metrics/metric.ts'
import { ownState } from './health.ts'
import type { ClusterState } from './state.ts'

export interface OwnFigures {
  /** Since the process began. */
  readonly cpuSeconds: number
  readonly residentBytes: number
  /** Of the listener that shows this, since it is open. */
  readonly refusedRequests: number
  readonly refusedConnections: number
  /** Undefined if there are no feeds. */
  readonly feeds?: FeedFigures | undefined
}

/** Of the feeder of the node: what it has taken, or refused, and not handed on. */
export interface FeedFigures {
  /** Values that wait for the node that leads. */
  readonly waiting: number
  /** The counters of its sensors. */
  readonly statuses: readonly Pick<SensorStatus, 'name' | 'counters'>[]
}

export function nodeExposition(
  state: ClusterState,
  figures: OwnFigures,
  now: { readonly wallMs: number; readonly uptimeMs: number },
): Exposition {
  const exposition = new Exposition('prometheus')
  const add = (type: FamilyType, name: string, help: string, value: number | boolean, labels = ''): void =>
    exposition.samples(name, { type, help, unit: '' }, name).number(labels, value)
  const gauge = add.bind(undefined, 'gauge')
  const counter = add.bind(undefined, 'counter')

  const { name, node, leader = '', epoch, since, nodes } = state
  const own = ownState(state)
  const isLeader = own?.role === 'leader'
  const facts = labelsText([
    ['cluster', name],
    ['node', node],
    ['leader', leader],
    ['version', own?.version ?? ''],
  ])
  gauge('cinnabar_cluster_info', 'The node, and the one that it knows to lead.', 1, facts)
  gauge('cinnabar_cluster_leader', 'Whether this node leads.', isLeader)
  gauge('cinnabar_cluster_leader_known', 'Whether this node knows one that leads.', leader !== '')
  gauge('cinnabar_cluster_epoch', 'The number of the epoch: each takeover begins another one.', epoch)
  const ledSeconds = leader === '' ? 0 : Math.max(0, now.wallMs - since) / 1000
  gauge('cinnabar_cluster_epoch_seconds', 'Time since the leader began to lead; 0 if none is known.', ledSeconds)
  const heard = nodes.filter((one) => one.role !== 'not heard').length
  gauge('cinnabar_cluster_nodes', 'Nodes that are configured, or were heard.', nodes.length)
  gauge('cinnabar_cluster_nodes_heard', 'Those that are heard now, this one included.', heard)
  gauge('cinnabar_cluster_sequence', 'The sequence of the last record that is stored here.', own?.sequence ?? 0)
  const lagSeconds = (own?.lagMs ?? 0) / 1000
  gauge('cinnabar_cluster_lag_seconds', 'Age of the oldest record that is not stored here; 0 if all are.', lagSeconds)
  const isAble = own !== undefined && own.role !== 'not heard' && own.obstacle === undefined
  gauge('cinnabar_cluster_able', 'Whether this node leads or could lead.', isAble)

  const { cpuSeconds, residentBytes, refusedRequests, refusedConnections, feeds } = figures
  counter('process_cpu_seconds', 'Processor time of the process.', cpuSeconds)
  gauge('process_resident_memory_bytes', 'Memory of the process.', residentBytes)
  gauge('cinnabar_cluster_uptime_seconds', 'Time since the node began.', now.uptimeMs / 1000)
  counter('cinnabar_status_refused_requests', 'Requests that this listener has refused.', refusedRequests)
  counter('cinnabar_status_refused_connections', 'Connections that this listener has refused.', refusedConnections)
  if (feeds !== undefined) {
    gauge('cinnabar_feeds_waiting', 'Values of feeds of this node that wait for the one that leads.', feeds.waiting)
    const help = 'The counters of the sensors that take feeds at this node while it follows.'
    const name = 'cinnabar_feeds_sensor'
    const samples = exposition.samples(name, { type: 'gauge', help, unit: '' }, name)
    for (const { name: sensor, counters } of feeds.statuses) {
      for (const [counter, count] of Object.entries(counters)) {
        const labels = labelsText([
          ['sensor', sensor],
          ['counter', counter],
        ])
        samples.number(labels, count)
      }
    }
  }
  return exposition
}
