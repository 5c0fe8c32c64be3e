/**
 * Two servers, `upper` and the one that it consumes as `east`, joined in memory by streams that pass through a relay: the
 * frames of both sides can be read, and changed. The clocks go on only when both servers are quiet.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { streamTransport } from '../../client/dial/stream.ts'
import { ConnectionError } from '../../client/errors.ts'
import type { Transport } from '../../client/transport.ts'
import { defaultConfig } from '../../server/start/config.ts'
import type { SourcesConfig } from '../../server/start/wings.ts'
import { type Mutation, relay } from '../conformance/mutating-proxy.ts'
import { joinedPair } from './joined-pair.ts'
import type { MemoryStore } from './memory-store/store.ts'
import { TestProducer } from './producer.ts'
import { Quiet } from './quiet.ts'
import { decoded, type Json } from './records.ts'
import { separateStore } from './separate-store.ts'

/** Nothing listens there: all connections are made in memory. */
const URL = 'tcp://lower.example:7650'
const PASSWORD = 'the-password-of-the-main-monitor'

const STEP_MS = 100
/** It ends what would never come, before the limit of the test, which could not say why; it is no measure of speed. */
const PATIENCE_MS = 45_000

export interface TreeOptions {
  /** The role at the lower server of the user that the upper one logs in as. */
  readonly role?: string
  /** The controls of the lower server that may be run from the upper one. */
  readonly controls?: readonly string[]
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
  readonly #quiet = new Quiet()
  #isLowerUp = true

  private constructor(options: TreeOptions) {
    this.#options = options
    writeFileSync(join(this.#directory, 'secret'), `${PASSWORD}\n`)
  }

  /** Both are up, and the upper one has logged in. */
  static async start(options: TreeOptions = {}): Promise<Tree> {
    const tree = new Tree(options)
    tree.lower = await startLower('first', options)
    tree.upper = await TestProducer.start({
      config: { upstream: [tableOf(tree.#directory, options)] } as never,
      dial: async () => tree.#dial(),
    })
    return tree
  }

  /** Lets time go on at both until something holds, each time after everything under way has come to its end. */
  async until(holds: () => void | Promise<void>): Promise<void> {
    const endMs = performance.now() + PATIENCE_MS
    for (;;) {
      await this.#quiet.reached()
      try {
        return await holds()
      } catch (error) {
        if (performance.now() > endMs) throw error
      }
      this.upper.clock.advance(STEP_MS)
      this.lower.clock.advance(STEP_MS)
    }
  }

  /** The same until a promise is settled; gives what it does. */
  async inTime<T>(asked: Promise<T>): Promise<T> {
    let isOver = false
    const end = (): void => {
      isOver = true
    }
    asked.then(end, end)
    await this.until(() => expect(isOver, 'what was asked is answered').toBe(true))
    return asked
  }

  /** A connection to the lower server. */
  #dial(): Transport {
    if (!this.#isLowerUp) throw new ConnectionError('UNREACHABLE', `cannot connect to ${URL}: it is down`)
    const [here, near] = joinedPair()
    const command = (frame: Buffer): Buffer => {
      this.commands.push(Buffer.from(frame))
      return frame
    }
    relay(near, this.lower.accept(), this.#options.mutation ?? (() => (frame) => [frame]), { command })
    return streamTransport(here, { encrypted: false, loopback: true })
  }

  /** What `producer.sensors` of the upper server says of the lower one. */
  async state(): Promise<Json> {
    const seat = await this.upper.seat('looker')
    const sensors = decoded(await seat.query('producer.sensors')) as Json[]
    seat.peer.destroy()
    return sensors.find(({ name }) => name === 'upstream/east')
  }

  /** The upper server is connected. */
  connected(): Promise<void> {
    return this.until(async () => expect(await this.state()).toMatchObject({ state: 'listening' }))
  }

  /** The channel at the lower server that the upper one empties; undefined if there is none. */
  async below(): Promise<Json> {
    const seat = await this.lower.seat('main')
    const channels = decoded(await seat.query('producer.channels')) as Json[]
    seat.peer.destroy()
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

  /** The upper server ends, and begins again with what it has stored. */
  async restartUpper(): Promise<void> {
    this.upper = await this.inTime(this.upper.restart())
  }

  /** The upper server dies, and begins again with what was durable. */
  async crashUpper(): Promise<void> {
    this.upper = await this.upper.crash()
  }

  /** The lower server goes back to an older state: it begins another history. */
  async restoreLower(backup: MemoryStore): Promise<void> {
    asRestored(backup)
    await this.#restartLower(backup)
  }

  /** Another server is found in its place, with a history of its own. */
  async replaceLower(): Promise<void> {
    await this.stopLower()
    this.lower = await startLower('another', this.#options)
    this.#isLowerUp = true
  }

  /** The lower server ends, and begins again with what it has stored. */
  restartLower(): Promise<void> {
    return this.#restartLower()
  }

  async #restartLower(store?: MemoryStore): Promise<void> {
    this.#isLowerUp = false
    this.lower = await this.inTime(this.lower.restart(0, store))
    this.#isLowerUp = true
  }

  /** A reload, after which the upper server consumes the lower one under these names. */
  consume(...names: readonly string[]): void {
    const upstream = names.map((name) => ({ ...tableOf(this.#directory, this.#options), name }))
    for (const source of this.upper.server.parts.sources)
      source.reload?.({ ...defaultConfig(), upstream } as unknown as SourcesConfig)
  }

  async stop(): Promise<void> {
    try {
      await this.upper.stop()
      if (this.#isLowerUp) await this.lower.stop()
    } finally {
      this.#quiet.end()
      rmSync(this.#directory, { recursive: true })
    }
  }
}

async function startLower(generation: string, { role = 'consumer' }: TreeOptions): Promise<TestProducer> {
  const lower = await TestProducer.start({ store: await separateStore(generation) })
  await lower.addUser('main', { role, password: PASSWORD })
  return lower
}

/** A store that is opened as a backup is. */
function asRestored(store: MemoryStore): void {
  const open = store.open.bind(store)
  store.open = async (events) => ({ ...(await open(events)), generation: 'restored', restored: true })
}

function tableOf(directory: string, { controls = [] }: TreeOptions) {
  return {
    name: 'east',
    url: URL,
    tenant: 'default',
    metrics: ['*'],
    controls,
    user: 'main',
    secretFile: join(directory, 'secret'),
    intervalMs: 60_000,
    maxSeries: 1000,
    valuesPerSecond: 0,
  }
}
