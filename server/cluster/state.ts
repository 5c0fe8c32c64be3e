/** The state of the cluster as one node knows it: for `cinnabar cluster`, `producer.cluster`, the console and health checks. */

export type NodeRole = 'leader' | 'follower' | 'not heard'

export interface NodeState {
  readonly name: string
  readonly role: NodeRole
  /** Where other nodes reach it, `host:port`; "" if it is not configured. */
  readonly address: string
  /** The sequence of the last record that it has stored. */
  readonly sequence: number
  /** How old the oldest record is that it has not stored, in ms; 0 if it has all. */
  readonly lagMs: number
  /** Why it does not lead and could not, as a sentence; undefined if it could. */
  readonly obstacle: string | undefined
  readonly version: string
}

export interface ClusterState {
  readonly name: string
  /** The name of this node. */
  readonly node: string
  /** The name of the node that leads; undefined while none is known. */
  readonly leader: string | undefined
  readonly epoch: number
  /** The wall clock, in ms since 1970, at which the leader began; 0 if none is known. */
  readonly since: number
  /** All configured nodes, in the order of the configuration, then others that were heard. */
  readonly nodes: readonly NodeState[]
}
