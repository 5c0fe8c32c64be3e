/**
 * What the server needs of a storage: bytes and numbers, no policy. The server decides (ids, limits, order, loss);
 * a store makes it survive. All of a batch is stored or nothing of it. Implementations: sqlite/, memory/.
 *
 * Hot rows travel as numbers in Float64Arrays with the widths named here, never as an array of objects:
 * a batch crosses a thread border.
 */
import type {
  AuditRow,
  BindingRow,
  ChannelRow,
  DialRow,
  ExecutionRow,
  InstanceRow,
  PlaceRow,
  ResultRow,
  RuleRow,
  StopRow,
  TenantRow,
  TokenRow,
  UserRow,
} from './rows.ts'

export type * from './rows.ts'

/**
 * id, channel, lane (0 = sending, else metric id), first transaction id (0 = waiting), values, offset, length,
 * stamp (age clock of the last value, ms), from, to (times of the first and the latest value, microseconds),
 * metric (0 = several)
 */
export const BLOCK_WIDTH = 11
/** id, lane, first, of a block that changed its lane: a release */
export const MOVE_WIDTH = 3
/** block id, offset, length of the bitmap (bit n of byte n>>3 = value n is settled) in `data` */
export const SETTLED_WIDTH = 3
/** channel, floor, next, reserved, accepted, committed, then the dropped counts, then the GAPs told */
export const CHANNEL_WIDTH = 14
/** id, channel, lane, transaction, metric, count, from, to, reason */
export const GAP_WIDTH = 9

/** One transaction. The rows belong to the store from `write` on, `data` until `onDurable`. */
export interface Batch {
  /** 1, 2, 3 ...: `onDurable` names it. */
  readonly number: number
  /**
   * VALUE frames and bitmaps, back to back. Only the first `dataLength` bytes count. Better shared memory: megabytes that
   * change hands twice per batch make the garbage collector run for nothing.
   */
  readonly data: ArrayBufferLike
  readonly dataLength: number
  /** Blocks to be stored. An id that is stored already is replaced: a small block that has grown. */
  readonly blocks: Float64Array
  readonly moved: Float64Array
  readonly settled: Float64Array
  /** Ids of blocks that are needed no more. */
  readonly removed: Float64Array
  readonly channels: Float64Array
  /** GAPs to be stored; an id that is stored already is replaced. */
  readonly gaps: Float64Array
  readonly gapsRemoved: Float64Array
  /** What changes rarely, in order, before everything above. */
  readonly changes: readonly Change[]
  /** The age clock (ms) and the wall clock (ms since 1970) at this batch: how long the server was down is their matter. */
  readonly age: number
  readonly wall: number
}

export type Change =
  | { readonly put: 'tenant'; readonly row: TenantRow }
  | { readonly put: 'user'; readonly row: UserRow }
  | { readonly put: 'channel'; readonly row: ChannelRow }
  | { readonly put: 'instance'; readonly row: InstanceRow }
  | { readonly put: 'binding'; readonly row: BindingRow }
  | { readonly put: 'place'; readonly row: PlaceRow }
  | { readonly put: 'stop'; readonly row: StopRow }
  | { readonly put: 'result'; readonly row: ResultRow }
  | { readonly put: 'rule'; readonly row: RuleRow }
  | { readonly put: 'token'; readonly row: TokenRow }
  | { readonly put: 'dial'; readonly row: DialRow }
  | { readonly put: 'audit'; readonly row: AuditRow }
  | { readonly put: 'execution'; readonly row: ExecutionRow }
  /** A sensor whose values are kept out until somebody lets them in again. */
  | { readonly put: 'fence'; readonly row: { readonly sensor: string } }
  /** With its tokens and executions. */
  | { readonly remove: 'user'; readonly id: number }
  | { readonly remove: 'tenant'; readonly name: string }
  | { readonly remove: 'rule'; readonly number: number }
  | { readonly remove: 'token'; readonly id: number }
  /** All records up to this number. */
  | { readonly remove: 'audit'; readonly through: number }
  /** All that were used before this time, ms since 1970. */
  | { readonly remove: 'execution'; readonly before: number }
  | { readonly remove: 'fence'; readonly sensor: string }
  /** With all that hangs on it: blocks, gaps, bindings and their places, stops, results, numbers, dial. */
  | { readonly remove: 'channel'; readonly id: number }
  | { readonly remove: 'instance'; readonly id: number }
  /** With its place. */
  | { readonly remove: 'binding'; readonly channel: number; readonly metric: number }
  | { readonly remove: 'stop'; readonly channel: number; readonly metric: number }
  | { readonly remove: 'result'; readonly id: number }
  /** A clean end: what was reserved is known to be unused. */
  | { readonly put: 'closed'; readonly row: Record<string, never> }

/** What a store holds when it is opened: states and the directory of blocks, no frames. */
export interface Recovered {
  readonly tenants: readonly TenantRow[]
  readonly users: readonly UserRow[]
  readonly nextUserId: number
  readonly rules: readonly RuleRow[]
  readonly nextRule: number
  readonly tokens: readonly TokenRow[]
  readonly nextTokenId: number
  readonly dials: readonly DialRow[]
  readonly executions: readonly ExecutionRow[]
  readonly fences: readonly string[]
  /** The last record of the audit log; undefined before the first. */
  readonly audited: Pick<AuditRow, 'number' | 'hash'> | undefined
  readonly channels: readonly ChannelRow[]
  /** CHANNEL_WIDTH numbers each. */
  readonly numbers: Float64Array
  readonly instances: readonly InstanceRow[]
  readonly bindings: readonly BindingRow[]
  readonly places: readonly PlaceRow[]
  readonly stops: readonly StopRow[]
  readonly results: readonly ResultRow[]
  /** BLOCK_WIDTH numbers each (offset 0), ascending by channel, lane, first, id. */
  readonly blocks: Float64Array
  readonly settled: ReadonlyMap<number, Uint8Array>
  /** GAP_WIDTH numbers each, ascending by channel, lane, transaction, id. */
  readonly gaps: Float64Array
  /** Above every id of a block or gap that was ever given. */
  readonly nextBlockId: number
  readonly age: number
  readonly wall: number
  /** 32 random bytes made with the database: salts for users that do not exist. */
  readonly secret: Uint8Array
  /** What was damaged and what became of it, for people: a sentence each. */
  readonly warnings?: readonly string[]
}

/** The frames of a block, or `undefined` if they are damaged: the store has set the row aside and serves it no more. */
export interface BlockBytes {
  readonly id: number
  readonly bytes: Uint8Array | undefined
}

export interface StoreEvents {
  /**
   * Everything up to batch `number` is stored; its `data` may be used again. `room`: bytes of values that surely find
   * room on the disk, be it what is kept in reserve; undefined where that is not known.
   */
  onDurable(number: number, room?: number): void
  /**
   * The disk is full: the batch in flight is being tried again and again until `onDurable`. What makes it fit may be
   * the reserve, so values are better refused until `onRoom`; what frees something (COMMIT, STOP) goes on being stored.
   */
  onFull(): void
  /** After `onFull`: there is room again, and the reserve is whole. */
  onRoom(): void
  /** Storing failed for another reason: nothing more will be acknowledged; the process has to end. */
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
  /** Waits for the batch in flight, then closes. */
  close(): Promise<void>
}

export type StorageErrorCode = 'LOCKED' | 'NOT_WRITABLE' | 'TOO_NEW' | 'DAMAGED' | 'FULL' | 'IO'

export class StorageError extends Error {
  override readonly name = 'StorageError'
  readonly code: StorageErrorCode

  constructor(code: StorageErrorCode, message: string, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}
