/**
 * The server's side of the SQLite store: it passes messages to a thread that does the work. The arrays of a batch are transferred,
 * so they are detached when `write` returns; its `data` is shared memory, or a copy.
 */
import { type EventEmitter, once } from 'node:events'
import { Worker } from 'node:worker_threads'
import {
  type AuditRow,
  type BackupProgress,
  type Batch,
  type BlockBytes,
  type Recovered,
  StorageError,
  type Store,
  type StoreEvents,
} from '../store.ts'
import type { FromWorker, SerializedError, ServiceOptions, ToWorker } from './service.ts'

export type SqliteOptions = ServiceOptions

/** The end of the storage thread on the server's side: `message` for each FromWorker, `error`, and `exit` when it has closed its files. */
export interface StorageThread<Message = ToWorker> extends EventEmitter {
  postMessage(message: Message, transfer: ArrayBuffer[]): void
}

interface PendingRead {
  readonly ids: readonly number[]
  readonly found: BlockBytes[]
  readonly resolve: (found: BlockBytes[]) => void
  readonly reject: (error: StorageError) => void
}
interface PendingRecords {
  readonly resolve: (rows: readonly AuditRow[]) => void
  readonly reject: (error: StorageError) => void
}

interface PendingBackup {
  readonly progress: (progress: BackupProgress) => void
  readonly resolve: (bytes: number) => void
  readonly reject: (error: StorageError) => void
}

/** Audit records read between two transactions: a few hundred KiB, rarely some MiB. */
const AUDIT_PART = 256

/**
 * @example
 * const store = new SqliteStore({ directory: '/var/lib/cinnabar' })
 * const recovered = await store.open(events)
 */
export class SqliteStore implements Store {
  readonly #start: () => StorageThread
  readonly #reads = new Map<number, PendingRead>()
  readonly #audits = new Map<number, PendingRecords>()
  readonly #backups = new Map<number, PendingBackup>()
  #nextRead = 1
  #worker: StorageThread | undefined
  #events: StoreEvents | undefined
  #closing = false

  /** `start` starts another thread than that of a database of its own. */
  constructor(options: SqliteOptions, start: () => StorageThread = () => startWorker(options)) {
    this.#start = start
  }

  open(events: StoreEvents): Promise<Recovered> {
    const worker = this.#start()
    let failure = new StorageError('IO', 'the storage thread has ended: start the server again')
    return new Promise((resolve, reject) => {
      worker.on('message', (message: FromWorker) => {
        if (message.type === 'opened') {
          this.#events = events
          this.#worker = worker
          resolve(message.recovered)
        } else if (message.type === 'refused') failure = revive(message.error)
        else this.#receive(message)
      })
      worker.on('error', (error) => {
        failure = new StorageError('IO', `the storage thread ended with an error: ${error.message}`, error)
      })
      // Only now has the thread closed its files.
      worker.on('exit', () => {
        reject(failure)
        this.#end(failure)
      })
    })
  }

  write(batch: Batch): void {
    const { blocks, moved, settled, removed, channels, gaps, gapsRemoved } = batch
    const arrays = [blocks, moved, settled, removed, channels, gaps, gapsRemoved]
    // A Set, because several arrays may share a buffer.
    const buffers = new Set<ArrayBufferLike>(arrays.map((array) => array.buffer))
    this.#post({ type: 'write', batch }, [...buffers].filter(isTransferable))
  }

