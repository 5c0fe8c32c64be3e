/**
 * How errors become statuses of the wire [MON 4]; the only place that does. A StatusError is the request's fault and goes
 * to the consumer with its sentence; anything else is ours: logged, and answered INTERNAL.
 */
import { ProtocolError } from '../../protocol/errors.ts'
import { type StatusName, statuses } from '../../protocol/monitor/status.ts'

export class StatusError extends Error {
  override readonly name = 'StatusError'
  readonly status: StatusName

  constructor(status: StatusName, detail: string) {
    super(detail)
    this.status = status
  }
}

export function noSuchTransaction(): StatusError {
  return new StatusError('NO_SUCH_TRANSACTION', 'the current channel has never given this transaction id')
}

export interface Refusal {
  readonly status: number
  readonly detail: string
  /** Not the consumer's fault: to be logged with its stack, and the connection is closed. */
  readonly ours: boolean
}

export function refusalOf(error: unknown): Refusal {
  if (error instanceof StatusError) return { status: statuses[error.status].code, detail: error.message, ours: false }
  if (error instanceof ProtocolError)
    return { status: statuses.INVALID_ARGUMENT.code, detail: error.message, ours: false }
  return { status: statuses.INTERNAL.code, detail: 'the producer failed; its log says how', ours: true }
}
