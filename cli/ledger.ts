/** What `producer.channels` tells of a channel [MON 8.9], and what that means: how far behind it is, and why. */
import { BasicType } from '../client/index.ts'
import { fieldOf, numberOf, type Record, recordsOf, textOf } from './records.ts'

export interface Ledger {
  readonly channel: number
  readonly identity: string
  readonly url: string
  /** connected, waiting, window-full, dialling or failed. */
  readonly state: string
  readonly isDurable: boolean
  readonly accepted: number
  readonly committed: number
  readonly inFlight: number
  readonly queued: number
  readonly queuedBytes: number
  /** A transaction id. */
  readonly stored: number
  readonly unstored: number
  readonly gaps: number
  /** Microseconds since 1970; 0: everything is committed. */
  readonly oldest: number
  readonly dropped: readonly { readonly reason: string; readonly count: number }[]
  readonly bindings: readonly Binding[]
}

export interface Binding {
  readonly metric: number
  readonly name: string
  /** subscribe or buffer. */
  readonly mode: string
}

/** Less is what a channel in good order has between two commits. */
const SLOW_MS = 1_000

export function toLedger(record: Record): Ledger {
  const text = (name: string) => textOf(record, name)
  const count = (name: string) => numberOf(record, name)
  const dropped = fieldOf(record, 'dropped')
  const reasons: Record = dropped?.type === BasicType.REC ? dropped.value : []
  const bindings = fieldOf(record, 'bindings')
  const { records = [] } = (bindings && recordsOf(bindings)) ?? {}
  return {
    channel: count('channel'),
    identity: text('identity'),
    url: text('url'),
    state: text('state'),
    isDurable: fieldOf(record, 'durable')?.value === true,
    accepted: count('accepted'),
    committed: count('committed'),
    inFlight: count('in_flight'),
    queued: count('queued'),
    queuedBytes: count('queued_bytes'),
    stored: count('stored'),
    unstored: count('unstored'),
    gaps: count('gaps'),
    oldest: count('oldest'),
    dropped: reasons.map(({ name, value }) => ({ reason: name, count: Number(value) })),
    bindings: records.map((binding) => ({
      metric: numberOf(binding, 'metric'),
      name: textOf(binding, 'name'),
      mode: textOf(binding, 'mode'),
    })),
  }
}

/** Values that were thrown away, for whatever reason. */
export function droppedOf({ dropped }: Ledger): number {
  return dropped.reduce((sum, { count }) => sum + count, 0)
}

/** The age of the oldest value that is not committed, milliseconds; `now` in microseconds, by the producer's clock. */
export function lagOf({ oldest }: Ledger, now: number): number {
  return oldest === 0 ? 0 : Math.max(0, now - oldest) / 1_000
}

export function isSlow(ledger: Ledger, now: number): boolean {
  return lagOf(ledger, now) >= SLOW_MS
}

/** Whether accepted = committed + in flight + queued + dropped [MON 8.8]. */
export function isBalanced(ledger: Ledger): boolean {
  const { accepted, committed, inFlight, queued } = ledger
  return accepted === committed + inFlight + queued + droppedOf(ledger)
}

/** Why values wait, or that none do, in a few words. */
export function whyOf(ledger: Ledger, now: number): string {
  const { state, inFlight, queued, isDurable, bindings } = ledger
  if (state === 'dialling') return 'its URL is being dialled'
  if (state === 'failed') return 'its URL does not answer'
  if (inFlight + queued === 0) return 'nothing is waiting'
  if (state === 'waiting') return 'nobody is connected'
  if (state === 'window-full') return 'sent, not committed'
  if (!isSlow(ledger, now)) return 'keeps up'
  if (queued === 0) return 'sent, not committed'
  const buffered = bindings.filter(({ mode }) => mode === 'buffer').length
  if (inFlight === 0 && buffered > 0 && buffered === bindings.length) return 'waits for GET'
  if (buffered > 0) return 'slow, or waits for GET'
  // Without durability nothing is in flight: what was sent is committed.
  return inFlight === 0 && isDurable ? 'reads nothing' : 'reads slowly'
}
