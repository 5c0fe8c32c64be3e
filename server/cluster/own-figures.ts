/** The figures of one node for Prometheus: what its process uses, and how it sees the cluster. On a follower these are all there is. */
import { Exposition } from '../../protocol/prometheus/exposition.ts'
import type { SampleLabel } from '../../protocol/prometheus/labels.ts'
import type { FamilyType } from '../../protocol/prometheus/samples.ts'
import type { SensorStatus } from '../kernel/metrics/metric.ts'
import type { FrontCounters } from './front.ts'
import { ownState } from './health.ts'
import type { NodeListener } from './node-listener.ts'
import type { ClusterState } from './state.ts'

/** Connections between nodes, and messages, since the process began. */
export interface NodeTraffic {
  /** Connections of consumers here: those that wait for a node to lead, and those that are passed on now. */
  readonly waiting: number
  readonly passing: number
  readonly front: FrontCounters
  readonly listener: NodeListener['counters']
  /** Messages over NATS that were ignored. */
  readonly ignoredMessages: number
}

export interface OwnFigures {
  readonly traffic: NodeTraffic
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
  const add = (
    type: FamilyType,
    name: string,
    help: string,
    value: number | boolean,
    labels: SampleLabel[] = [],
  ): void => exposition.samples(name, { type, help, unit: '' }, name).number(labels, value)
  const gauge = add.bind(undefined, 'gauge')
  const counter = add.bind(undefined, 'counter')

  const { name, node, leader = '', epoch, since, nodes } = state
  const own = ownState(state)
  const isLeader = own?.role === 'leader'
  const facts: SampleLabel[] = [
    ['cluster', name],
    ['node', node],
    ['leader', leader],
    ['version', own?.version ?? ''],
  ]
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

  const { traffic } = figures
  const { front, listener } = traffic
  gauge('cinnabar_cluster_waiting', 'Connections of consumers that wait for a node to lead.', traffic.waiting)
  gauge('cinnabar_cluster_passing', 'Connections of consumers that this node passes on now.', traffic.passing)
  counter('cinnabar_cluster_passed', 'Connections of consumers that this node has passed on.', front.passed)
  counter('cinnabar_cluster_expired', 'Those that no node has taken in time.', front.expired)
  counter('cinnabar_cluster_turned_away', 'Those for which there was no room.', front.refused)
  counter('cinnabar_cluster_attempts_failed', 'Attempts to pass one on that have failed.', front.failed)
  counter('cinnabar_cluster_taken', 'Connections that other nodes have passed on to this one.', listener.taken)
  counter('cinnabar_cluster_untaken', 'Those that nothing took, as this node did not lead.', listener.untaken)
  counter('cinnabar_cluster_refused', 'Connections that did not prove to be of a node.', listener.refused)
  counter('cinnabar_cluster_evicted', 'Connections that gave way before they could prove it.', listener.evicted)
  const ignored = 'Messages over NATS that were none, too many, or of nodes that are not kept.'
  counter('cinnabar_cluster_ignored_messages', ignored, traffic.ignoredMessages)

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
        const labels: SampleLabel[] = [
          ['sensor', sensor],
          ['counter', counter],
        ]
        samples.number(labels, count)
      }
    }
  }
  return exposition
}
