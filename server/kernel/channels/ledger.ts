/**
 * The ledger of a channel [MON 8 Ledger]: accepted = committed + in flight + queued + dropped, at every moment.
 * `unsettled` (in flight and queued) is counted on its own, so that the sum can be checked against it.
 */

/** The reasons for which values are dropped, in the order of the stored numbers. */
export const dropCauses = ['overflow', 'superseded', 'expired', 'damaged', 'purged', 'stopped', 'full'] as const
export type DropCause = (typeof dropCauses)[number]

/** Values by the reason for which they were dropped. */
export type Drops = Record<DropCause, number>

export function noDrops(): Drops {
  return { overflow: 0, superseded: 0, expired: 0, damaged: 0, purged: 0, stopped: 0, full: 0 }
}

export class QueueLedger {
  accepted = 0
  committed = 0
  readonly dropped = noDrops()
  /** Those of all channels, since the start. */
  readonly #all: Drops
  /** GAPs that entered the queue. */
  gaps = 0
  unsettled = 0

  constructor(all: Drops) {
    this.#all = all
  }

  drop(cause: DropCause, count = 1): void {
    this.dropped[cause] += count
    this.#all[cause] += count
  }

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

const MINUTE_MS = 60_000
const MINUTES = 60

/** What was dropped in the last hour, to the minute. */
export class HourOfDrops {
  readonly #all: Drops
  readonly #nowMs: () => number
  /** What had been dropped at the end of each of the last sixty minutes, the oldest first. */
  readonly #minutes: Drops[] = [noDrops()]
  #minuteMs: number

  /** `all` is counted up by the queues; `nowMs` is a monotonic clock. */
  constructor(all: Drops, nowMs: () => number) {
    this.#all = all
    this.#nowMs = nowMs
    this.#minuteMs = nowMs()
  }

  /** To be called every second. */
  sweep(): void {
    const now = this.#nowMs()
    if (now - this.#minuteMs < MINUTE_MS) return
    this.#minuteMs = now
    this.#minutes.push({ ...this.#all })
    if (this.#minutes.length > MINUTES) this.#minutes.shift()
  }

  get drops(): Drops {
    const [before = noDrops()] = this.#minutes
    const drops = noDrops()
    for (const cause of dropCauses) drops[cause] = this.#all[cause] - before[cause]
    return drops
  }
}
