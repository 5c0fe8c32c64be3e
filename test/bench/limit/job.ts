/**
 * What a limit server has to do: a server with no queue, ids, ledger or rights, which only moves the bytes of a benchmark.
 * Goes to its process as JSON.
 */
export interface LimitJob {
  readonly workload: 'delivery' | 'drain' | 'query'
  /** Where consumers connect, and where the feed does; 0: any free port. */
  readonly port: number
  readonly feedPort: number
  /** Where its database is. */
  readonly directory: string
  /** The storage thread, compiled. */
  readonly storage: string
  /** Of a frame that a consumer gets, as long as those of the measured run. */
  readonly frameBytes: number
  /** Bytes that are stored for each byte that is sent. */
  readonly storedShare: number
  /** The feed begins with so many bytes, which define its series and have a value of each. */
  readonly definitions: { readonly bytes: number; readonly values: number }
  /** Of a drain: the values that are there. */
  readonly values: number
}

/** What the server tells its storage thread; `store` and `read` are answered in the same order. */
export type ToStorage =
  | {
      readonly kind: 'store'
      /** Which half of the shared memory, and how much of it. */
      readonly half: number
      readonly length: number
      /** The values that are committed: their blocks are removed. */
      readonly committed: number
    }
  | { readonly kind: 'read'; readonly block: number }

export type FromStorage =
  | { readonly kind: 'stored' }
  /** Undefined at the end. */
  | { readonly kind: 'block'; readonly data: ArrayBuffer | undefined }

/** Goes to the storage thread when it is started. */
export interface StorageJob {
  readonly directory: string
  readonly halves: readonly SharedArrayBuffer[]
  readonly frameBytes: number
  /** So many are there at the start. */
  readonly values: number
}

/** Of a row of the database. */
export const BLOCK_BYTES = 256 << 10
/** Of a VALUE frame or RESPONSE, the lower half of the transaction id, or the seq. */
export const ID_AT = 12
export const SEQ_AT = 8

export function valuesPerBlock(frameBytes: number): number {
  return Math.floor(BLOCK_BYTES / frameBytes)
}
