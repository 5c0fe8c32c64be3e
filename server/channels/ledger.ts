/**
 * The ledger of a channel [MON 8 Ledger]: accepted = committed + in flight + queued + dropped, at every moment.
 * `unsettled` (in flight and queued) is counted on its own, so that the sum can be checked against it.
 */

/** Why a value was dropped, in the order of the stored numbers. */
export const dropCauses = ['overflow', 'superseded', 'expired', 'damaged', 'purged', 'stopped', 'full'] as const
export type DropCause = (typeof dropCauses)[number]

export class QueueLedger {
  accepted = 0
  committed = 0
  readonly dropped: Record<DropCause, number> = {
    overflow: 0,
    superseded: 0,
    expired: 0,
    damaged: 0,
    purged: 0,
    stopped: 0,
    full: 0,
  }
  /** GAPs that entered the queue. */
  gaps = 0
  unsettled = 0

  get droppedTotal(): number {
    let total = 0
    for (const cause of dropCauses) total += this.dropped[cause]
    return total
  }

  /** Zero while the ledger balances. */
  get imbalance(): number {
    return this.accepted - this.committed - this.droppedTotal - this.unsettled
  }
}
