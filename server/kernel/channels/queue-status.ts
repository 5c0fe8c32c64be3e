/** What a queue reports of itself: counts of this moment, and what a look at every block shows. */

import type { Steps } from '../core/fair-work.ts'
import type { DropCause } from './ledger.ts'
import type { SettledQueue } from './settlement.ts'

export interface QueueCounts {
  readonly accepted: number
  readonly committed: number
  readonly inFlight: number
  readonly queued: number
  readonly queuedBytes: number
  readonly gaps: number
  readonly dropped: Readonly<Record<DropCause, number>>
}

export interface QueueStatus extends QueueCounts {
  /** The highest id up to which everything in the sending order is stored or committed, and every loss has a GAP on disk. */
  readonly stored: number
  /** Accepted values that are neither. */
  readonly unstored: number
  /** Time of the oldest value that is not settled, microseconds; 0 if there is none. */
  readonly oldest: number
}

export function countsOf({ ledger, window, settlement }: SettledQueue): QueueCounts {
  const inFlight = window.values
  return {
    accepted: ledger.accepted,
    committed: ledger.committed,
    inFlight,
    queued: ledger.unsettled - inFlight,
    // Both may be averages, if frames differ in size.
    queuedBytes: Math.max(0, settlement.bytes - window.bytes),
    gaps: ledger.gaps,
    dropped: { ...ledger.dropped },
  }
}

/**
 * The counts are those of the beginning. What is settled while the steps go on may be missing from `oldest` and `unstored`;
 * `stored` never says too much, because entries that come meanwhile have later ids, and stored ones stay so.
 */
export function* statusOf(parts: SettledQueue): Steps<QueueStatus> {
  const { ids, lanes, persistence } = parts
  const counts = countsOf(parts)
  let unstored = 0
  let stored = ids.next - 1
  let oldest = Number.POSITIVE_INFINITY
  for (const lane of [...lanes]) {
    for (const entry of lane.entries()) {
      yield
      if (lane.id === 0) stored = Math.min(stored, persistence.storedThrough(entry))
      if (entry.kind === 'gap' || entry.unsettled === 0) continue
      oldest = Math.min(oldest, entry.minTime)
      unstored += entry.countUnstored
    }
  }
  return { ...counts, stored, unstored, oldest: Number.isFinite(oldest) ? oldest : 0 }
}
