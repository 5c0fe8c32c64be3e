/**
 * The feeder of a node of a cluster: a server with a small database of its own, which takes what is sent to one address while the
 * node follows. It has one consumer, the node that leads, and keeps for it whatever channels of the cluster want; nothing else is
 * kept. While its node leads it listens nowhere, and is told what is wanted all the same, so that it has it at once when the
 * node follows again.
 */
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { formatIdentity } from '../../auth/identity.ts'
import { StreamLink } from '../../protocol/link/stream.ts'
import { compareLeads, type FeedStream, type Lead } from '../cluster/feed-stream.ts'
import type { Channel } from '../kernel/channels/channel.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { Logger } from '../kernel/core/log.ts'
import { isListening } from '../kernel/metrics/kinds.ts'
import type { SensorStatus } from '../kernel/metrics/metric.ts'
import type { Producer } from './compose.ts'
import type { Config } from './config.ts'
import { FEED_FAMILIES, feedsAlone, tenantsOfFeeds } from './feeds.ts'
import { type RunningServer, startServer } from './server.ts'

/** Below the data directory of the node. */
export const FEEDS_DIRECTORY = 'feeds'
const ROLE = 'feeds'
/** What the node that leads asks for, besides what feeds bring. */
const ABOUT_FEEDS = ['producer.metrics', 'producer.catalogue', 'producer.bindings']
/** How long the node that leads tries to take what is left: while this one still listens, and after that. */
const TAKING_MS = 2_000
const TAKING_REST_MS = 1_000
const LOOK_MS = 5

/** Two for each tenant, and those that are about to end. */
const MAX_CONNECTIONS = 1_000
/** What a link binds is bound at the node that leads, within the limits there. */
const MAX_IDS = 16_777_216

export interface FeederOptions {
  /** The configuration in force. */
  readonly config: () => Config
  /** The name of this node. */
  readonly node: string
  readonly clock: Clock
  readonly log: Logger
  /** Storing failed for good: nothing more is kept here. */
  readonly onFailed: (error: Error) => void
}

export class Feeder {
  readonly #options: FeederOptions
  readonly #sockets = new Set<Socket>()
  #server: RunningServer | undefined
  #isListening = false
  #isClosed = false
  /** The newest lead that has connected. */
  #lead: Lead = { log: 0, epoch: 0 }
  /** What is done to the server, one thing after the other. */
  #last: Promise<void> = Promise.resolve()

  constructor(options: FeederOptions) {
    this.#options = options
  }

  /** The channels of the node that leads. */
  get channels(): Iterable<Channel> {
    return this.#server?.parts.producer.registry.all() ?? []
  }

  /** Values that wait for the node that leads. */
  get waiting(): number {
    const { accepted, settled } = this.#counts
    return accepted - settled
  }

