/**
 * A whole server for tests at the level of raw bytes: no ports, a false clock, a store in memory that becomes durable when
 * the test says so (or at each turn), sensors that the test drives.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { AuthPeer } from '../../auth/mechanism.ts'
import { PasswordHasher } from '../../auth/password.ts'
import { ScramClient } from '../../auth/scram/client.ts'
import { deriveKeys, MIN_ITERATIONS, type ScramKeys, verifierOf } from '../../auth/scram/keys.ts'
import { StreamLink } from '../../protocol/link/stream.ts'
import type { ClusterControl } from '../../server/cluster/control.ts'
import type { FileSystemSpace } from '../../server/kernel/accounts/quotas.ts'
import type { Address } from '../../server/kernel/core/address.ts'
import { createLogger } from '../../server/kernel/core/log.ts'
import type { SensorHub } from '../../server/kernel/metrics/sensor-door.ts'
import type { FeedingNodes, Joining } from '../../server/kit/producers.ts'
import { type Config, defaultConfig, type ReloadableConfig } from '../../server/start/config.ts'
import { type RunningServer, startServer } from '../../server/start/server.ts'
import { command } from './bytes.ts'
import { firstLeak } from './canaries.ts'
import { FakeClock } from './fake-clock.ts'
import { joinedPair } from './memory-network.ts'
import { MemoryStore } from './memory-store/store.ts'
import { RawPeer } from './raw-peer.ts'
import { Seat } from './seat.ts'
import { PushSensor, SlowSensor, ThingSensor } from './test-sensor.ts'

/** The address that the source of a key of the configuration is bound to; of several, the one with that index. */
export function boundTo({ sources }: RunningServer, key: string, index = 0): Address | undefined {
  return sources.filter((bound) => bound.key.startsWith(key))[index]?.address
}

type Deep<T> = { readonly [K in keyof T]?: T[K] extends object ? Partial<T[K]> : T[K] }

export interface TestProducerOptions {
  readonly config?: Deep<Config>
  /** The part of the configuration that can be read again; in it stand the live keys. */
  readonly reloadable?: ReloadableConfig
  readonly store?: MemoryStore
  readonly clock?: FakeClock
  /** The name of the node, if it is one of a cluster. */
  readonly node?: string
  /** For names to be dialled. */
  readonly resolve?: (name: string) => Promise<readonly string[]>
  /** Makes the streams to upstreams, instead of the network. */
  readonly connect?: Joining['connect']
  /** The space on the disk; by default there is plenty. */
  readonly diskSpace?: FileSystemSpace
  /** What a password hash costs, as a binary logarithm: by default the least there is. */
  readonly hashRounds?: number
  /** Adds more sensors at each start. */
  readonly sensors?: (hub: SensorHub) => void
  /** The node that the server belongs to. */
  readonly cluster?: ClusterControl
  /** The nodes whose feeds it takes. */
  readonly nodes?: FeedingNodes
}

/** Where the times of test values begin, microseconds. */
export const EPOCH = 1_700_000_000_000_000

/** Its schemas take longer to check than a server to start. */
const DEFAULTS = defaultConfig()

const PLENTY: FileSystemSpace = { sizeBytes: 2 ** 40, freeBytes: 2 ** 40 }

/** What outlives a process, or a crash of it. */
interface World {
  readonly directory: string
  readonly clock: FakeClock
  /** By `tenant/name`, what each user proves who it is with. */
  readonly keys: Map<string, ScramKeys>
  readonly passwords: string[]
  /** All there were, over all restarts. */
  readonly peers: RawPeer[]
  config: Deep<Config>
  readonly reloadable: ReloadableConfig | undefined
  readonly resolve: TestProducerOptions['resolve']
  readonly connect: TestProducerOptions['connect']
  readonly hashRounds: number
  readonly sensors: TestProducerOptions['sensors']
  readonly cluster: ClusterControl | undefined
  readonly nodes: FeedingNodes | undefined
  /** Lines of the log, all levels. */
  readonly logged: string[]
  diskSpace: FileSystemSpace
  node: string | undefined
}

interface Made {
  readonly world: World
  readonly store: MemoryStore
  readonly server: RunningServer
  readonly push: PushSensor
  readonly slow: SlowSensor
  readonly things: ThingSensor
}

export class TestProducer {
  readonly clock: FakeClock
  readonly store: MemoryStore
  readonly server: RunningServer
  readonly push: PushSensor
  readonly slow: SlowSensor
  readonly things: ThingSensor
  /** Lines of the log since the first start. */
  readonly logged: readonly string[]
  readonly #world: World
  readonly #peers: RawPeer[] = []
  #isOver = false

