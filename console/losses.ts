/** Ranges of time in which values are missing, as the server remembers them. */
import type { LossRange, PlainRecord } from '../client/browser.ts'
import type { Hole } from './series-watch.ts'

/** Ranges of loss that are kept; what is beyond them widens the last one. */
const MOST_LOSSES = 1_000

/** Values that are missing in a range of time. */
export interface PastLoss extends Hole {
  /** Of which metrics, and why, in a few words. */
  readonly reason: string
}

/** Of a record of `producer.history.select`. */
export function lossOf(record: PlainRecord): LossRange {
  const [tenant, metric, reason] = [String(record['tenant']), String(record['metric']), String(record['reason'])]
  return {
    tenant,
    metric,
    from: Number(record['from']),
    to: Number(record['to']),
    count: Number(record['lost']),
    reason,
  }
}

/** Keeps a range of loss, which several answers may report. */
export function keepLoss(losses: Map<string, PastLoss>, { tenant, metric, count, ...lost }: LossRange): void {
  const [from, to] = [lost.from / 1e6, lost.to / 1e6]
  const reason = [metric, lost.reason].filter((text) => text !== '').join(': ')
  const loss = { from, to, count, reason }
  const key = JSON.stringify([tenant, loss])
  if (losses.has(key) || losses.size < MOST_LOSSES) {
    losses.set(key, loss)
    return
  }
  const [last = key, before = loss] = [...losses].at(-1) ?? []
  losses.set(last, {
    ...before,
    from: Math.min(before.from, from),
    to: Math.max(before.to, to),
    count: before.count + count,
  })
}
