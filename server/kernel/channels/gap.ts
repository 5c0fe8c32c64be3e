/**
 * A GAP: the entry of a lane in the place of values that are missing [MON 8 GAP]. While it is unsent it may grow by losses
 * of the same reason beside it; once sent it never changes.
 */
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { GapReason } from '../../../protocol/monitor/constants.ts'
import { FRAME_METRIC, GAP_FRAME_BYTES, writeGap } from '../../../protocol/monitor/message.ts'
import { GAP_WIDTH } from '../../../storage/store.ts'

/** Values that were lost. Times are microseconds, 0 if unknown; metric 0: several; count 0: unknown. */
export interface Loss {
  readonly reason: GapReason
  readonly metric: number
  readonly count: number
  readonly from: number
  readonly to: number
  /** Another producer that has lost them: losses of different producers do not become one. */
  readonly producer?: string | undefined
}

/** The loss of one arriving value, by the prefix of its frame. */
export function lossOfFrame(reason: 'full' | 'overflow', framePrefix: Uint8Array, time: number): Loss {
  const metric = new DataView(framePrefix.buffer, framePrefix.byteOffset).getUint32(FRAME_METRIC)
  return { reason: GapReason[reason], metric, count: 1, from: time, to: time }
}

export class GapEntry {
  readonly kind = 'gap'
  readonly id: number
  lane: number
  /** Its own transaction id; 0 while it waits in a buffer lane, or on a channel that is not durable. */
  transaction: number
  readonly reason: GapReason
  readonly producer: string | undefined
  metric: number
  count: number
  from: number
  to: number
  /** It was handed to the connection that is there now; written by `Window`. */
  inFlight = false
  /** It was handed to a connection once: it never changes again. */
  wasSent = false
  settled = false
  /** It is among the GAPs that the next batch writes, and: a batch has it. Written by `Persistence`. */
  dirty = false
  submitted = false

  constructor(id: number, lane: number, transaction: number, loss: Loss) {
    this.id = id
    this.lane = lane
    this.transaction = transaction
    this.reason = loss.reason
    this.producer = loss.producer
    this.metric = loss.metric
    this.count = loss.count
    this.from = loss.from
    this.to = loss.to
  }

  /** A GAP as it was stored: row `row` of `rows`. It may have been sent before. */
  static restored(rows: Float64Array, row: number): GapEntry {
    const at = row * GAP_WIDTH
    const number = (index: number): number => rows[at + index] as number
    const reason = number(8) as GapReason
    const loss = { metric: number(4), count: number(5), from: number(6), to: number(7), reason }
    const gap = new GapEntry(number(0), number(2), number(3), loss)
    gap.submitted = true
    gap.wasSent = true
    return gap
  }

  get first(): number {
    return this.transaction
  }

  get last(): number {
    return this.transaction
  }

  /** Adds a loss beside it. */
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