  private constructor(parts: Made) {
    this.#world = parts.world
    this.clock = parts.world.clock
    this.logged = parts.world.logged
    this.store = parts.store
    this.server = parts.server
    this.push = parts.push
    this.slow = parts.slow
    this.things = parts.things
  }

  static async start(options: TestProducerOptions = {}): Promise<TestProducer> {
    const world: World = {
      directory: mkdtempSync(join(tmpdir(), 'cinnabar-')),
      clock: options.clock ?? new FakeClock(),
      keys: new Map(),
      passwords: [],
      peers: [],
      config: options.config ?? {},
      reloadable: options.reloadable,
      resolve: options.resolve,
      connect: options.connect,
      hashRounds: options.hashRounds ?? 4,
      sensors: options.sensors,
      cluster: options.cluster,
      nodes: options.nodes,
      logged: [],
      diskSpace: options.diskSpace ?? PLENTY,
      node: options.node,
    }
    return TestProducer.#run(world, options.store ?? (await firstStart).crash())
  }

  /** What a first start leaves behind: hashing the admin's password takes longer than most tests. */
  static async firstStart(): Promise<MemoryStore> {
    const store = new MemoryStore()
    await (await TestProducer.start({ store })).stop()
    return store
  }

  static async #run(world: World, store: MemoryStore): Promise<TestProducer> {
    const { node, clock, config: given, resolve, hashRounds, sensors: more, logged } = world
    // Each node has files of its own.
    const directory = join(world.directory, node ?? '.')
    mkdirSync(directory, { recursive: true })
    const merged: Record<string, unknown> = {}
    for (const [section, keys] of Object.entries(DEFAULTS)) {
      const more = (given as Record<string, object>)[section]
      merged[section] = Array.isArray(keys) ? (more ?? keys) : { ...keys, ...more }
    }
    const config = {
      ...(merged as unknown as Config),
      producer: { name: node === undefined ? 'n1' : 'main', dataDir: directory },
      listen: { ...DEFAULTS.listen, tcp: undefined, http: undefined, ...given.listen },
      gmetric: { ...DEFAULTS.gmetric, listen: undefined, listenNamed: false, ...given.gmetric },
      auth: { ...DEFAULTS.auth, ...given.auth, scramIterations: 4096 },
      // Tests of it switch it on: it is a thread with files, by the true clock.
      history: { ...DEFAULTS.history, keepMs: 0, ...given.history },
      alerts: { ...DEFAULTS.alerts, builtin: false, ...given.alerts },
      // The false clock stands still.
      storage: { ...DEFAULTS.storage, lingerMs: 0 },
    }
    const slow = new SlowSensor()
    const things = new ThingSensor()
    let push: PushSensor | undefined
    const sensors = (hub: SensorHub): void => {
      push = new PushSensor(hub)
      hub.add(slow)
      hub.add(things)
      more?.(hub)
    }
    const log = createLogger('trace', { write: (line) => void logged.push(line) })
    const server = await startServer({
      config,
      node,
      reloadable: world.reloadable,
      clock,
      store,
      hasher: new PasswordHasher({ rounds: hashRounds }),
      log,
      sensors,
      cluster: world.cluster,
      nodes: world.nodes,
      resolve,
      connect: world.connect,
      diskSpace: () => world.diskSpace,
      adminPassword: 'admin-password',
    })
    return new TestProducer({
      world,
      store,
      server,
      slow,
      things,
      push: push as unknown as PushSensor,
    })
  }

  /** The process dies and another one starts with what was durable. The false clock goes on. Sensors begin anew. */
  async crash(): Promise<TestProducer> {
    const survivor = this.store.crash()
    survivor.manual = false
    for (const peer of this.#peers) peer.destroy()
    await this.settle()
    return TestProducer.#run(this.#world, survivor)
  }

  /** The node dies, and another one of the cluster serves what was durable, with files of its own. */
  takeOver(node: string): Promise<TestProducer> {
    this.#world.node = node
    return this.crash()
  }

  /** A clean stop and a start, with another store if one is given. The false clock goes on by `downMs` in between. */
  async restart(downMs = 0, store = this.store): Promise<TestProducer> {
    await this.#end()
    this.clock.advance(downMs)
    return TestProducer.#run(this.#world, store)
  }

  /** Throws if a secret was written down. */
  async stop(): Promise<void> {
    await this.#end()
    rmSync(this.#world.directory, { recursive: true, force: true })
    const records = (await this.store.audit(0, Number.POSITIVE_INFINITY)).map((record) => JSON.stringify(record))
    const said = this.#world.peers.flatMap(({ log }) =>
      log.map((message) => ('detail' in message ? message.detail : '')),
    )
    const leak = firstLeak([...this.logged, ...records, ...said], this.#secrets())
    if (leak !== undefined) throw new Error(`a secret was written down: ${leak}`)
  }

  #secrets(): Set<string> {
    const { keys, passwords } = this.#world
    const clientKeys = [...keys.values()].map(({ clientKey }) => Buffer.from(clientKey).toString('base64'))
    const secrets = new Set(['admin-password', ...passwords, ...clientKeys])
    for (const { secrets: sent } of this.#world.peers) for (const secret of sent) secrets.add(secret)
    return secrets
  }

  async #end(): Promise<void> {
    this.#isOver = true
    this.store.manual = false
    this.store.complete()
    await this.server.stop()
  }

  /** The data directory, which is another one for each node. */
  get dataDir(): string {
    return join(this.#world.directory, this.#world.node ?? '.')
  }

  /** The configuration of the next start. */
  set config(config: Deep<Config>) {
    this.#world.config = config
  }

  /** The space on the disk, as the producer finds it with the next batch. */
  set diskSpace(space: FileSystemSpace) {
    this.#world.diskSpace = space
  }

  /** A value of `test.a` of host h1, or of another name: a uint32, `value` microseconds after EPOCH. */
  emit(value: number, name = 'test.a'): void {
    this.push.push(name, { type: 2, value }, EPOCH + value)
  }

  /** A user with a password, or with keys that no password has been hashed for, which takes longer than most tests. */
  async addUser(name: string, { tenant = 'default', role = 'consumer', password = '' } = {}): Promise<void> {
    const keys = password === '' ? randomKeys() : await deriveKeys(password, randomBytes(16), MIN_ITERATIONS)
    this.#world.keys.set(`${tenant}/${name}`, keys)
    if (password !== '') this.#world.passwords.push(password)
    const scram = await verifierOf(keys)
    this.server.parts.producer.accounts.add({ tenant, name, role, bcrypt: undefined, scram, loopbackOnly: false })
  }

  /** A connection that has sent nothing yet. Its PRODUCER_CAPS is the first message. */
  connect(peer: Partial<AuthPeer> = {}): RawPeer {
    const near = this.accept(peer)
    if (near === undefined) throw new Error('the server has ended')
    const raw = new RawPeer(near)
    this.#peers.push(raw)
    this.#world.peers.push(raw)
    return raw
  }

  /** The consumer's end of a connection that has sent nothing yet; undefined if the server ends or has ended. */
  accept(peer: Partial<AuthPeer> = {}): Duplex | undefined {
    if (this.#isOver) return undefined
    const [near, far] = joinedPair()
    this.server.sessions.accept({
      link: new StreamLink(far),
      transport: 'tcp',
      format: 'xdr',
      peer: { address: '127.0.0.1', loopback: true, encrypted: false, ...peer },
    })
    return near
  }

  /** An authenticated connection and its channel. Users: `addUser` first; seqs from 0xfff00000 on are used. */
  async login(name = 'tester', tenant = 'default'): Promise<{ peer: RawPeer; channel: number }> {
    if (!this.#world.keys.has(`${tenant}/${name}`)) await this.addUser(name, { tenant })
    const peer = this.connect()
    await peer.until('caps')
    const identity = tenant === 'default' ? name : `${tenant}/${name}`
    const scram = new ScramClient({ identity, keys: this.#world.keys.get(`${tenant}/${name}`) })
    peer.send(command.auth(0xfff00000, 'scram-sha-256', scram.first()))
    const first = await peer.until('auth')
    peer.send(command.auth(0xfff00001, '', await scram.final(first.data)))
    scram.verify((await peer.until('auth')).data)
    peer.send(command.auth(0xfff00002, '', new Uint8Array(0)))
    const admitted = await peer.response(0xfff00002)
    if (admitted.status !== 0) throw new Error(`AUTH was answered with status ${admitted.status}: ${admitted.detail}`)
    await peer.until('caps')
    return { peer, channel: admitted.result }
  }

  /** The same, with what tests of rules do most. */
  async seat(name = 'tester', tenant = 'default'): Promise<Seat> {
    const { peer, channel } = await this.login(name, tenant)
    return new Seat(peer, channel)
  }

  /** Lets everything that is under way in this process run to its end: no timers, no I/O but memory. */
  async settle(): Promise<void> {
    for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
  }
}

function randomKeys(): ScramKeys {
  const [salt, clientKey, serverKey] = [randomBytes(16), randomBytes(32), randomBytes(32)]
  return { salt, iterations: MIN_ITERATIONS, clientKey, serverKey }
}

const firstStart = TestProducer.firstStart()
