/**
 * The ledger of a channel [MON 8 Ledger]: accepted = committed + in flight + queued + dropped, at every moment.
 * `unsettled` (in flight and queued) is counted on its own, so that the sum can be checked against it.
 */

/** The reasons for which values are dropped, in the order of the stored numbers. */
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

  /** Zero while the ledger balances. */
  get imbalance(): number {
    let rest = this.accepted - this.committed - this.unsettled
    for (const cause of dropCauses) rest -= this.dropped[cause]
    return rest
  }

  /** The numbers that are stored: all but `unsettled`, which follows from the blocks. */
  row(): number[] {
    return [this.accepted, this.committed, ...dropCauses.map((cause) => this.dropped[cause]), this.gaps]
  }

  restore(row: Float64Array): void {
    this.accepted = row[0] as number
    this.committed = row[1] as number
    dropCauses.forEach((cause, index) => {
      this.dropped[cause] = row[2 + index] as number
    })
    this.gaps = row[2 + dropCauses.length] as number
  }
}
