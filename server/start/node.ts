/**
 * A node of a cluster as a whole: its store, its connections to nats-servers and other nodes, its front and its own listener,
 * and the server while it leads. Nothing is decided here; server/cluster/node.ts decides who leads.
 */
import { randomBytes } from 'node:crypto'
import type { NatsOptions } from '../../storage/replicated/nats.ts'
import { RECORD_FORMAT } from '../../storage/replicated/record.ts'
import { setAside } from '../../storage/replicated/set-aside.ts'
import { ReplicatedStore } from '../../storage/replicated/store.ts'
import { takeLock } from '../../storage/sqlite/database.ts'
import type { ClusterSection } from '../cluster/config.ts'
import type { ClusterControl } from '../cluster/control.ts'
import { Front } from '../cluster/front.ts'
import type { Leader, Leadership } from '../cluster/leadership.ts'
import { NatsBus } from '../cluster/nats-bus.ts'
import { ClusterNode } from '../cluster/node.ts'
import { NodeCertificates } from '../cluster/node-certificates.ts'
import { NodeListener } from '../cluster/node-listener.ts'
import type { Leading, LeadOptions, NodeFront } from '../cluster/node-options.ts'
import { RareWarnings } from '../cluster/rare-warnings.ts'
import { listenStatus } from '../cluster/status-listener.ts'
import type { ListenerName } from '../connections/passed-on.ts'
import type { Address } from '../core/address.ts'
import { type Clock, systemClock } from '../core/clock.ts'
import type { Logger } from '../core/log.ts'
import { checkAnywhere } from './anywhere.ts'
import type { Config } from './config.ts'
import { configurationDigest } from './configuration-digest.ts'
import { type RunningServer, type ServerOptions, softwareVersion, startServer } from './server.ts'

/** Connections of consumers that wait for a node to lead, and all that a front passes on. */
const FRONT_LIMITS = { connections: 10_000, held: 2_000 } as const
const CERTIFICATES_MS = 1_000

export interface NodeOptions extends Pick<ServerOptions, 'reloadable' | 'adminPassword' | 'foreign'> {
  readonly config: Config
  readonly cluster: ClusterSection
  /** The operator says that the data is older than what was last served: a log that is founded with it skips ids. */
  readonly restored: boolean
  readonly log: Logger
  readonly clock?: Clock
  /** Called when this node begins to lead and its server is open. */
  readonly onLeads: (server: RunningServer) => void
}

export interface RunningNode {
  readonly node: ClusterControl
  /** Fulfilled after `stop`; rejected with whatever else ends the node. */
  readonly ended: Promise<void>
  /** The server while this node leads; undefined otherwise. */
  readonly server: RunningServer | undefined
  /** Where consumers connect while this node follows. */
  readonly front: { readonly [N in ListenerName]: Address | undefined } | undefined
  /** A leader hands over; then everything is closed. */
  stop(): Promise<void>
}

/** Rejects with ListenError, FileError or StorageError if the node cannot begin; nothing is left open then. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const { config, cluster, clock = systemClock(), log } = options
  checkAnywhere(config, cluster.node, options.reloadable?.file)
  // Makes the directory, and finds another server there before anything else is done.
  takeLock(config.producer.dataDir).close()
  const certificates = cluster.tls && new NodeCertificates(cluster.tls)
  const warnings = new RareWarnings(log, clock)
  const parts = new NodeParts(options, certificates, warnings, clock)
  const { node } = parts
  const listener = new NodeListener({
    address: cluster.listen,
    key: 'cluster.listen',
    certificates,
    nodes: cluster.nodes,
    takerOf: (kind) => parts.server?.passedOn.get(kind as ListenerName),
    clock,
    warnings,
  })
  await listener.open()
  const watching = clock.setInterval(() => reload(certificates, log), CERTIFICATES_MS)
  const close = async (): Promise<void> => {
    clock.clear(watching)
    await listener.close()
  }
  let status: { close(): Promise<void> } | undefined
  try {
    status = cluster.status && (await openStatus(options, cluster.status, parts, clock))
  } catch (error) {
    await close()
    throw error
  }
  const run = async (): Promise<void> => {
    try {
      await node.run()
    } finally {
      await status?.close()
      await close()
    }
  }
  const ended = run()
  return {
    node,
    ended,
    get server() {
      return parts.server
    },
    get front() {
      return parts.bound
    },
    stop() {
      node.stop()
      return ended
    },
  }
}

function natsOptions({ nats, natsCa, credentials, user, passwordFile }: ClusterSection): NatsOptions {
  return {
    servers: nats,
    ...(natsCa !== undefined && { tls: { ca: natsCa } }),
    ...(credentials !== undefined && { credentials }),
    ...(user !== '' && { user }),
    ...(passwordFile !== undefined && { passwordFile }),
  }
}

/** The address that the others know this node by, if it is one of this machine for certain. */
function sourceOf({ node, nodes, listen }: ClusterSection): string | undefined {
  const own = nodes.find(({ name }) => name === node)
  return own?.host === listen.host ? own.host : undefined
}

