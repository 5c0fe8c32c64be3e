/** The stores that the contract is run over, and how each is started anew on what it kept. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SqliteStore } from '../../storage/sqlite/store.ts'
import type { Recovered, Store } from '../../storage/store.ts'
import { isLong } from '../support/long.ts'
import { MemoryStore } from '../support/memory-store/store.ts'
import { NatsServers, natsMissing } from '../support/nats.ts'
import { replicatedLives } from './replicated-stores.ts'
import { batch, EventLog, type TestBatch } from './store-batch.ts'

/** A store with one life after another: `reopen` closes it and opens what it left. */
export class Subject {
  events = new EventLog()
  recovered: Recovered | undefined
  store: Store
  readonly #again: (store: Store) => Store
  readonly #dispose: () => void
  #number = 0

  constructor(store: Store, again: (store: Store) => Store, dispose: () => void) {
    this.store = store
    this.#again = again
    this.#dispose = dispose
  }

  async open(): Promise<Recovered> {
    this.recovered = await this.store.open(this.events)
    return this.recovered
  }

  /** Writes a batch and waits until it is durable. */
  async write(parts: TestBatch): Promise<void> {
    this.#number++
    this.store.write(batch(this.#number, parts))
    await this.events.durable(this.#number)
  }

  async reopen(): Promise<Recovered> {
    await this.store.close()
    this.store = this.#again(this.store)
    this.events = new EventLog()
    this.#number = 0
    return this.open()
  }

  async end(): Promise<void> {
    await this.store.close()
    this.#dispose()
  }
}

interface Implementation {
  readonly name: string
  readonly make: () => Subject | Promise<Subject>
  /** Ends what the subjects have in common. */
  readonly stop: () => Promise<void>
}

const memory: Implementation = {
  name: 'memory',
  make: () =>
    new Subject(
      new MemoryStore(),
      (store) => (store as MemoryStore).crash(),
      () => {},
    ),
  stop: async () => {},
}

const sqlite: Implementation = {
  name: 'sqlite',
  make: () => {
    const directory = mkdtempSync(join(tmpdir(), 'store-'))
    const start = (): Store => new SqliteStore({ directory })
    return new Subject(start(), start, () => rmSync(directory, { recursive: true, force: true }))
  },
  stop: async () => {},
}

/** The nats-servers are started with the first subject. */
function replicated(count: 1 | 3, keeps: 'database' | 'log alone'): Implementation {
  let servers: Promise<NatsServers> | undefined
  return {
    name: `replicated, ${count === 1 ? 'one nats-server' : 'three nats-servers'}, from the ${keeps}`,
    make: async () => {
      servers ??= NatsServers.start(count)
      const { first, again, dispose } = replicatedLives(await servers, keeps)
      return new Subject(first, again, dispose)
    },
    stop: async () => {
      await (await servers)?.stop()
      servers = undefined
    },
  }
}

/** Each life is a leader of its own, which takes a while. */
const overNats = [replicated(1, 'database'), replicated(3, 'database'), replicated(1, 'log alone')]

export const implementations = [memory, sqlite, ...(isLong && natsMissing === undefined ? overNats : [])]
