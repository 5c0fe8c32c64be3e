/**
 * The store of a cluster where a test producer takes one in memory. A crash is a takeover: another node, whose database is a copy of
 * the files, goes on with the same log. Each sequence begins with a log of its own.
 */
import { randomUUID } from 'node:crypto'
import type { Store } from '../../../storage/store.ts'
import { FoundingStore, inThisThread } from '../../contracts/replicated-stores.ts'
import type { NatsServers } from '../../support/nats.ts'
import { SqliteBacked } from './sqlite-backed.ts'

const LOG_BYTES = 2 ** 26
const WALL_MS = 1_700_000_000_000

interface Family {
  readonly servers: NatsServers
  readonly directories: string[]
}

export class ClusterBacked extends SqliteBacked {
  readonly #family: Family
  readonly #cluster: string

  private constructor(family: Family, cluster: string, from?: string) {
    super(family.directories, from)
    this.#family = family
    this.#cluster = cluster
  }

  static over(servers: NatsServers): ClusterBacked {
    return new ClusterBacked({ servers, directories: [] }, newName())
  }

  protected override make(): Store {
    const { urls } = this.#family.servers
    const log = { cluster: this.#cluster, node: 'n1', servers: urls, replicas: urls.length, maxBytes: LOG_BYTES }
    return new FoundingStore({ store: { directory: this.directory }, log, wallMs: () => WALL_MS }, inThisThread)
  }

  protected override survivor(): ClusterBacked {
    return new ClusterBacked(this.#family, this.isOpen ? this.#cluster : newName(), this.directory)
  }
}

function newName(): string {
  return `c-${randomUUID().slice(0, 8)}`
}
