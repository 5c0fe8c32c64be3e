/** Where a database stands in the replicated log. */

/** The length in bytes of the hash of a record (SHA-256). */
export const RECORD_HASH_BYTES = 32
/** The hash before the first record of a log. */
export const NO_RECORD_HASH: Uint8Array = new Uint8Array(RECORD_HASH_BYTES)

/**
 * The last record of the log that a database has. It is stored in the transaction of that record, so it is never ahead of the
 * content of the database or behind it.
 */
export interface LogPlace {
  /** Which log: 1, 2, 3 ...; each time the log is founded anew it gets the next number. 0: the database is in none. */
  readonly log: number
  /** The epoch in which the record was appended. */
  readonly epoch: number
  /** The sequence of its last part in the stream; 0 before the first record. */
  readonly sequence: number
  /** SHA-256 of the record; each record has that of the one before. All zeroes before the first record. */
  readonly hash: Uint8Array
}
