/** Ranges of time in which values are missing from what a producer remembers [MON 9.16]. */
import type { PlainRecord } from './values.ts'

/** A range of time in which values are missing; both ends are included. */
export interface LossRange {
  /** Empty: of no tenant. */
  readonly tenant: string
  /** The name of a metric, or a pattern; empty if it may be any. */
  readonly metric: string
  readonly from: number
  readonly to: number
  /** How many values are missing; 0 if that is not known. */
  readonly count: number
  /** A few words for people. */
  readonly reason: string
}

/** The range that a record of `producer.history.select` or `producer.history.query` reports. */
export function lossRangeOf(record: PlainRecord): LossRange {
  return {
    tenant: String(record['tenant']),
    metric: String(record['metric']),
    from: Number(record['from']),
    to: Number(record['to']),
    count: Number(record['lost']),
    reason: String(record['reason']),
  }
}
