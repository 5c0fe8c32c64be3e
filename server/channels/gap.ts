/**
 * A GAP: the entry of a lane in the place of values that are missing [MON 8 GAP]. While unsent it may grow, by losses of
 * the same reason beside it; once sent it never changes.
 */
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import type { GapReason } from '../../protocol/monitor/constants.ts'
import { writeGap } from '../../protocol/monitor/message.ts'

export const GAP_FRAME_BYTES = 48

/** What was lost. Times in microseconds, 0 unknown; metric 0 several; count 0 unknown. */
export interface Loss {
  readonly reason: GapReason
  readonly metric: number
  readonly count: number
  readonly from: number
  readonly to: number
}

export class GapEntry {
  readonly kind = 'gap'
  readonly id: number
  lane: number
  /** Its own transaction id; 0 while it waits in a buffer lane, or on a channel that is not durable. */
  transaction: number
  readonly reason: GapReason
  metric: number
  count: number
  from: number
  to: number
  /** Handed to the connection that is there now. */
  inFlight = false
  /** Handed to a connection once: never changes any more. */
  wasSent = false
  settled = false
  dirty = false
  submitted = false

  constructor(id: number, lane: number, transaction: number, loss: Loss) {
    this.id = id
    this.lane = lane
    this.transaction = transaction
    this.reason = loss.reason
    this.metric = loss.metric
    this.count = loss.count
    this.from = loss.from
    this.to = loss.to
  }

  get first(): number {
    return this.transaction
  }

  get last(): number {
    return this.transaction
  }

  /** Takes in a loss beside it. */
  merge(loss: Loss, transaction: number): void {
    if (this.metric !== loss.metric) this.metric = 0
    this.count = this.count === 0 || loss.count === 0 ? 0 : this.count + loss.count
    this.from = this.from === 0 || loss.from === 0 ? 0 : Math.min(this.from, loss.from)
    this.to = this.to === 0 || loss.to === 0 ? 0 : Math.max(this.to, loss.to)
    this.transaction = Math.max(this.transaction, transaction)
  }

  frame(): Uint8Array {
    const { transaction, metric, count, from, to, reason } = this
    const writer = new XdrWriter(GAP_FRAME_BYTES)
    writeGap(writer, { transaction, metric, count, from, to, reason })
    return writer.bytes()
  }
}
