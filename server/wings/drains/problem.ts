/** What the answer of a destination means for the values of a request. */

import { answerText, type ReceiverAnswer } from '../../kit/io/post.ts'
import type { DrainCounts } from './counts.ts'

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

const TOO_MANY = 429
/** Nothing is wrong with the values where the address, the credentials or the way there are wrong: an operator mends that. */
const misconfigured: readonly number[] = [401, 404, 405, 407, 408, 410]

/** How Prometheus, Mimir, Thanos and VictoriaMetrics name what is wrong with a sample. */
const reasons: readonly (readonly [pattern: RegExp, counter: DeliveryProblem['counter']])[] = [
  [/out[ -]of[ -]order/i, 'refusedOutOfOrder'],
  [/duplicate sample/i, 'refusedDuplicate'],
  [/out of bounds|too old|too far in the past/i, 'refusedTooOld'],
]

/** undefined for 2xx. */
export function problemIn({ status, retryAfter, body }: ReceiverAnswer): DeliveryProblem | undefined {
  if (status >= 200 && status < 300) return undefined
  const text = answerText(body)
  const detail = `the destination answered ${status}${text === '' ? '' : `: ${text}`}`
  const known = { status, detail, retryAfter }
  if (status === 403) return { kind: 'forbidden', counter: 'refusedForbidden', ...known }
  const isOfValues = status >= 400 && status < 500 && status !== TOO_MANY && !misconfigured.includes(status)
  if (!isOfValues) return { kind: 'failed', counter: 'refusedFailed', ...known }
  if (status === 413) return { kind: 'refused', counter: 'refusedTooLarge', ...known }
  const [, counter = 'refusedInvalid' as const] = reasons.find(([pattern]) => pattern.test(text)) ?? []
  return { kind: 'refused', counter, ...known }
}