function reload(certificates: NodeCertificates | undefined, log: Logger): void {
  const change = certificates?.reloadIfChanged()
  if (change !== undefined) log[change.severity]({}, change.detail)
}

function openStatus(
  { config, reloadable, log }: NodeOptions,
  address: Address,
  parts: NodeParts,
  clock: Clock,
): Promise<{ close(): Promise<void> }> {
  const { node } = parts
  return listenStatus({
    address,
    dataDir: config.producer.dataDir,
    cluster: node,
    health: { unready: () => parts.unready },
    openTo: () => (reloadable?.config ?? config).metrics.openTo,
    clock,
    log,
  })
}

/** The node with what it starts and stops: the front while it follows, the server while it leads. */
class NodeParts implements NodeFront, Leadership {
  readonly node: ClusterNode
  readonly #options: NodeOptions
  readonly #certificates: NodeCertificates | undefined
  readonly #warnings: RareWarnings
  readonly #clock: Clock
  #server: RunningServer | undefined
  #front: Front | undefined
  #bound: RunningNode['front']

  constructor(options: NodeOptions, certificates: NodeCertificates | undefined, warnings: RareWarnings, clock: Clock) {
    const { config, cluster, log } = options
    const { dataDir } = config.producer
    this.#options = options
    this.#certificates = certificates
    this.#warnings = warnings
    this.#clock = clock
    const nats = natsOptions(cluster)
    const replica = new ReplicatedStore({
      store: { directory: dataDir, synchronous: config.storage.synchronous, restored: options.restored },
      log: {
        ...nats,
        cluster: cluster.name,
        node: cluster.node,
        replicas: cluster.replicas,
        maxBytes: cluster.logBytes,
      },
      wallMs: () => clock.wallMs(),
    })
    this.node = new ClusterNode({
      config: cluster,
      run: randomBytes(8).toString('hex'),
      configuration: configurationDigest(config),
      version: softwareVersion(),
      format: RECORD_FORMAT,
      clock,
      log,
      random: Math.random,
      bus: new NatsBus({ cluster: cluster.name, node: cluster.node, nats, clock, log }),
      replica,
      lead: (lead) => this.#lead(lead),
      front: this,
      setAside: () => setAside(dataDir, clock.wallMs()),
      copy: async (leader, progress, signal) => (await replica.copy(leader, progress, signal)).aside,
    })
  }

  get server(): RunningServer | undefined {
    return this.#server
  }

  get bound(): RunningNode['front'] {
    return this.#bound
  }

  /** Why the server that runs here takes no values; undefined if it does. */
  get unready(): string | undefined {
    const state = this.#server?.parts.storage.state
    return state === undefined || state === 'ok' ? undefined : `storage: ${state}`
  }

  get leader(): Leader | undefined {
    return this.node.leader
  }

  onChange(listener: () => void): () => void {
    return this.node.onChange(listener)
  }

  async start(): Promise<void> {
    if (this.#front !== undefined) return
    const { listen } = this.#options.config
    const front = new Front({
      listen: { tcp: listen.tcp, tls: listen.tls, http: listen.http, https: listen.https },
      leadership: this,
      from: sourceOf(this.#options.cluster),
      certificates: this.#certificates,
      limits: FRONT_LIMITS,
      clock: this.#clock,
      warnings: this.#warnings,
    })
    this.#bound = await front.open()
    this.#front = front
  }

  async stop(): Promise<void> {
    const front = this.#front
    this.#front = undefined
    this.#bound = undefined
    await front?.close()
  }

  async #lead({ store, downMs, onFailed }: LeadOptions): Promise<Leading> {
    const { config, cluster, reloadable, adminPassword, foreign, log, onLeads } = this.#options
    const server = await startServer({
      config: reloadable?.config ?? config,
      reloadable,
      clock: this.#clock,
      log,
      store,
      node: cluster.node,
      ...(downMs !== undefined && { downMs }),
      cluster: this.node,
      adminPassword,
      ...(foreign !== undefined && { foreign }),
      onFailed,
    })
    this.#server = server
    onLeads(server)
    const end = (ending: Promise<void>): Promise<void> =>
      ending.finally(() => {
        this.#server = undefined
      })
    return {
      notify: (notice) => server.parts.notices.emit(notice),
      stop: () => end(server.stop()),
      depose: () => end(server.depose()),
    }
  }
}
