/** What the answer of a destination means for the values of a request. */
import type { DrainCounts } from './counts.ts'
import type { ReceiverAnswer } from './post.ts'

export interface DeliveryProblem {
  /**
   * `refused`: something is wrong with the values. `forbidden`: they may not be written, or nothing may. `failed`: the same
   * request may be taken later; `status` is 0 if there was no answer.
   */
  readonly kind: 'refused' | 'forbidden' | 'failed'
  readonly counter: keyof DrainCounts & `refused${string}`
  readonly status: number
  /** For people. */
  readonly detail: string
  readonly retryAfter: string | undefined
}

const MAX_TEXT = 200
/** Longer than this nobody waits, whatever the destination says. */
const MAX_RETRY_AFTER_MS = 600_000
const SECOND_MS = 1_000

const TOO_MANY = 429
/** Nothing is wrong with the values where the address, the credentials or the way there are wrong: an operator mends that. */
const misconfigured: readonly number[] = [401, 404, 405, 407, 408, 410]

/** How Prometheus, Mimir, Thanos and VictoriaMetrics name what is wrong with a sample. */
const reasons: readonly (readonly [pattern: RegExp, counter: DeliveryProblem['counter']])[] = [
  [/out[ -]of[ -]order/i, 'refusedOutOfOrder'],
  [/duplicate sample/i, 'refusedDuplicate'],
  [/out of bounds|too old|too far in the past/i, 'refusedTooOld'],
]

const utf8 = new TextDecoder()

/** undefined for 2xx. */
export function problemIn({ status, retryAfter, body }: ReceiverAnswer): DeliveryProblem | undefined {
  if (status >= 200 && status < 300) return undefined
  const text = utf8
    .decode(body.subarray(0, MAX_TEXT))
    .replace(/[\p{Cc}\ufffd]+/gu, ' ')
    .trim()
  const detail = `the destination answered ${status}${text === '' ? '' : `: ${text}`}`
  const known = { status, detail, retryAfter }
  if (status === 403) return { kind: 'forbidden', counter: 'refusedForbidden', ...known }
  const isOfValues = status >= 400 && status < 500 && status !== TOO_MANY && !misconfigured.includes(status)
  if (!isOfValues) return { kind: 'failed', counter: 'refusedFailed', ...known }
  if (status === 413) return { kind: 'refused', counter: 'refusedTooLarge', ...known }
  const [, counter = 'refusedInvalid' as const] = reasons.find(([pattern]) => pattern.test(text)) ?? []
  return { kind: 'refused', counter, ...known }
}

/** `Retry-After` in seconds or as a date; 0 if there is none. */
export function retryAfterMs(header: string | undefined, wallMs: number): number {
  if (header === undefined) return 0
  const ms = /^\d+$/.test(header) ? Number(header) * SECOND_MS : Date.parse(header) - wallMs
  return ms > 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : 0
}
