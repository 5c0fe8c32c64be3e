/** The nodes of the cluster that the server belongs to, as `producer.cluster` shows them. */
import type { PlainRecord } from '../client/browser.ts'
import { recordsOf } from './query.ts'

export interface ClusterView {
  readonly name: string
  readonly leader: string
  readonly epoch: number
  /** Microseconds since 1970. */
  readonly since: number
  /** Empty for those who are not admins. */
  readonly nodes: readonly ClusterNode[]
}

export interface ClusterNode {
  readonly name: string
  /** `leader`, `follower` or `not heard`. */
  readonly role: string
  readonly address: string
  readonly sequence: number
  readonly lagMs: number
  /** Why it could not lead; empty if it could. */
  readonly obstacle: string
}

export function clusterOf(record: PlainRecord): ClusterView {
  const { name, leader, epoch, since, nodes } = record
  return {
    name: String(name),
    leader: String(leader),
    epoch: Number(epoch),
    since: Number(since),
    nodes: nodes === undefined ? [] : recordsOf(nodes).map(nodeOf),
  }
}

function nodeOf({ name, role, address, sequence, lag_ms, obstacle }: PlainRecord): ClusterNode {
  return {
    name: String(name),
    role: String(role),
    address: String(address),
    sequence: Number(sequence),
    lagMs: Number(lag_ms),
    obstacle: String(obstacle),
  }
}

/** A follower that is further behind is one to look at; a load balancer leaves it out then, too. */
const MAX_LAG_MS = 10_000

export function nodeLook({ role, lagMs, obstacle }: ClusterNode): 'good' | 'attention' | 'gone' {
  if (role === 'not heard') return 'gone'
  return obstacle === '' && lagMs < MAX_LAG_MS ? 'good' : 'attention'
}