  /** Of durable channels: values that were accepted, and those of them that were taken, or dropped. */
  get #counts(): { readonly accepted: number; readonly settled: number } {
    let [accepted, settled] = [0, 0]
    for (const { row, queue } of this.channels) {
      if (!row.durable) continue
      const { counts } = queue
      accepted += counts.accepted
      settled += counts.accepted - counts.queued - counts.inFlight
    }
    return { accepted, settled }
  }

  /** The sensors that take feeds, with what they have counted since they began to listen. */
  get statuses(): readonly SensorStatus[] {
    if (!this.#isListening) return []
    const { sensors = [] } = this.#server?.parts.hub ?? {}
    return sensors.flatMap((sensor) => {
      return isListening(sensor) && FEED_FAMILIES.includes(sensor.family) ? (sensor.status?.() ?? []) : []
    })
  }

  /** Listens for feeds, unless it does. Rejects with ListenError, StorageError or whatever else keeps it from running. */
  listen(): Promise<void> {
    return this.#next(async () => {
      if (this.#isListening || this.#isClosed) return
      const server = this.#server ?? (await this.#start())
      this.reload()
      try {
        await server.listen()
      } catch (error) {
        // Some addresses may be bound by now.
        await this.#stop()
        throw error
      }
      this.#isListening = true
    })
  }

  /** The configuration was read again. */
  reload(): void {
    for (const source of this.#server?.parts.sources ?? []) source.reload?.(this.#config)
  }

  /** As `FeedingNodes.takeOwn`. */
  async takeOwn(): Promise<void> {
    const { log } = this.#options
    await this.#last
    const server = this.#server
    if (server === undefined || !this.#isListening) return
    // With a busy feed something always waits: only what is there now is waited for while the addresses are open.
    const { accepted } = this.#counts
    await this.#until(() => this.#counts.settled >= accepted, TAKING_MS)
    this.#isListening = false
    await server.silence()
    if (!(await this.#until(() => this.waiting === 0, TAKING_REST_MS))) {
      log.warn({ values: this.waiting }, 'values that were sent to this node before it led are taken later')
    }
    // The series of the sensors go on at the server that leads.
    this.#next(async () => {
      await this.#stop()
      if (!this.#isClosed) await this.#start()
    }).catch((error: unknown) => log.error({ err: error }, 'the feeder of this node cannot be started again'))
  }

  /** Takes a connection of the node that leads. */
  take(socket: Socket, { tenant, ...lead }: FeedStream): void {
    const server = this.#server
    const age = compareLeads(lead, this.#lead)
    if (server === undefined || age < 0) {
      socket.destroy()
      return
    }
    if (age > 0) for (const older of this.#sockets) older.destroy()
    this.#lead = lead
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    const { remoteAddress: address = '' } = socket
    // The nodes have proven to each other that they are such; the user of the tenant needs no other proof.
    const certificate = {
      subject: formatIdentity({ tenant, name: userOf(this.#options.node) }),
      serial: '',
      fingerprint: '',
      raw: new Uint8Array(0),
      validUntil: Number.POSITIVE_INFINITY,
    }
    const peer = { address, loopback: false, encrypted: true, certificate }
    server.sessions.accept({ link: new StreamLink(socket), transport: 'tls', format: 'xdr', peer })
  }

  /** Stores what was taken, and ends. */
  close(): Promise<void> {
    this.#isClosed = true
    return this.#next(() => this.#stop())
  }

  /** Nothing but what feeds need. What users may have is judged by the node that leads, which asks for all of them together. */
  get #config(): Config {
    const { config, node } = this.#options
    return configOfFeeder(config(), node)
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => {})
    return done
  }

  async #start(): Promise<RunningServer> {
    const { config, node, clock, log, onFailed } = this.#options
    this.#server = await startServer({
      config: this.#config,
      node,
      clock,
      log,
      users: (producer) => makeUsers(producer, node, tenantsOfFeeds(config())),
      isSilent: true,
      onFailed,
    })
    return this.#server
  }

  async #stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    this.#isListening = false
    await server?.stop()
  }

  /** Waits for something; false if that takes too long. */
  #until(holds: () => boolean, forMs: number): Promise<boolean> {
    const { clock } = this.#options
    const endMs = clock.monotonicMs() + forMs
    return new Promise((resolve) => {
      const look = (): void => {
        if (holds()) resolve(true)
        else if (clock.monotonicMs() >= endMs) resolve(false)
        else clock.setTimeout(look, LOOK_MS)
      }
      look()
    })
  }
}

/** The user of each tenant as which the node that leads consumes the feeder of a node. */
export function userOf(node: string): string {
  return `node@${node}`
}

function configOfFeeder(config: Config, node: string): Config {
  const nowhere = { tcp: undefined, tls: undefined, http: undefined, https: undefined }
  const noFiles = { cert: undefined, key: undefined, clientCa: undefined, clientRevoked: undefined }
  const { limits, quota } = config
  return {
    ...feedsAlone(config),
    producer: { name: node, dataDir: join(config.producer.dataDir, FEEDS_DIRECTORY) },
    listen: nowhere,
    tls: noFiles,
    jwt: { ...config.jwt, keys: undefined },
    drain: [],
    announce: [],
    exec: [],
    cluster: undefined,
    limits: { ...limits, connections: MAX_CONNECTIONS, instancesPerIdentity: MAX_IDS, patternsPerIdentity: MAX_IDS },
    quota: { ...quota, connections: 0, channels: 0, instances: 0 },
    recent: { ...config.recent, maxBytes: 0 },
    history: { ...config.history, keepMs: 0 },
  }
}

/** A user of each tenant that has feeds, who may read what these bring. */
function makeUsers({ accounts, rights: { rules } }: Producer, node: string, tenants: readonly string[]): void {
  const name = userOf(node)
  for (const tenant of tenants) {
    if (accounts.find(tenant, name) !== undefined) continue
    accounts.add({ tenant, name, role: ROLE, bcrypt: undefined, scram: undefined, loopbackOnly: false })
  }
  if (rules.of(ROLE).length > 0) return
  const rule = { role: ROLE, command: 'COLLECT', where: {} } as const
  rules.add({ ...rule, effect: 'deny', object: '*' })
  for (const family of FEED_FAMILIES) rules.add({ ...rule, effect: 'allow', object: `${family}*` })
  for (const object of ABOUT_FEEDS) rules.add({ ...rule, effect: 'allow', object })
}
