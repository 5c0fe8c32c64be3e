/**
 * The store of a node of a cluster: SQLite as ever, and in front of it a log that the nodes share. One node leads: it alone appends
 * records, each with the sequence that it expects to be the last, so that of two leaders only one gets through. The others
 * follow: they apply the same batches. A takeover is the recovery after a crash, on another machine. docs/cluster.md
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { openSqlite } from '../sqlite/driver.ts'
import { storageError } from '../sqlite/errors.ts'
import { LogPlaces, NOWHERE } from '../sqlite/log-places.ts'
import type { ServiceOptions } from '../sqlite/service.ts'
import { revive, SqliteStore, type StorageThread } from '../sqlite/store.ts'
import {
  type AuditRow,
  type BackupProgress,
  type Batch,
  type BlockBytes,
  DATABASE_FILE,
  type Recovered,
  StorageError,
  type Store,
  type StoreEvents,
} from '../store.ts'
import { Log } from './log.ts'
import type { LogOptions } from './options.ts'
import type { LogPlace } from './place.ts'
import type { Copied, CopyProgress, FromRole, Role, RoleOptions, ToRole } from './role.ts'

export interface ReplicatedOptions {
  readonly store: ServiceOptions
  readonly log: LogOptions
  readonly wallMs: () => number
}

interface RunOptions {
  /** Ends it. */
  readonly signal?: AbortSignal
  /** The node that a copy comes from. */
  readonly from?: string
  readonly mayLack?: boolean
  readonly newest?: number
}

/** What following reports. */
export interface Following {
  /** The database has everything up to `place`; `last` is the sequence of the log's last message, as far as known. */
  onPlace(place: LogPlace, last: number): void
  /** Why the database cannot follow now, as a sentence for people; undefined as soon as it can again. */
  onObstacle(obstacle: string | undefined): void
}

type RoleThread = StorageThread<ToRole>

/**
 * @example
 * const store = new ReplicatedStore({ store: { directory }, log: { cluster, node, servers, ... }, wallMs: Date.now })
 * await store.follow(events, signal) // until the leader is gone
 * const recovered = await store.open(events) // leads
 */
export class ReplicatedStore implements Store {
  readonly #options: ReplicatedOptions
  readonly #startThread: (options: RoleOptions) => RoleThread
  /** The store while this node leads. */
  #leading: SqliteStore
  /** The thread that opens it, or has. */
  #opening: RoleThread | undefined
  #isGivenUp = false
  #epoch = 0
  #stored: LogPlace | undefined
  #log: Promise<Log> | undefined
  /** The nats-server that has answered last. */
  #answering: string | undefined

  /** `startThread` starts another thread than one of this package. */
  constructor(options: ReplicatedOptions, startThread: (options: RoleOptions) => RoleThread = startWorker) {
    this.#options = options
    this.#startThread = startThread
    this.#leading = this.#leader()
  }

  /** The epoch in which this node leads; 0 while it does not. */
  get epoch(): number {
    return this.#epoch
  }

  /** The place of the last record that is stored here, while this node leads; undefined while it does not. */
  get stored(): LogPlace | undefined {
    return this.#stored
  }

  /** Leads. Rejects with StorageError: DEPOSED if another node was faster, FOREIGN or BEHIND if this database cannot lead. */
  open(events: StoreEvents): Promise<Recovered> {
    if (this.#isGivenUp) return Promise.reject(new StorageError('DEPOSED', 'another node leads'))
    this.#leading = this.#leader()
    return this.#leading.open(events)
  }

  /**
   * Another node leads: `open` rejects with StorageError DEPOSED, whether it is under way or is called before the next `close`. It
   * has no effect once an epoch has begun.
   */
  giveUp(): void {
    this.#isGivenUp = true
    this.#opening?.postMessage({ type: 'giveUp' }, [])
  }

  /**
   * Follows until the signal is aborted; then the database is closed. Rejects with StorageError: FOREIGN if the database is not
   * part of the log, BEHIND if the log no longer has the records that it needs.
   */
  follow(events: Following, signal: AbortSignal): Promise<void> {
    return this.#run(
      'follow',
      (message) => {
        if (message.type === 'place') events.onPlace(message.place, message.last)
        else if (message.type === 'obstacle') events.onObstacle(message.obstacle)
      },
      { signal },
    )
  }

  /**
   * Makes the next log, which begins with this database. `mayLack`: other databases may have had more of the last log, so this one
   * counts as restored. `newest`: the number of the newest log when this was decided. Rejects with StorageError DEPOSED if another
   * node was faster.
   */
  async found(mayLack = false, newest = Number.POSITIVE_INFINITY): Promise<LogPlace> {
    let place: LogPlace = NOWHERE
    const receive = (message: FromRole): void => {
      if (message.type === 'place') place = message.place
    }
    await this.#run('found', receive, { mayLack, newest })
    return place
  }

