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
  /** The host where the other nodes reach this one; loopback by default. */
  readonly host?: string
  /** Paths of PEM files; needed anywhere but on loopback. `ca` has issued the certificates of the nodes and of the nats-servers. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string } | undefined
}

export function clusterTable(table: ClusterTable): string {
  const { node, nodes, nats, port, lease = '1s', host = '127.0.0.1', tls } = table
  const files = tls && { nats_ca: tls.ca, tls_ca: tls.ca, tls_cert: tls.cert, tls_key: tls.key }
  const lines = Object.entries(files ?? {}).map(([key, path]) => `${key} = ${JSON.stringify(path)}\n`)
  return `[cluster]
name = "${CLUSTER_NAME}"
node = "${node}"
nodes = ${JSON.stringify(nodes)}
nats = ${JSON.stringify(nats)}
advertise = "${host}:${port}"
status = ""
replicas = ${nats.length >= 3 ? 3 : 1}
lease = "${lease}"
log_bytes = "1GiB"
${lines.join('')}`
}
