/** What a drain counts since the server started (docs/drains.md). */

export interface DrainCounts {
  /** Values that the destination has taken. */
  values: number
  requests: number
  /** Requests that had to be sent again. */
  retries: number
  /** Values that the channel had lost before they could be sent. */
  lost: number
  /** Values that the protocol has no form for, such as texts. */
  unsupported: number
  /** Values after which another one of their series came in the same millisecond. */
  superseded: number
  /** Values of families that the drain does not name. */
  leftOut: number
  refusedOutOfOrder: number
  refusedDuplicate: number
  refusedTooOld: number
  refusedTooLarge: number
  refusedForbidden: number
  refusedInvalid: number
  refusedFailed: number
}

export function noCounts(): DrainCounts {
  return {
    values: 0,
    requests: 0,
    retries: 0,
    lost: 0,
    unsupported: 0,
    superseded: 0,
    leftOut: 0,
    refusedOutOfOrder: 0,
    refusedDuplicate: 0,
    refusedTooOld: 0,
    refusedTooLarge: 0,
    refusedForbidden: 0,
    refusedInvalid: 0,
    refusedFailed: 0,
  }
}
