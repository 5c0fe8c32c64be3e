/**
 * A node of a cluster as a whole: its store, its connections to nats-servers and other nodes, its front and its own listener,
 * and the server while it leads. Nothing is decided here; server/cluster/node.ts decides who leads.
 */
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import type { HistoryLogOptions } from '../../storage/history/store.ts'
import type { NatsOptions } from '../../storage/replicated/options.ts'
import { RECORD_FORMAT } from '../../storage/replicated/record.ts'
import { ReplicatedStore } from '../../storage/replicated/store.ts'
import { takeLock } from '../../storage/sqlite/database.ts'
import type { ClusterSection } from '../cluster/config.ts'
import type { ClusterControl } from '../cluster/control.ts'
import { connectToFeeder, feedStreamOf } from '../cluster/feed-stream.ts'
import { Front, type FrontCounters, type FrontOptions } from '../cluster/front.ts'
import type { Leader, Leadership } from '../cluster/leadership.ts'
import { NatsBus } from '../cluster/nats-bus.ts'
import { ClusterNode } from '../cluster/node.ts'
import { NodeCertificates } from '../cluster/node-certificates.ts'
import { NodeListener } from '../cluster/node-listener.ts'
import type { Leading, LeadOptions, NodeFront } from '../cluster/node-options.ts'
import type { NodeTraffic } from '../cluster/own-figures.ts'
import { listenStatus } from '../cluster/status-listener.ts'
import type { ListenerName, TakePassed } from '../edge/passed-on.ts'
import type { Address } from '../kernel/core/address.ts'
import { type Clock, systemClock } from '../kernel/core/clock.ts'
import type { Logger } from '../kernel/core/log.ts'
import { countOpenFiles } from '../kernel/core/open-files.ts'
import { RareWarnings } from '../kernel/core/rare-warnings.ts'
import type { FeedingNodes } from '../kit/producers.ts'
import { HistoryFollower } from '../wings/history/follower.ts'
import { checkAnywhere } from './anywhere.ts'
import type { Config } from './config.ts'
import { ConfigurationDigest } from './configuration-digest.ts'
import { Feeder } from './feeder.ts'
import { FEED_FAMILIES, tenantsOfFeeds } from './feeds.ts'
import { type RunningServer, type ServerOptions, softwareVersion, startServer } from './server.ts'

