/**
 * A cluster in memory, for tests of the node: nodes whose processes can be frozen and killed, and whose wires can be cut, over a
 * log in memory. Time is that of a fake clock.
 */
import { pino } from 'pino'
import type { Bus } from '../../../server/cluster/alive.ts'
import { ClusterNode } from '../../../server/cluster/node.ts'
import type { ClusterNotice, Leading, LeadOptions, Received } from '../../../server/cluster/node-options.ts'
import type { Clock, Timer } from '../../../server/kernel/core/clock.ts'
import { NOWHERE } from '../../../storage/sqlite/log-places.ts'
import { StorageError } from '../../../storage/store.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { type ModelDisk, type ModelHost, ModelLogs, ModelReplica } from './model-log.ts'

export const LEASE_MS = 2_000
const STEP_MS = 10
const BUS_MS = 1
const COPY_MS = 500

/** The clock of a process: while that is frozen no timer runs, and afterwards those that were due; none after its end. */
class ProcessClock implements Clock {
  readonly #clock: FakeClock
  #late: (() => void)[] = []
  #isFrozen = false
  isDead = false

  constructor(clock: FakeClock) {
    this.#clock = clock
  }

  wallMs = (): number => this.#clock.wallMs()
  monotonicMs = (): number => this.#clock.monotonicMs()
  microseconds = (): number => this.#clock.microseconds()

  setTimeout(callback: () => void, delayMs: number): Timer {
    let isCleared = false
    const run = (): void => {
      if (!isCleared) this.run(callback)
    }
    const timer = this.#clock.setTimeout(() => (this.#isFrozen ? void this.#late.push(run) : run()), delayMs)
    return {
      cancel() {
        isCleared = true
        timer.cancel()
      },
    }
  }

  setInterval(callback: () => void, intervalMs: number): Timer {
    let timer: Timer | undefined
    const next = (): void => {
      timer = this.setTimeout(() => {
        next()
        callback()
      }, intervalMs)
    }
    next()
    return { cancel: () => timer?.cancel() }
  }

  clear(timer: Timer | undefined): void {
    timer?.cancel()
  }

