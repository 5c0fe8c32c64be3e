/** `producer.cluster`: who leads, and how far each node is. Only a server that is a node of a cluster has it. */
import { ADMIN_ROLE } from '../../auth/permissions.ts'
import { BasicType } from '../../protocol/monitor/constants.ts'
import type { Field } from '../../protocol/monitor/value.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Metric, PolledSensor } from '../kernel/metrics/metric.ts'
import { ProducerSensor } from '../kernel/producer/sensor.ts'
import type { ClusterControl } from './control.ts'
import type { ClusterState, NodeState } from './state.ts'

const { ARRAY, REC, STRING, UINT64 } = BasicType

const gauge = (name: string, help: string) => ({ name, help, isCounter: false })

const metric: Metric = {
  name: 'producer.cluster',
  kind: 'continuous',
  type: REC,
  unit: '',
  description: 'The cluster that this server leads: since when, and, for admins, how far each node is.',
  parameters: [],
  exposition: {
    info: ['name', 'leader'],
    fields: {
      epoch: gauge('epoch', 'The number of the epoch: each takeover begins another one.'),
      since: { ...gauge('leader_seconds', 'Time since the node began to lead.'), convert: 'age' },
    },
    lists: {
      nodes: {
        labels: { name: 'node' },
        fields: {
          role: { ...gauge('node_leader', 'Whether the node leads.'), is: 'leader' },
          sequence: gauge('node_sequence', 'The sequence of the last record that the node has stored.'),
          lag_ms: {
            ...gauge('node_lag_seconds', 'Age of the oldest record that the node has not stored; 0 if it has all.'),
            convert: 'milliseconds',
          },
          obstacle: { ...gauge('node_able', 'Whether the node leads or could lead.'), is: '' },
        },
      },
    },
  },
}

export function clusterSensor(
  cluster: Pick<ClusterControl, 'state'>,
  clock: Pick<Clock, 'microseconds'>,
): PolledSensor {
  const show = ({ role }: { readonly role: string }) => {
    const fields = clusterFields(cluster.state())
    return { type: REC, value: role === ADMIN_ROLE ? fields : fields.filter(({ name }) => name !== 'nodes') } as const
  }
  return new ProducerSensor([{ metric, show }], clock)
}

/** The state as the metric and the listener of the node (status-listener.ts) show it. */
export function clusterFields({ name, node, leader = '', epoch, since, nodes }: ClusterState): Field[] {
  return [
    string('name', name),
    string('node', node),
    string('leader', leader),
    count('epoch', epoch),
    count('since', since * 1000),
    { name: 'nodes', type: ARRAY, value: { element: REC, items: nodes.map(nodeFields) } },
  ]
}

function nodeFields({ name, role, address, sequence, lagMs, obstacle, version }: NodeState): Field[] {
  return [
    string('name', name),
    string('role', role),
    string('address', address),
    count('sequence', sequence),
    count('lag_ms', lagMs),
    // A node that is not heard has said nothing of obstacles.
    string('obstacle', obstacle ?? (role === 'not heard' ? 'it is stopped or cut off' : '')),
    string('version', version),
  ]
}

function string(name: string, value: string): Field {
  return { name, type: STRING, value }
}

function count(name: string, value: number): Field {
  return { name, type: UINT64, value: BigInt(Math.round(value)) }
}