  read(ids: readonly number[]): Promise<BlockBytes[]> {
    if (ids.length === 0) return Promise.resolve([])
    if (this.#worker === undefined) return Promise.reject(new StorageError('IO', 'the store is not open'))
    return new Promise((resolve, reject) => {
      const token = this.#nextRead++
      this.#reads.set(token, { ids, found: [], resolve, reject })
      this.#post({ type: 'read', token, ids: Float64Array.from(ids) })
    })
  }

  async audit(after: number, limit: number): Promise<AuditRow[]> {
    const rows: AuditRow[] = []
    while (rows.length < limit) {
      const want = Math.min(limit - rows.length, AUDIT_PART)
      const part = await this.#readRecords(rows.at(-1)?.number ?? after, want)
      rows.push(...part)
      if (part.length < want) break
    }
    return rows
  }

  backup(path: string, progress: (progress: BackupProgress) => void): Promise<number> {
    if (this.#worker === undefined) return Promise.reject(new StorageError('IO', 'the store is not open'))
    return new Promise((resolve, reject) => {
      const token = this.#nextRead++
      this.#backups.set(token, { progress, resolve, reject })
      this.#post({ type: 'backup', token, path })
    })
  }

  async close(): Promise<void> {
    const worker = this.#worker
    if (worker === undefined || this.#closing) return
    this.#closing = true
    const gone = once(worker, 'exit')
    this.#post({ type: 'close' })
    await gone
  }

  #readRecords(after: number, limit: number): Promise<readonly AuditRow[]> {
    if (this.#worker === undefined) return Promise.reject(new StorageError('IO', 'the store is not open'))
    return new Promise((resolve, reject) => {
      const token = this.#nextRead++
      this.#audits.set(token, { resolve, reject })
      this.#post({ type: 'audit', token, after, limit })
    })
  }

  #post(message: ToWorker, transfer: ArrayBuffer[] = []): void {
    this.#worker?.postMessage(message, transfer)
  }

  #receive(message: Exclude<FromWorker, { type: 'opened' | 'refused' }>): void {
    switch (message.type) {
      case 'durable':
        this.#events?.onDurable(message.number, message.room)
        return
      case 'full':
        this.#events?.onFull()
        return
      case 'room':
        this.#events?.onRoom?.()
        return
      case 'failed':
        this.#events?.onFailed(revive(message.error))
        return
      case 'part':
        this.#collect(message.token, message.lengths, message.data)
        return
      case 'copied':
        this.#backups.get(message.token)?.progress(message.progress)
        return
      case 'backedUp':
      case 'notBackedUp': {
        const pending = this.#backups.get(message.token)
        this.#backups.delete(message.token)
        if (message.type === 'backedUp') pending?.resolve(message.bytes)
        else pending?.reject(revive(message.error))
        return
      }
      case 'records':
      case 'unread': {
        const pending = this.#audits.get(message.token)
        this.#audits.delete(message.token)
        if (message.type === 'records') pending?.resolve(message.rows)
        else pending?.reject(revive(message.error))
        return
      }
    }
  }

  /** Takes a part of a read and requests the rest, after a batch that may have been sent in the meantime. */
  #collect(token: number, lengths: Int32Array, data: ArrayBuffer): void {
    const read = this.#reads.get(token)
    if (read === undefined) return
    let at = 0
    for (const length of lengths) {
      const bytes = length < 0 ? undefined : new Uint8Array(data, at, length)
      read.found.push({ id: read.ids[read.found.length]!, bytes })
      at += Math.max(0, length)
    }
    if (read.found.length < read.ids.length) {
      this.#post({ type: 'read', token, ids: Float64Array.from(read.ids.slice(read.found.length)) })
      return
    }
    this.#reads.delete(token)
    read.resolve(read.found)
  }

  /** The thread has exited. That is a failure unless the store is closing. */
  #end(error: StorageError): void {
    if (this.#worker === undefined) return
    this.#worker = undefined
    const pending = [this.#reads, this.#audits, this.#backups]
    for (const waiting of pending) {
      for (const { reject } of waiting.values()) reject(error)
      waiting.clear()
    }
    if (!this.#closing) this.#events?.onFailed(error)
  }
}

function startWorker(options: SqliteOptions): Worker {
  return new Worker(new URL(import.meta.resolve('#storage-worker')), { workerData: options })
}

function isTransferable(buffer: ArrayBufferLike): buffer is ArrayBuffer {
  return buffer instanceof ArrayBuffer
}

export function revive({ code, message, cause }: SerializedError): StorageError {
  return new StorageError(code, message, cause)
}
