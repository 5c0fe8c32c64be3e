/** The section [cluster] of the configuration of a node on loopback, for tests that start nodes as processes. */

/** Of all clusters of tests: each has nats-servers of its own. */
export const CLUSTER_NAME = 'main'

export interface ClusterTable {
  readonly node: string
  /** All nodes, with the ports at which they reach each other. */
  readonly nodes: readonly { readonly name: string; readonly port: number }[]
  /** URLs of the nats-servers. */
  readonly nats: readonly string[]
  readonly lease?: string
}

export function clusterTable({ node, nodes, nats, lease = '1s' }: ClusterTable): string {
  return `[cluster]
name = "${CLUSTER_NAME}"
node = "${node}"
nodes = ${JSON.stringify(nodes.map(({ name, port }) => `${name}=127.0.0.1:${port}`))}
nats = ${JSON.stringify(nats)}
status = ""
replicas = ${nats.length >= 3 ? 3 : 1}
lease = "${lease}"
log_bytes = "1GiB"
`
}
