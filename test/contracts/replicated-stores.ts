/** The replicated store as a subject of the contract: a log of its own for each, on real nats-servers. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RoleOptions } from '../../storage/replicated/role.ts'
import { ReplicatedStore } from '../../storage/replicated/store.ts'
import { runRole } from '../../storage/replicated/worker.ts'
import type { Recovered, Store, StoreEvents } from '../../storage/store.ts'
import type { NatsServers } from '../support/nats.ts'
import { ThisThread } from '../support/threadless-store.ts'

/** Founds the log of its cluster before it leads it the first time. */
export class FoundingStore extends ReplicatedStore {
  override async open(events: StoreEvents): Promise<Recovered> {
    if ((await this.end(10_000)).log === 0) await this.found()
    return super.open(events)
  }

  override async close(): Promise<void> {
    await super.close()
    await this.disconnect()
  }
}

export interface ReplicatedLives {
  readonly first: Store
  readonly again: () => Store
  readonly dispose: () => void
}

/** To start a thread for each role of each life costs more than all that they do in these tests. */
export function inThisThread(options: RoleOptions): ThisThread {
  return new ThisThread((port) => void runRole(port, options).then(() => port.close()))
}

/** `keeps`: whether a life finds the database of the one before, or only the log. */
export function replicatedLives(servers: NatsServers, keeps: 'database' | 'log alone'): ReplicatedLives {
  const root = mkdtempSync(join(tmpdir(), 'replicated-'))
  const cluster = `t-${randomUUID().slice(0, 8)}`
  let life = 0
  const start = (): Store => {
    life++
    const directory = join(root, keeps === 'database' ? 'data' : `data-${life}`)
    const log = { cluster, node: 'n1', servers: servers.urls, replicas: servers.urls.length, maxBytes: 2 ** 26 }
    return new FoundingStore({ store: { directory }, log, wallMs: () => 1_700_000_000_000 }, inThisThread)
  }
  return { first: start(), again: start, dispose: () => rmSync(root, { recursive: true, force: true }) }
}
