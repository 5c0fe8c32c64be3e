/**
 * The database on the storage thread, with what writes and reads it: answers the messages of the server's side, one after the
 * other. A large read is requested in parts, so that no transaction waits long for it.
 */
import { join } from 'node:path'
import type { MessagePort } from 'node:worker_threads'
import {
  type AuditRow,
  BACKUPS,
  type BackupProgress,
  type Batch,
  type Recovered,
  type StorageErrorCode,
} from '../store.ts'
import { backUp, removeParts } from './backup.ts'
import { recover } from './damage/recovery.ts'
import { type DatabaseOptions, type OpenDatabase, openDatabase } from './database.ts'
import { DiskReserve, freeBytes } from './disk-space.ts'
import { isNoRoom, storageError } from './errors.ts'
import { openTables, type Tables } from './tables.ts'
import { type BatchRecordPlace, Writer, type WriterEvents } from './writer.ts'

export interface ServiceOptions extends DatabaseOptions {
  /** The delay in ms before a batch that did not fit is retried. Default 250. */
  readonly retryMs?: number
  /** The time in ms without a batch after which the log is truncated. Default 1,000. */
  readonly idleMs?: number
  /** The size of the log, in pages of 16 KiB, at which a checkpoint runs. Default 2,048. */
  readonly checkpointPages?: number
  /** The maximum size of the reserve. Default 16 MiB. */
  readonly reserveBytes?: number
}

export type ToService =
  | { readonly type: 'read'; readonly token: number; readonly ids: Float64Array }
  | { readonly type: 'audit'; readonly token: number; readonly after: number; readonly limit: number }
  | { readonly type: 'backup'; readonly token: number; readonly path: string }
export type ToWorker = ToService | { readonly type: 'write'; readonly batch: Batch } | { readonly type: 'close' }

/** A StorageError in a message: structured clone would turn it into a plain Error. */
export interface SerializedError {
  readonly code: StorageErrorCode
  readonly message: string
  readonly cause: unknown
}

export type FromService =
  /** The first of the requested blocks: lengths, -1 for a missing or damaged block, and the frames back to back. */
  | { readonly type: 'part'; readonly token: number; readonly lengths: Int32Array; readonly data: ArrayBuffer }
  /** Records of the audit log, at most the requested number. */
  | { readonly type: 'records'; readonly token: number; readonly rows: readonly AuditRow[] }
  | { readonly type: 'unread'; readonly token: number; readonly error: SerializedError }
  | { readonly type: 'copied'; readonly token: number; readonly progress: BackupProgress }
  /** The backup is complete. */
  | { readonly type: 'backedUp'; readonly token: number; readonly bytes: number }
  | { readonly type: 'notBackedUp'; readonly token: number; readonly error: SerializedError }
export type FromWorker =
  | FromService
  | { readonly type: 'opened'; readonly recovered: Recovered }
  | { readonly type: 'refused'; readonly error: SerializedError }
  | { readonly type: 'durable'; readonly number: number; readonly room: number }
  | { readonly type: 'full' }
  | { readonly type: 'room' }
  | { readonly type: 'failed'; readonly error: SerializedError }

export type PostMessage<Message = FromWorker> = (message: Message, transfer?: ArrayBuffer[]) => void

/** 32 MiB; SQLite's default of 4 MiB would copy hot pages too often. */
const CHECKPOINT_PAGES = 2048
/** With a further block of 256 KiB a part stays within 1 MiB. */
const PART_BYTES = 768 * 1024

export class StorageService {
  readonly opened: OpenDatabase
  readonly tables: Tables
  readonly writer: Writer
  /** The content as it was found; undefined as soon as it has been given or may have changed. */
  #found: Recovered | undefined
  #isClosed = false

  /** Opens and repairs the database, and begins to serve it. Throws StorageError, and then nothing is open. */
  constructor(options: ServiceOptions, events: WriterEvents) {
    const { directory, retryMs = 250, idleMs = 1_000, checkpointPages = CHECKPOINT_PAGES, reserveBytes } = options
    const reserve = new DiskReserve(directory, reserveBytes)
    const opened = openWithRoom(options, reserve)
    const { database } = opened
    this.opened = opened
    try {
      this.tables = openTables(database)
      this.#found = recover(opened, this.tables)
      if (options.replicated !== true) this.tables.log.leave()
      opened.begin()
      reserve.make()
      removeParts(join(directory, BACKUPS))
      this.writer = new Writer({
        database,
        freeBytes: () => freeBytes(directory),
        tables: this.tables,
        generation: opened.generation,
        reserve,
        events,
        retryMs,
        idleMs,
        checkpointPages,
      })
    } catch (error) {
      opened.close('untouched')
      throw storageError(error, opened.path)
    }
  }

