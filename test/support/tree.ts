/**
 * Two servers, `upper` and the one that it consumes as `east`, with a real connection between them, which passes through a relay:
 * the frames of both sides can be read, and changed.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { defaultConfig } from '../../server/start/config.ts'
import type { SourcesConfig } from '../../server/start/wings.ts'
import { type MutatingProxy, type Mutation, startMutatingProxy } from '../conformance/mutating-proxy.ts'
import { eventually } from './eventually.ts'
import { freePort } from './free-port.ts'
import type { MemoryStore } from './memory-store/store.ts'
import { TestProducer } from './producer.ts'
import { decoded, type Json } from './records.ts'

const PASSWORD = 'the-password-of-the-main-monitor'

export interface TreeOptions {
  /** The role at the lower server of the user that the upper one logs in as. */
  readonly role?: string
  /** The controls of the lower server that may be run from the upper one. */
  readonly controls?: readonly string[]
  /** What the upper server gets instead of the messages of the lower one. */
  readonly mutation?: Mutation
}

export class Tree {
  upper: TestProducer
  lower: TestProducer
  /** What the upper server has sent to the lower one, over both connections: whole frames. */
  readonly commands: readonly Buffer[]
  readonly #options: TreeOptions
  readonly #directory: string
  readonly #port: number
  readonly #relay: MutatingProxy
  #isLowerUp = true

  private constructor(parts: Pick<Tree, 'upper' | 'lower' | 'commands'>, options: TreeOptions, more: Made) {
    this.upper = parts.upper
    this.lower = parts.lower
    this.commands = parts.commands
    this.#options = options
    this.#directory = more.directory
    this.#port = more.port
    this.#relay = more.relay
  }

  /** Both are up, and the upper one has logged in. */
  static async start(options: TreeOptions = {}): Promise<Tree> {
    const directory = mkdtempSync(join(tmpdir(), 'cinnabar-tree-'))
    writeFileSync(join(directory, 'secret'), `${PASSWORD}\n`)
    const port = await freePort()
    const lower = await startLower(port, 'first', options)
    const commands: Buffer[] = []
    const command = (frame: Buffer): Buffer => {
      commands.push(Buffer.from(frame))
      return frame
    }
    const relay = await startMutatingProxy(`tcp://127.0.0.1:${port}`, options.mutation ?? (() => (frame) => [frame]), {
      command,
    })
    const upper = await TestProducer.start({
      config: { upstream: [tableOf(directory, relay.port, options)] } as never,
    })
    return new Tree({ upper, lower, commands }, options, { directory, port, relay })
  }

  /** Lets time go on at both until something holds: nothing says when all has come over the connection between them. */
  until(holds: () => void | Promise<void>): Promise<void> {
    return eventually(async () => {
      this.upper.clock.advance(100)
      this.lower.clock.advance(100)
      await this.upper.settle()
      await holds()
    })
  }

  /** The same until a promise is settled; gives what it does. */
  async inTime<T>(asked: Promise<T>): Promise<T> {
    let isOver = false
    const end = (): void => {
      isOver = true
    }
    asked.then(end, end)
    await this.until(() => expect(isOver).toBe(true))
    return asked
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
    this.lower = await this.inTime(this.lower.restart(0, backup))
  }

  /** Another server is found in its place, with a history of its own. */
  async replaceLower(): Promise<void> {
    await this.stopLower()
    this.lower = await startLower(this.#port, 'another', this.#options)
    this.#isLowerUp = true
  }

  /** The lower server ends, and begins again with what it has stored. */
  async restartLower(): Promise<void> {
    this.lower = await this.inTime(this.lower.restart())
  }

  /** A reload, after which the upper server consumes the lower one under these names. */
  consume(...names: readonly string[]): void {
    const upstream = names.map((name) => ({ ...tableOf(this.#directory, this.#relay.port, this.#options), name }))
    for (const source of this.upper.server.parts.sources)
      source.reload?.({ ...defaultConfig(), upstream } as unknown as SourcesConfig)
  }

  async stop(): Promise<void> {
    await this.upper.stop()
    await this.#relay.close()
    if (this.#isLowerUp) await this.lower.stop()
    rmSync(this.#directory, { recursive: true })
  }
}

interface Made {
  readonly directory: string
  readonly port: number
  readonly relay: MutatingProxy
}

/** With a database of its own: all other servers of tests go back to the same one. */
async function startLower(port: number, generation: string, { role = 'consumer' }: TreeOptions): Promise<TestProducer> {
  const store = await TestProducer.firstStart()
  const open = store.open.bind(store)
  const secret = new TextEncoder().encode(generation.padEnd(32))
  store.open = async (events) => ({ ...(await open(events)), generation, secret })
  const config = { listen: { tcp: { host: '127.0.0.1', port } } }
  const lower = await TestProducer.start({ config, store } as never)
  await lower.addUser('main', { role, password: PASSWORD })
  return lower
}

/** A store that is opened as a backup is. */
function asRestored(store: MemoryStore): void {
  const open = store.open.bind(store)
  store.open = async (events) => ({ ...(await open(events)), generation: 'restored', restored: true })
}

function tableOf(directory: string, port: number, { controls = [] }: TreeOptions) {
  return {
    name: 'east',
    url: `tcp://127.0.0.1:${port}`,
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
