/**
 * Two servers, `upper` and the one that it consumes as `east`, joined in memory by streams that pass through a relay: the
 * frames of both sides can be read, and changed. Their common clock goes on only when both are quiet.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { expect } from 'vitest'
import { defaultConfig } from '../../server/start/config.ts'
import type { SourcesConfig } from '../../server/start/wings.ts'
import type { HistorySection } from '../../server/wings/history/config.ts'
import { type Mutation, relay } from '../conformance/mutating-proxy.ts'
import { CommonTime } from './common-time.ts'
import { joinedPair, networkOf } from './memory-network.ts'
import type { MemoryStore } from './memory-store/store.ts'
import { TestProducer } from './producer.ts'
import { decoded, type Json } from './records.ts'
import type { Seat } from './seat.ts'
import { separateStore } from './separate-store.ts'

const PASSWORD = 'the-password-of-the-main-monitor'

export interface TreeOptions {
  /** The role at the lower server of the user that the upper one logs in as. */
  readonly role?: string
  /** The controls of the lower server that may be run from the upper one. */
  readonly controls?: readonly string[]
  /** The metrics of the lower server that may be asked for; all. */
  readonly metrics?: readonly string[]
  /** The history of either server; by default there is none. */
  readonly history?: { readonly upper?: HistorySection; readonly lower?: HistorySection }
  /** The rule files of either server; none. */
  readonly rules?: { readonly upper?: string; readonly lower?: string }
  /** What the upper server gets instead of the messages of the lower one. */
  readonly mutation?: Mutation
}

export class Tree {
  upper!: TestProducer
  lower!: TestProducer
  /** What the upper server has sent to the lower one, over both connections: whole frames. */
  readonly commands: Buffer[] = []
  readonly #options: TreeOptions
  readonly #directory = mkdtempSync(join(tmpdir(), 'cinnabar-tree-'))
  readonly #time = new CommonTime()
  readonly #seats = new Map<TestProducer, Seat>()
  #isLowerUp = true