  /**
   * Puts a copy of the database of the node `from`, which leads, in the place of the database of this one, which is set aside
   * when the copy is whole. Rejects with StorageError, and then the directory is as it was; also if the signal is aborted.
   */
  async copy(from: string, progress: (progress: CopyProgress) => void, signal: AbortSignal): Promise<Copied> {
    let copied: Copied = { place: NOWHERE, aside: undefined }
    const receive = (message: FromRole): void => {
      if (message.type === 'fetched') copied = message.copied
      else if (message.type === 'received') progress(message.progress)
    }
    await this.#run('copy', receive, { signal, from })
    return copied
  }

  /** The number of the newest log, 0 if there is none, and the sequence of its last message. Rejects with StorageError UNREACHABLE. */
  async end(timeoutMs: number): Promise<{ readonly log: number; readonly last: number }> {
    const log = await this.#connected()
    const { log: number, last } = await log.bounds(timeoutMs)
    this.#answering = log.connection.getServer()
    return { log: number, last }
  }

  /** Has the nats-servers choose another of them to lead log `log`. Rejects with Error if that is refused, or not answered. */
  async moveLog(log: number): Promise<void> {
    await (await this.#connected()).move(log)
  }

  async #connected(): Promise<Log> {
    const connecting = this.#log ?? Log.connect(this.#options.log)
    this.#log = connecting
    return connecting.catch((error: unknown) => {
      // Else it would be the answer for ever.
      if (this.#log === connecting) this.#log = undefined
      throw error
    })
  }

  /** The place of the database, read from its file; to be called while this node neither follows nor leads. */
  async place(): Promise<LogPlace> {
    const path = join(this.#options.store.directory, DATABASE_FILE)
    if (!existsSync(path)) return NOWHERE
    try {
      const database = openSqlite(path, { readonly: true })
      try {
        const has = database.prepare<unknown[], number>("select count(*) from sqlite_schema where name = 'log'").pluck()
        return has.get() === 0 ? { ...NOWHERE, sequence: 1 } : new LogPlaces(database).place
      } finally {
        database.close()
      }
    } catch (error) {
      throw storageError(error, path)
    }
  }

  write(batch: Batch): void {
    this.#leading.write(batch)
  }

  read(ids: readonly number[]): Promise<BlockBytes[]> {
    return this.#leading.read(ids)
  }

  audit(after: number, limit: number): Promise<AuditRow[]> {
    return this.#leading.audit(after, limit)
  }

  backup(path: string, progress: (progress: BackupProgress) => void): Promise<number> {
    return this.#leading.backup(path, progress)
  }

  /** Stops leading. The node may follow or lead again. */
  async close(): Promise<void> {
    await this.#leading.close()
    this.#opening = undefined
    this.#isGivenUp = false
    this.#epoch = 0
    this.#stored = undefined
  }

  /** Ends the connection of `end` and `moveLog`. */
  async disconnect(): Promise<void> {
    const log = this.#log
    this.#log = undefined
    await (await log?.catch(() => undefined))?.close()
  }

  #leader(): SqliteStore {
    return new SqliteStore(this.#options.store, () => {
      const worker = this.#start('lead')
      worker.on('message', (message: FromRole) => {
        if (message.type === 'leads') this.#epoch = message.epoch
        else if (message.type === 'place') this.#stored = message.place
      })
      this.#opening = worker
      return worker
    })
  }

  #start(role: Role, { from, mayLack = false, newest = Number.POSITIVE_INFINITY }: RunOptions = {}): RoleThread {
    const { store, log, wallMs } = this.#options
    const { restored = false, ...served } = store
    return this.#startThread({
      role,
      // What others have must not be skipped here alone: only a log that is founded may begin with a restored database.
      store: { ...served, restored: mayLack || (restored && role === 'found') },
      log: { ...log, first: this.#answering },
      wall: wallMs(),
      newest,
      ...(from !== undefined && { from }),
    })
  }

  /** Runs a role that serves no store, until its thread ends. */
  #run(role: Role, receive: (message: FromRole) => void, options: RunOptions): Promise<void> {
    const { signal } = options
    const worker = this.#start(role, options)
    const stop = (): void => worker.postMessage({ type: 'close' }, [])
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    return new Promise((resolve, reject) => {
      let failure: StorageError | undefined
      worker.on('message', (message: FromRole) => {
        if (message.type === 'refused') failure = revive(message.error)
        else receive(message)
      })
      worker.on('error', (error) => {
        failure = new StorageError('IO', `the storage thread ended with an error: ${error.message}`, error)
      })
      worker.on('exit', () => {
        signal?.removeEventListener('abort', stop)
        if (failure === undefined) resolve()
        else reject(failure)
      })
    })
  }
}

function startWorker(options: RoleOptions): RoleThread {
  return new Worker(new URL(import.meta.resolve('#replicated-worker')), { workerData: options })
}
