/** The section [cluster] of the configuration of a node on loopback, for tests that start nodes as processes. */

/** Of all clusters of tests: each has nats-servers of its own. */
export const CLUSTER_NAME = 'main'

export interface ClusterTable {
  readonly node: string
  /** All nodes, with where they reach each other; the host is loopback by default. */
  readonly nodes: readonly { readonly name: string; readonly port: number; readonly host?: string }[]
  /** URLs of the nats-servers. */
  readonly nats: readonly string[]
  readonly lease?: string
  /** Paths of PEM files; needed anywhere but on loopback. `ca` has issued the certificates of the nodes and of the nats-servers. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string } | undefined
}

export function clusterTable(table: ClusterTable): string {
  const { node, nodes, nats, lease = '1s', tls } = table
  const files = tls && { nats_ca: tls.ca, tls_ca: tls.ca, tls_cert: tls.cert, tls_key: tls.key }
  const lines = Object.entries(files ?? {}).map(([key, path]) => `${key} = ${JSON.stringify(path)}\n`)
  return `[cluster]
name = "${CLUSTER_NAME}"
node = "${node}"
nodes = ${JSON.stringify(nodes.map(({ name, port, host = '127.0.0.1' }) => `${name}=${host}:${port}`))}
nats = ${JSON.stringify(nats)}
status = ""
replicas = ${nats.length >= 3 ? 3 : 1}
lease = "${lease}"
log_bytes = "1GiB"
${lines.join('')}`
}