  /** Runs something in the process, now or when it goes on. */
  run(callback: () => void): void {
    if (this.isDead) return
    if (this.#isFrozen) this.#late.push(callback)
    else callback()
  }

  freeze(): void {
    this.#isFrozen = true
  }

  thaw(): void {
    this.#isFrozen = false
    for (const callback of this.#late.splice(0)) this.run(callback)
  }

  get isFrozen(): boolean {
    return this.#isFrozen
  }
}

/** Nothing connects to it. */
const nodeAddress = (name: string) => ({ name, host: name, port: 7654 })

export interface ModelNodeOptions {
  readonly name: string
  readonly nodes: readonly string[]
  readonly random: () => number
}

/** A node with its disk; `start` and `kill` begin and end processes. */
export class ModelNode {
  readonly name: string
  readonly disk: ModelDisk = { content: [], place: NOWHERE }
  readonly aside: ModelDisk[] = []
  readonly notices: ClusterNotice[] = []
  readonly logged: string[] = []
  readonly #cluster: ModelCluster
  readonly #options: ModelNodeOptions
  #process: ModelProcess | undefined
  /** From NATS. */
  isCut = false
  /** It reaches a nats-server that is cut off from the others: it hears itself, and gets no answer. */
  isAlone = false
  /** Whoever reads its database gets this error, until it is set aside. */
  damage: StorageError | undefined
  /** How long following takes to end here, in ms. */
  endingMs = 0
  /** How long it takes to open its database in order to lead, in ms. */
  openingMs = 0

  constructor(cluster: ModelCluster, options: ModelNodeOptions) {
    this.name = options.name
    this.#cluster = cluster
    this.#options = options
  }

  get process(): ModelProcess | undefined {
    return this.#process
  }

  /** The node of the process, which has to be there. */
  get node(): ClusterNode {
    if (this.#process === undefined) throw new Error(`${this.name} does not run`)
    return this.#process.node
  }

  get leads(): boolean {
    return this.#process?.server !== undefined
  }

  start(): void {
    this.#process = new ModelProcess(this.#cluster, this, this.#options)
  }

  kill(): void {
    this.#process?.kill()
    this.#process = undefined
  }

  setAside(): string {
    this.aside.push({ ...this.disk })
    this.damage = undefined
    Object.assign(this.disk, { content: [], place: NOWHERE })
    return 'aside'
  }
}

export class ModelProcess implements ModelHost, Bus {
  readonly name: string
  readonly disk: ModelDisk
  readonly clock: ProcessClock
  readonly node: ClusterNode
  /** How the run of the node has ended, and the process with it. */
  ended: 'not yet' | 'stopped' | Error = 'not yet'
  server: ModelServer | undefined
  readonly #cluster: ModelCluster
  readonly #owner: ModelNode
  #receive: ((bytes: Uint8Array) => void) | undefined

  constructor(cluster: ModelCluster, owner: ModelNode, { name, nodes, random }: ModelNodeOptions) {
    this.name = name
    this.disk = owner.disk
    this.#cluster = cluster
    this.#owner = owner
    this.clock = new ProcessClock(cluster.clock)
    const replica = new ModelReplica(cluster.logs, this)
    const log = pino({ base: null }, { write: (line: string) => void owner.logged.push(JSON.parse(line).msg) })
    this.node = new ClusterNode({
      config: { name: 'main', node: name, nodes: nodes.map(nodeAddress), leaseMs: LEASE_MS },
      run: `${name}-${cluster.runs++}`,
      configuration: () => 'c',
      version: 'cinnabar/1',
      format: 1,
      clock: this.clock,
      log,
      random,
      bus: this,
      replica,
      lead: (options) => this.#lead(replica, options),
      copy: (leader, progress) => this.#copy(leader, progress),
    })
    const end = (how: 'stopped' | Error): void => {
      this.ended = how
      this.kill()
    }
    void this.node.run().then(() => end('stopped'), end)
  }

  get damage(): StorageError | undefined {
    return this.#owner.damage
  }

  get endingMs(): number {
    return this.#owner.endingMs
  }

  get openingMs(): number {
    return this.#owner.openingMs
  }

  get isConnected(): boolean {
    return !this.clock.isDead && !this.clock.isFrozen && !this.#owner.isCut && !this.#owner.isAlone
  }

  get isAlone(): boolean {
    return this.#owner.isAlone
  }

  open(receive: (bytes: Uint8Array) => void): void {
    this.#receive = receive
  }

  publish(bytes: Uint8Array): void {
    if (this.isAlone) this.deliver(bytes)
    if (!this.isConnected) return
    for (const { process } of this.#cluster.nodes.values()) if (process?.isAlone === false) process.deliver(bytes)
  }

  async close(): Promise<void> {
    this.#receive = undefined
  }

  deliver(bytes: Uint8Array): void {
    this.#cluster.clock.setTimeout(() => {
      if (!this.#owner.isCut) this.clock.run(() => this.#receive?.(bytes))
    }, BUS_MS)
  }

  kill(): void {
    this.clock.isDead = true
    this.server = undefined
  }

  /** The database of the leader as it is after a while, laid in the place of the own one. */
  async #copy(leader: string, progress: (received: Received) => void): Promise<string | undefined> {
    this.#cluster.copies.push(leader)
    progress({ receivedBytes: 1, totalBytes: 3 * 2 ** 20 })
    await new Promise<void>((resolve) => this.clock.setTimeout(resolve, COPY_MS))
    const from = this.#cluster.at(leader)
    if (!from.leads || !this.isConnected) throw new StorageError('IO', 'no answer')
    const aside = this.disk.content.length > 0 ? this.#owner.setAside() : undefined
    Object.assign(this.disk, { content: [...from.disk.content], place: from.disk.place })
    return aside
  }

  async #lead(replica: ModelReplica, { onFailed }: LeadOptions): Promise<Leading> {
    const server = new ModelServer(replica, this.#cluster)
    const failed = (error: Error): void => {
      server.fail(error)
      onFailed(error)
    }
    await replica.open({ onDurable() {}, onFull() {}, onRoom() {}, onFailed: failed })
    this.server = server
    const end = async (): Promise<void> => {
      this.server = undefined
      await replica.close()
    }
    return {
      notify: (notice) => void this.#owner.notices.push(notice),
      async stop() {
        try {
          await server.stop()
        } finally {
          await end()
        }
      },
      depose: end,
    }
  }
}

/** What is left of a server: one batch after the other. */
class ModelServer {
  readonly #replica: ModelReplica
  readonly #cluster: ModelCluster
  #waiting: { resolve(): void; reject(error: Error): void }[] = []
  #isBusy = false
  #isFailed = false

  constructor(replica: ModelReplica, cluster: ModelCluster) {
    this.#replica = replica
    this.#cluster = cluster
  }

  /** Begins a batch, unless one is under way; it is acknowledged when it is durable. */
  write(): void {
    if (this.#isBusy) return
    const id = `batch ${this.#cluster.batches++}`
    this.#isBusy = true
    this.#replica.put(id, () => {
      this.#isBusy = false
      this.#cluster.acknowledged.push(id)
      for (const { resolve } of this.#waiting.splice(0)) resolve()
    })
  }

  /** Storing failed: nothing more is written, and a stop that waits for a batch fails. */
  fail(error: Error): void {
    this.#isFailed = true
    for (const { reject } of this.#waiting.splice(0)) reject(error)
  }

  /** Stores a last batch, unless storing failed before. Rejects if it fails meanwhile. */
  async stop(): Promise<void> {
    if (this.#isFailed) return
    if (this.#isBusy) await this.#stored()
    this.write()
    await this.#stored()
  }

  /** When the batch under way is durable. */
  #stored(): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }))
  }
}

export class ModelCluster {
  readonly clock = new FakeClock()
  readonly logs = new ModelLogs()
  readonly nodes = new Map<string, ModelNode>()
  /** The ids of batches that were acknowledged, in order. */
  readonly acknowledged: string[] = []
  /** The nodes whose databases were asked for. */
  readonly copies: string[] = []
  batches = 1
  runs = 1

  constructor(names: readonly string[], random: () => number = () => 0.5) {
    for (const name of names) this.nodes.set(name, new ModelNode(this, { name, nodes: names, random }))
  }

  /** Nodes n1, n2 ... that run, one of which leads. */
  static async running(count: number): Promise<ModelCluster> {
    const cluster = new ModelCluster(Array.from({ length: count }, (_, index) => `n${index + 1}`))
    cluster.startAll()
    await cluster.until(() => cluster.leaders.length === 1)
    await cluster.run(LEASE_MS)
    return cluster
  }

  /** The node that leads; to be asked while exactly one does. */
  get leader(): ModelNode {
    return this.at(this.leaders[0] as string)
  }

  at(name: string): ModelNode {
    const node = this.nodes.get(name)
    if (node === undefined) throw new Error(`there is no ${name}`)
    return node
  }

  startAll(): void {
    for (const node of this.nodes.values()) node.start()
  }

  /** The names of the nodes on which a server runs. */
  get leaders(): string[] {
    return [...this.nodes.values()].filter(({ leads }) => leads).map(({ name }) => name)
  }

  othersThan(node: ModelNode): ModelNode[] {
    return [...this.nodes.values()].filter((each) => each !== node)
  }

  /** Writes batches until so many more are acknowledged. */
  async write(count: number): Promise<void> {
    for (let written = 0; written < count; written++) {
      const before = this.acknowledged.length
      await this.until(() => {
        for (const { process } of this.nodes.values()) process?.server?.write()
        return this.acknowledged.length > before
      })
    }
  }

  /** What the database of each node has of that which was acknowledged, in its order. */
  get kept(): string[][] {
    return [...this.nodes.values()].map(({ disk }) => disk.content.filter((id) => this.acknowledged.includes(id)))
  }

  /** Lets time go on. */
  async run(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      this.clock.advance(STEP_MS)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }

  /** Lets time go on until `check` is true, and gives how long that was, in ms. */
  async until(check: () => boolean, limitMs = 120_000): Promise<number> {
    const began = this.clock.monotonicMs()
    while (!check()) {
      if (this.clock.monotonicMs() - began > limitMs) throw new Error(`nothing came of it: ${this.describe()}`)
      await this.run(STEP_MS)
    }
    return this.clock.monotonicMs() - began
  }

  /** Ends all processes. */
  end(): void {
    for (const node of this.nodes.values()) node.kill()
  }

  describe(): string {
    return [...this.nodes.values()]
      .map(({ name, process, logged }) => {
        return `${name}: ${process && JSON.stringify(process.node.state())}, ${process?.ended}\n  ${logged.slice(-6).join('\n  ')}`
      })
      .join('\n')
  }
}
