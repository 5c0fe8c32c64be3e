/** The section [cluster] of the configuration of a node on loopback, for tests that start nodes as processes. */

/** Of all clusters of tests: each has nats-servers of its own. */
export const CLUSTER_NAME = 'main'

export interface ClusterTable {
  readonly node: string
  readonly nodes: readonly string[]
  /** URLs of the nats-servers. */
  readonly nats: readonly string[]
  /** Where the other nodes reach this one. */
  readonly port: number
  readonly lease?: string
}

export function clusterTable({ node, nodes, nats, port, lease = '1s' }: ClusterTable): string {
  return `[cluster]
name = "${CLUSTER_NAME}"
node = "${node}"
nodes = ${JSON.stringify(nodes)}
nats = ${JSON.stringify(nats)}
advertise = "127.0.0.1:${port}"
status = ""
replicas = ${nats.length >= 3 ? 3 : 1}
lease = "${lease}"
log_bytes = "1GiB"
`
}
