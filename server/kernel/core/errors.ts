/**
 * The only place that turns errors into statuses of the protocol [MON 4]. A StatusError is the fault of the request, and its
 * sentence goes to the consumer; any other error is the server's fault: it is logged, and the answer is INTERNAL.
 */
import { ProtocolError } from '../../../protocol/errors.ts'
import { type StatusName, statuses } from '../../../protocol/monitor/status.ts'

export class StatusError extends Error {
  override readonly name = 'StatusError'
  readonly status: StatusName

  constructor(status: StatusName, detail: string) {
    super(detail)
    this.status = status
  }
}

/** Texts from code that is not the server's are at most this long, in UTF-16 units. */
export const MAX_DETAIL = 4096

/** Whether an error from code that is not the server's is a StatusError that can be sent. */
export function isRefusal(error: unknown): error is StatusError {
  return error instanceof StatusError && Object.hasOwn(statuses, error.status) && error.message.length <= MAX_DETAIL
}

export function noSuchTransaction(): StatusError {
  return new StatusError('NO_SUCH_TRANSACTION', 'the current channel never used this transaction id')
}

/** What a consumer is told of a fault of the server. */
export const PRODUCER_FAILED = 'the producer failed; see its log'

export interface Refusal {
  readonly status: number
  readonly detail: string
  /** True if it is the server's fault: it is logged with its stack, and the connection is closed. */
  readonly ours: boolean
}

export function refusalOf(error: unknown): Refusal {
  if (error instanceof StatusError) return { status: statuses[error.status].code, detail: error.message, ours: false }
  if (error instanceof ProtocolError)
    return { status: statuses.INVALID_ARGUMENT.code, detail: error.message, ours: false }
  return { status: statuses.INTERNAL.code, detail: PRODUCER_FAILED, ours: true }
}