/** Of the files that the process may have open, the share of connections that a front passes on: each takes two, so half is left. */
const FRONT_FILES = 1 / 4
/** Of those connections, the share that may wait for a node to lead. */
const FRONT_HELD = 1 / 5
/** Of the bytes of the log, how many the log of the history may have besides. */
const HISTORY_SHARE = 1 / 4
/** How often files are looked at. */
const FILES_MS = 1_000
/** Of the connection over which a node is heard, which gives up a nats-server that answers two of them no more. */
const PINGS_PER_LEASE = 8

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
  /** The configuration was read again: what of it concerns feeds is put in force while this node follows. */
  reload(): void
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
    takerOf: (kind) => parts.takerOf(kind),
    clock,
    warnings,
  })
  await listener.open()
  const watching = clock.setInterval(() => {
    reload(certificates, log)
    parts.digest.refresh()
  }, FILES_MS)
  const close = async (): Promise<void> => {
    clock.clear(watching)
    await parts.feeder?.close()
    await listener.close()
  }
  let status: { close(): Promise<void> } | undefined
  try {
    const traffic = () => parts.traffic(listener)
    status = cluster.status && (await openStatus(options, cluster.status, parts, traffic, clock))
    await parts.feeder?.listen()
  } catch (error) {
    await status?.close()
    await close()
    throw error
  }
  const run = async (): Promise<void> => {
    try {
      await node.run()
    } finally {
      await status?.close()
      await parts.close()
      await close()
    }
  }
  const ended = Promise.race([run(), parts.failure])
  return {
    node,
    ended,
    get server() {
      return parts.server
    },
    get front() {
      return parts.bound
    },
    reload() {
      parts.feeder?.reload()
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

/** As many connections as a server may have, if the process may open so many files. */
export function frontLimits(connections: number, openFiles = Number.POSITIVE_INFINITY): FrontOptions['limits'] {
  const most = Math.min(connections, Math.floor(openFiles * FRONT_FILES))
  return { connections: most, held: Math.ceil(most * FRONT_HELD) }
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
  traffic: () => NodeTraffic,
  clock: Clock,
): Promise<{ close(): Promise<void> }> {
  const { node, feeder } = parts
  return listenStatus({
    address,
    dataDir: config.producer.dataDir,
    cluster: node,
    health: { unready: () => parts.unready },
    feeds: feeder && (() => feeder),
    openTo: () => (reloadable?.config ?? config).metrics.openTo,
    traffic,
    clock,
    log,
  })
}

/** The node with what it starts and stops: the front while it follows, the server while it leads. */
class NodeParts implements NodeFront, Leadership {
  readonly node: ClusterNode
  readonly digest: ConfigurationDigest
  /** Undefined if there are no feeds. */
  readonly feeder: Feeder | undefined
  readonly #options: NodeOptions
  readonly #tenants: readonly string[]
  readonly #replica: ReplicatedStore
  readonly #historyLog: HistoryLogOptions
  /** What is recorded, while this node follows. */
  readonly #history: HistoryFollower
  #failed: (error: Error) => void = () => {}
  /** Rejects when the feeder cannot store any more. */
  readonly failure = new Promise<never>((_, reject) => {
    this.#failed = reject
  })
  readonly #certificates: NodeCertificates | undefined
  readonly #warnings: RareWarnings
  readonly #clock: Clock
  #server: RunningServer | undefined
  #front: Front | undefined
  #bound: RunningNode['front']
  /** The last front, with connections that came before this node led. */
  #retired: Front | undefined
  /** Those of all fronts, one after the other. */
  readonly #counters: FrontCounters = { passed: 0, expired: 0, refused: 0, failed: 0 }

  constructor(options: NodeOptions, certificates: NodeCertificates | undefined, warnings: RareWarnings, clock: Clock) {
    const { config, cluster, reloadable, log } = options
    const { dataDir } = config.producer
    this.digest = new ConfigurationDigest(() => reloadable?.config ?? config)
    this.#options = options
    this.#tenants = tenantsOfFeeds(config)
    const inForce = (): Config => reloadable?.config ?? config
    const onFailed = (error: Error): void => this.#failed(error)
    this.feeder =
      this.#tenants.length === 0 ? undefined : new Feeder({ config: inForce, node: cluster.node, clock, log, onFailed })
    this.#certificates = certificates
    this.#warnings = warnings
    this.#clock = clock
    const nats = natsOptions(cluster)
    // The loss of one nats-server must not silence a leader for a lease.
    const pingMs = cluster.leaseMs / PINGS_PER_LEASE
    const where = { ...nats, cluster: cluster.name, node: cluster.node, replicas: cluster.replicas }
    const replica = new ReplicatedStore({
      store: { directory: dataDir, synchronous: config.storage.synchronous, restored: options.restored },
      log: { ...where, maxBytes: cluster.logBytes },
      wallMs: () => clock.wallMs(),
    })
    this.#replica = replica
    this.#historyLog = { ...where, maxBytes: Math.floor(cluster.logBytes * HISTORY_SHARE) }
    this.#history = new HistoryFollower({
      clock,
      log,
      dataDir,
      section: () => inForce().history,
      historyLog: this.#historyLog,
    })
    this.node = new ClusterNode({
      config: cluster,
      run: randomBytes(8).toString('hex'),
      configuration: () => this.digest.text,
      version: softwareVersion(),
      format: RECORD_FORMAT,
      clock,
      log,
      random: Math.random,
      bus: new NatsBus({ cluster: cluster.name, node: cluster.node, nats: { ...nats, pingMs }, clock, log }),
      replica,
      lead: (lead) => this.#lead(lead),
      front: this,
      copy: async (leader, progress, signal) => (await replica.copy(leader, progress, signal)).aside,
    })
  }

  get server(): RunningServer | undefined {
    return this.#server
  }

  traffic({ counters: listener }: NodeListener): NodeTraffic {
    const fronts = [this.#front, this.#retired].flatMap((front) => front ?? [])
    const waiting = fronts.reduce((sum, { held }) => sum + held, 0)
    const passing = fronts.reduce((sum, front) => sum + front.passing, 0)
    const { ignoredMessages } = this.node
    return { waiting, passing, front: this.#counters, listener, ignoredMessages }
  }

  get bound(): RunningNode['front'] {
    return this.#bound
  }

  /** Why consumers cannot connect here, or the server that runs here takes no values; undefined if they can, and it does. */
  get unready(): string | undefined {
    if (this.#server === undefined) return this.#bound === undefined ? 'starting: no listener is open yet' : undefined
    const { storage, producer } = this.#server.parts
    if (storage.state !== 'ok') return `storage: ${storage.state}`
    return producer.openFiles.problem && `files: ${producer.openFiles.problem}`
  }

  get leader(): Leader | undefined {
    return this.node.leader
  }

  onChange(listener: () => void): () => void {
    return this.node.onChange(listener)
  }

  /** What takes a connection of another node, or of this one to its own feeder. */
  takerOf(kind: string): TakePassed | undefined {
    const stream = feedStreamOf(kind)
    if (stream === undefined) return this.#server?.passedOn.get(kind as ListenerName)
    const { feeder } = this
    return feeder && ((socket) => feeder.take(socket, stream))
  }

  async start(): Promise<void> {
    this.#history.start()
    await this.feeder?.listen()
    if (this.#front !== undefined) return
    await this.#retired?.close()
    this.#retired = undefined
    const { listen, limits } = this.#options.config
    const front = new Front({
      listen: { tcp: listen.tcp, tls: listen.tls, http: listen.http, https: listen.https },
      leadership: this,
      from: sourceOf(this.#options.cluster),
      certificates: this.#certificates,
      limits: frontLimits(limits.connections, countOpenFiles().max),
      counters: this.#counters,
      clock: this.#clock,
      warnings: this.#warnings,
    })
    this.#bound = await front.open()
    this.#front = front
  }

  async stop(): Promise<void> {
    // Its files are free by the time that the server wants them, or a little later.
    this.#history.stop()
    await this.#retired?.close()
    this.#retired = this.#front
    this.#front = undefined
    this.#bound = undefined
    this.#retired?.retire()
  }

  async close(): Promise<void> {
    this.#history.stop()
    await this.#history.released()
    await this.#front?.close()
    await this.#retired?.close()
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
      nodes: this.#feedingNodes,
      sharedHistory: {
        log: this.#historyLog,
        lead: () => ({ log: this.#replica.stored?.log ?? 0, epoch: this.#replica.epoch }),
        released: () => this.#history.released(),
      },
      adminPassword,
      ...(foreign !== undefined && { foreign }),
      onFailed,
    })
    this.#server = server
    onLeads(server)
    // Consumers that came here while no node led are connections of another node, as far as the server knows.
    const own = cluster.nodes.find(({ name }) => name === cluster.node)
    this.#retired?.passTo(own && { name: own.name, address: own })
    const end = async (ending: Promise<void>): Promise<void> => {
      try {
        await ending
      } finally {
        this.#server = undefined
        // What the node does next may take long, such as waiting for nats-servers. If it fails now, it is tried again then.
        this.feeder?.listen().catch((error: Error) => log.warn({ reason: error.message }, 'no feeds are taken yet'))
      }
    }
    return {
      notify: (notice) => server.parts.notices.emit(notice),
      stop: () => end(server.stop()),
      depose: () => end(server.depose()),
    }
  }

  /** For the server that leads. Undefined if there are no feeds. */
  get #feedingNodes(): FeedingNodes | undefined {
    const { feeder } = this
    if (feeder === undefined) return undefined
    return {
      names: this.#options.cluster.nodes.map(({ name }) => name),
      tenants: this.#tenants,
      families: FEED_FAMILIES,
      connect: (node, tenant, signal) => this.#connectToFeeder(node, tenant, signal),
      takeOwn: () => feeder.takeOwn(),
    }
  }

  async #connectToFeeder(name: string, tenant: string, signal: AbortSignal): Promise<Duplex> {
    const { epoch, stored } = this.#replica
    const { nodes, node } = this.#options.cluster
    const address = nodes.find((each) => each.name === name)
    if (address === undefined) throw new Error(`there is no node ${name}`)
    if (stored === undefined) throw new Error('this node does not lead')
    const from = nodes.find((each) => each.name === node)?.host
    const options = { certificates: this.#certificates, from }
    return connectToFeeder({ name, address }, { log: stored.log, epoch, tenant }, options, signal)
  }
}
