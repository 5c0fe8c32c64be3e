/** What the logs of a cluster are opened with. Nothing of NATS is loaded here, so that the types of the server need none of it. */

export interface NatsOptions {
  /** `nats://host:port` or `tls://host:port`; one `tls://` is enough for TLS to be required of all. */
  readonly servers: readonly string[]
  /** Paths of PEM files. They are read for each connection, so they can be renewed while the server runs. */
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** The path of a .creds file: a JWT and its key. Read for each connection. */
  readonly credentials?: string
  /** The name of a user whose password is the first line of `passwordFile`. Read for each connection. */
  readonly user?: string
  readonly passwordFile?: string
  /** `host:port` of the server to try first, since it has just answered: one that is cut off costs a new connection its whole time. */
  readonly first?: string | undefined
  /** How long a nats-server may take to answer, in ms. Default 2,000. */
  readonly timeoutMs?: number
  /** A nats-server that does not answer two pings, which are so many ms apart, is given up. Default 700. */
  readonly pingMs?: number
}

/** What the records of a log are of: the database, or the history beside it. Each has logs, and numbers, of its own. */
export type LogContent = 'database' | 'history'

export interface LogOptions extends NatsOptions {
  /** Letters, digits, `-` and `_`, as the name of a node is. */
  readonly cluster: string
  readonly node: string
  /** On how many nats-servers each record is, 1, 3 or 5. */
  readonly replicas: number
  /** The size at which the oldest records are discarded. */
  readonly maxBytes: number
  /** Default: the database. */
  readonly content?: LogContent
}
