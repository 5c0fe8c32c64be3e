/**
 * The storage thread: it alone touches the database. Messages are handled one at a time, so reads come between two
 * transactions; a large read is asked for in parts, so that no transaction waits long for it.
 */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { AuditRow, Batch, Recovered, StorageErrorCode } from '../store.ts'
import { recover } from './damage/recovery.ts'
import { type DatabaseOptions, openDatabase } from './database.ts'
import { DiskReserve } from './disk-space.ts'
import { isNoRoom, storageError } from './errors.ts'
import { openTables } from './tables.ts'
import { Writer } from './writer.ts'

export interface WorkerOptions extends DatabaseOptions {
  /** How often a batch that found no room is tried again, in ms. Default 250. */
  readonly retryMs?: number
  /** After how many ms without a batch the log is cut to nothing. Default 1,000. */
  readonly idleMs?: number
  /** The log is carried into the database at so many pages of 16 KiB. Default 2,048. */
  readonly checkpointPages?: number
  /** The most that the reserve takes up. Default 16 MiB. */
  readonly reserveBytes?: number
}

export type ToWorker =
  | { readonly type: 'write'; readonly batch: Batch }
  | { readonly type: 'read'; readonly token: number; readonly ids: Float64Array }
  | { readonly type: 'audit'; readonly token: number; readonly after: number; readonly limit: number }
  | { readonly type: 'close' }

/** A StorageError as it crosses threads: structured clone would make it a plain Error. */
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
  /** The first of the ids asked for: lengths, -1 for what is missing or damaged, and the frames back to back. */
  | { readonly type: 'part'; readonly token: number; readonly lengths: Int32Array; readonly data: ArrayBuffer }
  /** Records of the audit log, as many as there are up to the limit. */
  | { readonly type: 'records'; readonly token: number; readonly rows: readonly AuditRow[] }
  | { readonly type: 'unread'; readonly token: number; readonly error: SerializedError }

/** 32 MiB; SQLite's own 4 MiB would copy hot pages too often. */
const CHECKPOINT_PAGES = 2048
/** With a block of 256 KiB on top a part stays at 1 MiB. */
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
    const parts = { database, directory, tables, reserve, events, retryMs, idleMs, checkpointPages }
    const writer = new Writer(parts)
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
      } else {
        writer.close()
        // After a failed fsync carrying over the log would be to try it again.
        opened.close(writer.failed ? 'untouched' : undefined)
        port.close()
      }
    })
    post({ type: 'opened', recovered })
  } catch (error) {
    opened.close('untouched')
    throw storageError(error, opened.path)
  }
}

/** A restart on a full disk must not refuse what is already there. */
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