  private constructor(options: TreeOptions) {
    this.#options = options
    writeFileSync(join(this.#directory, 'secret'), `${PASSWORD}\n`)
  }

  /** Both are up, and the upper one has logged in. */
  static async start(options: TreeOptions = {}): Promise<Tree> {
    const tree = new Tree(options)
    tree.lower = await tree.#startLower('first')
    tree.upper = await TestProducer.start({
      clock: tree.#time.clock,
      config: {
        upstream: [tableOf(tree.#directory, options)],
        ...historyOf(options.history?.upper),
        ...alertsOf(options.rules?.upper),
      } as never,
      connect: networkOf({ lower: () => tree.#connection() }),
    })
    return tree
  }

  /** Lets time go on at both until something holds, each time after everything under way has come to its end. */
  until(holds: () => void | Promise<void>): Promise<void> {
    return this.#time.until(holds)
  }

  /** The same until a promise is settled; gives what it does. */
  inTime<T>(asked: Promise<T>): Promise<T> {
    return this.#time.over(asked)
  }

  async #startLower(generation: string): Promise<TestProducer> {
    const { history, rules } = this.#options
    const config = { ...historyOf(history?.lower), ...alertsOf(rules?.lower) }
    const lower = await TestProducer.start({ clock: this.#time.clock, store: await separateStore(generation), config })
    await lower.addUser('main', { role: this.#options.role ?? 'consumer', password: PASSWORD })
    return lower
  }

  /** The upper server's end of a connection to the lower one, which passes through the relay. */
  #connection(): Duplex | undefined {
    const below = this.lower.accept()
    if (below === undefined) return undefined
    const command = (frame: Buffer): Buffer => {
      this.commands.push(Buffer.from(frame))
      return frame
    }
    const [near, far] = joinedPair()
    relay(far, below, this.#options.mutation ?? (() => (frame) => [frame]), { command })
    return near
  }

  /** What `producer.sensors` of the upper server says of the lower one. */
  async state(): Promise<Json> {
    const sensors = await this.#ask(this.upper, 'looker', 'producer.sensors')
    return sensors.find(({ name }) => name === 'upstream/east')
  }

  /** Over one connection to each server: a login at each look would take longer than all else. */
  async #ask(server: TestProducer, user: string, metric: string): Promise<Json[]> {
    const seat = this.#seats.get(server) ?? (await server.seat(user))
    this.#seats.set(server, seat)
    return decoded(await seat.query(metric)) as Json[]
  }

  /** The upper server is connected. */
  connected(): Promise<void> {
    return this.until(async () => expect(await this.state()).toMatchObject({ state: 'listening' }))
  }

  /** The channel at the lower server that the upper one empties; undefined if there is none. */
  async below(): Promise<Json> {
    const channels = await this.#ask(this.lower, 'main', 'producer.channels')
    return channels.find(({ name }) => String(name).startsWith('upstream:'))
  }

  /** The channel there binds so many ids. */
  bound(count: number): Promise<void> {
    return this.until(async () => expect(await this.below()).toMatchObject({ bound: count }))
  }

  /** So many ids are bound on the connection for channels that are not durable. */
  boundLive(count: number): Promise<void> {
    return this.until(() => {
      const channels = [...this.lower.server.parts.producer.registry.all()].filter(({ row }) => row.name === '')
      const bound = channels.flatMap(({ bindings }) =>
        [...bindings.values()].map(({ instance }) => instance.selection.name),
      )
      expect(bound.filter((name) => name !== 'producer.catalogue')).toHaveLength(count)
    })
  }

  /** The lower server is gone. */
  async stopLower(): Promise<void> {
    if (!this.#isLowerUp) return
    this.#isLowerUp = false
    await this.inTime(this.lower.stop())
  }

  /** The upper server ends, and begins again with what it has stored; where names are given, it consumes the lower one under these. */
  async restartUpper(names?: readonly string[]): Promise<void> {
    if (names !== undefined) this.upper.config = { upstream: this.#tables(names) } as never
    this.upper = await this.inTime(this.upper.restart())
  }

  /** The upper server dies, and begins again with what was durable. */
  async crashUpper(): Promise<void> {
    this.upper = await this.upper.crash()
  }

  /** The lower server goes back to an older state: it begins another history. */
  async restoreLower(backup: MemoryStore): Promise<void> {
    asRestored(backup)
    this.lower = await this.inTime(this.lower.restart(0, backup))
  }

  /** Another server is found in its place, with a history of its own. */
  async replaceLower(): Promise<void> {
    await this.stopLower()
    this.lower = await this.#startLower('another')
    this.#isLowerUp = true
  }

  /** The lower server ends, and begins again with what it has stored. */
  async restartLower(): Promise<void> {
    this.lower = await this.inTime(this.lower.restart())
  }

  /** A reload, after which the upper server consumes the lower one under these names. */
  consume(...names: readonly string[]): void {
    const upstream = this.#tables(names)
    for (const source of this.upper.server.parts.sources)
      source.reload?.({ ...defaultConfig(), upstream } as unknown as SourcesConfig)
  }

  #tables(names: readonly string[]) {
    return names.map((name) => ({ ...tableOf(this.#directory, this.#options), name }))
  }

  async stop(): Promise<void> {
    try {
      await this.upper.stop()
      if (this.#isLowerUp) await this.lower.stop()
    } finally {
      this.#time.end()
      rmSync(this.#directory, { recursive: true })
    }
  }
}

/** A store that is opened as a backup is. */
function asRestored(store: MemoryStore): void {
  const open = store.open.bind(store)
  store.open = async (events) => ({ ...(await open(events)), generation: 'restored', restored: true })
}

function tableOf(directory: string, { controls = [], metrics = ['*'] }: TreeOptions) {
  return {
    name: 'east',
    url: 'tcp://lower:7650',
    tenant: 'default',
    metrics,
    controls,
    user: 'main',
    secretFile: join(directory, 'secret'),
    intervalMs: 60_000,
    maxSeries: 1000,
    valuesPerSecond: 0,
  }
}

function alertsOf(rules: string | undefined): object {
  return rules === undefined ? {} : { alerts: { ...defaultConfig().alerts, builtin: false, rules: [rules] } }
}

function historyOf(history: HistorySection | undefined) {
  return history === undefined ? {} : { history }
}
