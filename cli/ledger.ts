/** The counters of a channel in `producer.channels` [MON 8.9], and what they mean: how far behind it is, and why. */
import { type AnswerRecord, fieldNumber, fieldsOf, fieldText, findField, toRecords } from './records.ts'

export interface ChannelLedger {
  readonly channel: number
  /** Empty if it has none. */
  readonly name: string
  readonly identity: string
  readonly url: string
  /** connected, waiting, window-full or orphan. */
  readonly state: string
  readonly isDurable: boolean
  readonly accepted: number
  readonly committed: number
  readonly inFlight: number
  readonly queued: number
  readonly queuedBytes: number
  /** The last stored transaction id. */
  readonly stored: number
  readonly unstored: number
  readonly gaps: number
  /** Microseconds since 1970; 0 if everything is committed. */
  readonly oldest: number
  readonly dropped: readonly { readonly reason: string; readonly count: number }[]
  /** The first of its bindings, or all of them; `bound` is their number. */
  readonly bindings: readonly ChannelBinding[]
  readonly bound: number
}

interface ChannelBinding {
  readonly metric: number
  readonly name: string
  /** subscribe or buffer. */
  readonly mode: string
}

/** A healthy channel has less lag than this between two commits. */
const SLOW_MS = 1_000

export function toLedger(record: AnswerRecord): ChannelLedger {
  const text = (name: string) => fieldText(record, name)
  const count = (name: string) => fieldNumber(record, name)
  const bindings = findField(record, 'bindings')
  const { records = [] } = (bindings && toRecords(bindings)) ?? {}
  return {
    channel: count('channel'),
    name: text('name'),
    identity: text('identity'),
    url: text('url'),
    state: text('state'),
    isDurable: findField(record, 'durable')?.value === true,
    accepted: count('accepted'),
    committed: count('committed'),
    inFlight: count('in_flight'),
    queued: count('queued'),
    queuedBytes: count('queued_bytes'),
    stored: count('stored'),
    unstored: count('unstored'),
    gaps: count('gaps'),
    oldest: count('oldest'),
    dropped: fieldsOf(findField(record, 'dropped')).map(({ name, value }) => ({ reason: name, count: Number(value) })),
    bindings: records.map((binding) => ({
      metric: fieldNumber(binding, 'metric'),
      name: fieldText(binding, 'name'),
      mode: fieldText(binding, 'mode'),
    })),
    bound: Math.max(count('bound'), records.length),
  }
}

/** The number of dropped values, for any reason. */
export function droppedCount({ dropped }: ChannelLedger): number {
  return dropped.reduce((sum, { count }) => sum + count, 0)
}

/** The age of the oldest uncommitted value in milliseconds; `now` is in microseconds, by the producer's clock. */
export function lagMs({ oldest }: ChannelLedger, now: number): number {
  return oldest === 0 ? 0 : Math.max(0, now - oldest) / 1_000
}

export function isSlow(ledger: ChannelLedger, now: number): boolean {
  return lagMs(ledger, now) >= SLOW_MS
}

/** Whether accepted = committed + in flight + queued + dropped [MON 8.8]. */
export function isBalanced(ledger: ChannelLedger): boolean {
  const { accepted, committed, inFlight, queued } = ledger
  return accepted === committed + inFlight + queued + droppedCount(ledger)
}

/** Nobody has come back for it, and nobody would find it by a name [MON 8.1]. */
export function isOrphan({ state }: ChannelLedger): boolean {
  return state === 'orphan'
}

/** Explains in a few words why values wait, or that none do. */
export function explainWait(ledger: ChannelLedger, now: number): string {
  const { state, url, inFlight, queued, isDurable, bindings } = ledger
  if (isOrphan(ledger)) return 'nobody came back: polled metrics pause'
  if (inFlight + queued === 0) return 'nothing is waiting'
  if (state === 'waiting') return url === '' ? 'nobody is connected' : 'its URL is not connected'
  if (state === 'window-full') return 'sent, not committed'
  if (!isSlow(ledger, now)) return 'keeps up'
  if (queued === 0) return 'sent, not committed'
  const buffered = bindings.filter(({ mode }) => mode === 'buffer').length
  if (inFlight === 0 && buffered > 0 && buffered === bindings.length) return 'waits for GET'
  if (buffered > 0) return 'slow, or waits for GET'
  // On a channel that is not durable, sent values are committed at once, so that nothing is in flight.
  return inFlight === 0 && isDurable ? 'reads nothing' : 'reads slowly'
}