  /** The content of the database. It is large, so nothing keeps it here. */
  recover(): Recovered {
    const found = this.#found ?? recover(this.opened, this.tables)
    this.#found = undefined
    return found
  }

  /** See Writer.write. */
  write(batch: Batch, record?: BatchRecordPlace): void {
    this.#found = undefined
    this.writer.write(batch, record)
  }

  /** Answers a message that only reads. */
  answer(message: ToService, post: PostMessage<FromService>): void {
    if (message.type === 'read') this.#read(message.token, message.ids, post)
    else if (message.type === 'audit') this.#audit(message, post)
    else this.#backUp(message, post)
  }

  /** Closes the database after the batch in flight. */
  close(): void {
    this.#isClosed = true
    this.writer.close()
    // After a failed fsync a checkpoint would be a retry.
    this.opened.close(this.writer.failed ? 'untouched' : undefined)
  }

  #audit({ token, after, limit }: Extract<ToService, { type: 'audit' }>, post: PostMessage<FromService>): void {
    try {
      post({ type: 'records', token, rows: this.tables.audit.read(after, limit) })
    } catch (error) {
      post({ type: 'unread', token, error: serialized(error, this.opened.path) })
    }
  }

  #backUp({ token, path }: Extract<ToService, { type: 'backup' }>, post: PostMessage<FromService>): void {
    const progress = (progress: BackupProgress): void => post({ type: 'copied', token, progress })
    backUp(this.opened.database, path, { progress, isCancelled: () => this.#isClosed }).then(
      (bytes) => post({ type: 'backedUp', token, bytes }),
      (error: unknown) => post({ type: 'notBackedUp', token, error: serialized(error, path) }),
    )
  }

  #read(token: number, ids: Float64Array, post: PostMessage<FromService>): void {
    const found = this.writer.read(ids, PART_BYTES)
    const lengths = Int32Array.from(found, (frames) => frames?.length ?? -1)
    const data = new Uint8Array(found.reduce((sum, frames) => sum + (frames?.length ?? 0), 0))
    let at = 0
    for (const frames of found) {
      if (frames === undefined) continue
      data.set(frames, at)
      at += frames.length
    }
    post({ type: 'part', token, lengths, data: data.buffer }, [data.buffer])
  }
}

/** Serves a database to the other end of `port` until told to close, and closes the port when the files are closed. */
export function serveStore(port: MessagePort, options: ServiceOptions): void {
  const post: PostMessage = (message: FromWorker, transfer: ArrayBuffer[] = []): void =>
    port.postMessage(message, transfer)
  try {
    serve(port, options, post)
  } catch (error) {
    post({ type: 'refused', error: serialized(error, options.directory) })
    port.close()
  }
}

function serve(port: MessagePort, options: ServiceOptions, post: PostMessage): void {
  const service: StorageService = new StorageService(options, {
    durable: ({ number }, room) => post({ type: 'durable', number, room }),
    full: () => post({ type: 'full' }),
    room: () => post({ type: 'room' }),
    failed: (error) => post({ type: 'failed', error: serialized(error, options.directory) }),
  })
  port.on('message', (message: ToWorker) => {
    if (message.type === 'write') service.write(message.batch)
    else if (message.type !== 'close') service.answer(message, post)
    else {
      service.close()
      port.close()
    }
  })
  post({ type: 'opened', recovered: service.recover() })
  service.writer.start()
}

/** Opens the database, on a full disk with the space of the reserve: stored values must be served after a restart. */
function openWithRoom(options: DatabaseOptions, reserve: DiskReserve): OpenDatabase {
  try {
    return openDatabase(options)
  } catch (error) {
    if (!isNoRoom(error instanceof Error ? error.cause : error) || !reserve.release()) throw error
    return openDatabase(options)
  }
}

/** `path` is the file or directory that the error is about. */
export function serialized(error: unknown, path: string): SerializedError {
  const { code, message, cause } = storageError(error, path)
  return { code, message, cause: cause instanceof Error ? new Error(cause.message) : undefined }
}
