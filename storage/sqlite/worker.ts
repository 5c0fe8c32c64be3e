/**
 * The storage thread, the only one that uses the database. It handles one message at a time, so reads run between two
 * transactions. A large read is requested in parts, so that no transaction waits long for it.
 */
import { join } from 'node:path'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
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
import { type DatabaseOptions, openDatabase } from './database.ts'
import { DiskReserve, freeBytes } from './disk-space.ts'
import { isNoRoom, storageError } from './errors.ts'
import { openTables } from './tables.ts'
import { Writer } from './writer.ts'

export interface WorkerOptions extends DatabaseOptions {
  /** The delay in ms before a batch that did not fit is retried. Default 250. */
  readonly retryMs?: number
  /** The time in ms without a batch after which the log is truncated. Default 1,000. */
  readonly idleMs?: number
  /** The size of the log, in pages of 16 KiB, at which a checkpoint runs. Default 2,048. */
  readonly checkpointPages?: number
  /** The maximum size of the reserve. Default 16 MiB. */
  readonly reserveBytes?: number
}

export type ToWorker =
  | { readonly type: 'write'; readonly batch: Batch }
  | { readonly type: 'read'; readonly token: number; readonly ids: Float64Array }
  | { readonly type: 'audit'; readonly token: number; readonly after: number; readonly limit: number }
  | { readonly type: 'backup'; readonly token: number; readonly path: string }
  | { readonly type: 'close' }

/** A StorageError in a message: structured clone would turn it into a plain Error. */
export interface SerializedError {
  readonly code: StorageErrorCode
  readonly message: string
  readonly cause: unknown
}

export type FromWorker =
  | { readonly type: 'opened'; readonly recovered: Recovered }
  | { readonly type: 'refused'; readonly error: SerializedError }
  | { readonly type: 'durable'; readonly number: number; readonly room: number }
  | { readonly type: 'full' }
  | { readonly type: 'room' }
  | { readonly type: 'failed'; readonly error: SerializedError }
  /** The first of the requested blocks: lengths, -1 for a missing or damaged block, and the frames back to back. */
  | { readonly type: 'part'; readonly token: number; readonly lengths: Int32Array; readonly data: ArrayBuffer }
  /** Records of the audit log, at most the requested number. */
  | { readonly type: 'records'; readonly token: number; readonly rows: readonly AuditRow[] }
  | { readonly type: 'unread'; readonly token: number; readonly error: SerializedError }
  | { readonly type: 'copied'; readonly token: number; readonly progress: BackupProgress }
  /** The backup is complete. */
  | { readonly type: 'backedUp'; readonly token: number; readonly bytes: number }
  | { readonly type: 'notBackedUp'; readonly token: number; readonly error: SerializedError }

/** 32 MiB; SQLite's default of 4 MiB would copy hot pages too often. */
const CHECKPOINT_PAGES = 2048
/** With a further block of 256 KiB a part stays within 1 MiB. */
const PART_BYTES = 768 * 1024

if (parentPort !== null) run(parentPort, workerData as WorkerOptions)

function run(port: MessagePort, options: WorkerOptions): void {
  const post = (message: FromWorker, transfer: ArrayBuffer[] = []): void => port.postMessage(message, transfer)
  try {
    serve(port, options, post)
  } catch (error) {
    post({ type: 'refused', error: refusal(error, options.directory) })
    port.close()
  }
}

function serve(port: MessagePort, options: WorkerOptions, post: (m: FromWorker, t?: ArrayBuffer[]) => void): void {
  const { directory, retryMs = 250, idleMs = 1_000, checkpointPages = CHECKPOINT_PAGES, reserveBytes } = options
  const reserve = new DiskReserve(directory, reserveBytes)
  const opened = openWithRoom(options, reserve)
  const { database } = opened
  try {
    const tables = openTables(database)
    const events = {
      durable: ({ number }: Batch, room: number): void => post({ type: 'durable', number, room }),
      full: (): void => post({ type: 'full' }),
      room: (): void => post({ type: 'room' }),
      failed: (error: unknown): void => post({ type: 'failed', error: refusal(error, opened.path) }),
    }
    const recovered = recover(opened, tables)
    opened.begin()
    reserve.make()
    removeParts(join(directory, BACKUPS))
    const writer = new Writer({
      database,
      freeBytes: () => freeBytes(directory),
      tables,
      generation: opened.generation,
      reserve,
      events,
      retryMs,
      idleMs,
      checkpointPages,
    })
    let isClosed = false
    port.on('message', (message: ToWorker) => {
      if (message.type === 'write') writer.write(message.batch)
      else if (message.type === 'read') answer(writer, message.token, message.ids, post)
      else if (message.type === 'audit') {
        const { token, after, limit } = message
        try {
          post({ type: 'records', token, rows: tables.audit.read(after, limit) })
        } catch (error) {
          post({ type: 'unread', token, error: refusal(error, opened.path) })
        }
      } else if (message.type === 'backup') {
        const { token, path } = message
        const progress = (progress: BackupProgress): void => post({ type: 'copied', token, progress })
        backUp(database, path, { progress, isCancelled: () => isClosed }).then(
          (bytes) => post({ type: 'backedUp', token, bytes }),
          (error: unknown) => post({ type: 'notBackedUp', token, error: refusal(error, path) }),
        )
      } else {
        isClosed = true
        writer.close()
        // After a failed fsync a checkpoint would be a retry.
        opened.close(writer.failed ? 'untouched' : undefined)
        port.close()
      }
    })
    post({ type: 'opened', recovered })
    writer.start()
  } catch (error) {
    opened.close('untouched')
    throw storageError(error, opened.path)
  }
}

/** Opens the database, on a full disk with the space of the reserve: stored values must be served after a restart. */
function openWithRoom(options: DatabaseOptions, reserve: DiskReserve): ReturnType<typeof openDatabase> {
  try {
    return openDatabase(options)
  } catch (error) {
    if (!isNoRoom(error instanceof Error ? error.cause : error) || !reserve.release()) throw error
    return openDatabase(options)
  }
}

function answer(
  writer: Writer,
  token: number,
  ids: Float64Array,
  post: (m: FromWorker, t?: ArrayBuffer[]) => void,
): void {
  const found = writer.read(ids, PART_BYTES)
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

function refusal(error: unknown, path: string): SerializedError {
  const { code, message, cause } = storageError(error, path)
  return { code, message, cause: cause instanceof Error ? new Error(cause.message) : undefined }
}
