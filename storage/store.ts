/**
 * The contract between the server and its storage: bytes and numbers, no policy. The server decides about ids, limits, order and
 * loss; a store makes the result durable. A batch is stored completely or not at all. sqlite/ implements it.
 *
 * Rows that change with every batch are numbers in Float64Arrays of the widths below instead of objects, because a batch
 * crosses a thread boundary.
 */
import type { AuditRow, QmfAgentRow, RecoveredRows, RowPut, RowRemoval } from './rows.ts'

export type * from './rows.ts'

/**
 * id, channel, lane (0 = sending, else metric id), first transaction id (0 = waiting), values, offset, length,
 * stamp (age clock of the last value, ms), from, to (times of the first and the latest value, microseconds),
 * metric (0 = several)
 */
export const BLOCK_WIDTH = 11
/** id, lane, first of a block that was released into another lane */
export const MOVE_WIDTH = 3
/** block id, offset, length of the bitmap (bit n of byte n>>3 = value n is settled) in `data` */
export const SETTLED_WIDTH = 3
/** channel, floor, next, reserved, accepted, committed, then the dropped counts, then the number of reported GAPs */
export const CHANNEL_WIDTH = 14
/** id, channel, lane, transaction, metric, count, from, to, reason */
export const GAP_WIDTH = 9

/**
 * Below this size a block that is stored may still grow: a later batch may have it again, with more frames. Records of the
 * replicated log rely on it, so another size means another format of them.
 */
export const SMALL_BLOCK_BYTES = 1024

/** One transaction. The rows belong to the store from `write` on, `data` until `onDurable`. */
export interface Batch {
  /** 1, 2, 3 ...; `onDurable` reports it. */
  readonly number: number
  /**
   * VALUE frames and bitmaps, back to back, in the first `dataLength` bytes. Shared memory is better: transferring megabytes
   * twice per batch triggers needless garbage collections.
   */
  readonly data: ArrayBufferLike
  readonly dataLength: number
  /** Blocks to store. An id that is already stored is replaced by the block that has grown. */
  readonly blocks: Float64Array
  readonly moved: Float64Array
  readonly settled: Float64Array
  /** Ids of blocks to delete. */
  readonly removed: Float64Array
  readonly channels: Float64Array
  /** GAPs to store; an id that is already stored is replaced. */
  readonly gaps: Float64Array
  readonly gapsRemoved: Float64Array
  /** Changes of other rows, applied in order before everything above. */
  readonly changes: readonly Change[]
  /** Whether transaction ids are reserved or given back: a database without this batch must not go on as if it had it. */
  readonly reserves: boolean
  /** The age clock (ms) and the wall clock (ms since 1970) at this batch; after a restart they show how long the server was down. */
  readonly age: number
  readonly wall: number
}

/** What a batch removes is gone for good when it is durable, also if the store removes the rows later, in pieces. */
export type Change =
  | RowPut
  /** With a channel go its blocks, GAPs and numbers, too. */
  | RowRemoval
  /** A clean shutdown: reserved transaction ids are known to be unused. */
  | { readonly put: 'closed'; readonly row: Record<string, never> }
  /** Consumers will be informed of what the start has found: it need not be found again. */
  | { readonly put: 'recovered'; readonly row: Record<string, never> }

/** The content of a store when it is opened: all states and the directory of blocks, without frames. */
export interface Recovered extends RecoveredRows {
  readonly nextUserId: number
  readonly nextRule: number
  readonly nextTokenId: number
  readonly nextBoardId: number
  readonly fences: readonly string[]
  /** undefined if this server was an agent of no broker yet. */
  readonly qmfAgent: QmfAgentRow | undefined
  /** The last record of the audit log; undefined before the first. */
  readonly audited: Pick<AuditRow, 'number' | 'hash'> | undefined
  /** CHANNEL_WIDTH numbers each. */
  readonly numbers: Float64Array
  /** BLOCK_WIDTH numbers each (offset 0), ascending by channel, lane, first, id. */
  readonly blocks: Float64Array
  readonly settled: ReadonlyMap<number, Uint8Array>
  /** GAP_WIDTH numbers each, ascending by channel, lane, transaction, id. */
  readonly gaps: Float64Array
  /** Greater than every block or gap id ever used. */
  readonly nextBlockId: number
  readonly age: number
  readonly wall: number
  /** 32 random bytes generated with the database: the salts of users that do not exist are derived from them. */
  readonly secret: Uint8Array
  /** Random text that names the history of transaction ids; a database that is restored begins another one. */
  readonly generation: string
  /** The database is older than what consumers have seen: each durable channel has to report that [MON 8 Restoring]. */
  readonly restored: boolean
  /** One sentence for people about each kind of damage and its consequence. */
  readonly warnings?: readonly string[]
}

/** The frames of a block; `undefined` if they are damaged: the store has set the row aside and no longer serves it. */
export interface BlockBytes {
  readonly id: number
  readonly bytes: Uint8Array | undefined
}

/** The directory in the data directory where backups are made. */
export const BACKUPS = 'backups'
/** The name of the database, in the data directory and in a backup with a history. */
export const DATABASE_FILE = 'cinnabar.db'

/** How far a backup has come. */
export interface BackupProgress {
  readonly copiedBytes: number
  readonly totalBytes: number
}

export interface StoreEvents {
  /**
   * Everything up to batch `number` is stored, and its `data` may be reused. `room` is the number of bytes of values that
   * certainly fit on the disk, including the reserve; undefined if that is not known.
   */
  onDurable(number: number, room?: number): void
  /**
   * The disk is full: the store retries the batch in flight until `onDurable`. It may use the reserve for that, so values
   * should be refused until `onRoom`. Batches that free space (COMMIT, STOP) are still stored.
   */
  onFull(): void
  /** Reported after `onFull` when there is enough free space again and the reserve is complete. */
  onRoom(): void
  /** Storing failed for another reason: nothing more will be acknowledged, and the process must end. */
  onFailed(error: StorageError): void
}

export interface Store {
  /** Takes the lock, migrates, reads the state. Throws StorageError. */
  open(events: StoreEvents): Promise<Recovered>
  /** One batch may be in flight. */
  write(batch: Batch): void
  /** Reads blocks by id; the answer is in the same order. */
  read(ids: readonly number[]): Promise<BlockBytes[]>
  /** Records of the audit log above number `after`, ascending, at most `limit`. */
  audit(after: number, limit: number): Promise<AuditRow[]>
  /**
   * Writes a consistent copy of everything that is durable to a new file, in steps between batches. Returns its size in bytes.
   * A store that is opened from it counts as restored. Rejects with StorageError, and then there is no file.
   */
  backup(path: string, progress: (progress: BackupProgress) => void): Promise<number>
  /** Closes the store after the batch in flight. */
  close(): Promise<void>
}

export type StorageErrorCode =
  | 'LOCKED'
  | 'NOT_WRITABLE'
  | 'TOO_NEW'
  | 'DAMAGED'
  | 'FULL'
  | 'IO'
  /** The nats-servers that keep the cluster's log do not answer now. */
  | 'UNREACHABLE'
  /** The database is not part of the cluster's log. */
  | 'FOREIGN'
  /** The cluster's log no longer has the records that the database needs. */
  | 'BEHIND'
  /** Another node leads. */
  | 'DEPOSED'

export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly code: StorageErrorCode

  constructor(code: StorageErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}
