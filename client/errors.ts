/**
 * The errors of the client library. StatusError: the producer refused one command, and the connection continues.
 * ConnectionError: there is no connection, or none any more. PublishError: values were not taken. ExpressionError: an expression cannot be evaluated. None ever contains a secret.
 */
import type { CommandName } from '../protocol/monitor/commands.ts'
import { NoticeCode } from '../protocol/monitor/constants.ts'
import { type StatusName, statusName } from '../protocol/monitor/status.ts'

export class StatusError extends Error {
  override readonly name = 'StatusError'
  readonly command: CommandName
  /** The name of the status, or its number if this version does not know it. */
  readonly status: StatusName | number
  /** The producer's own words; may be empty. */
  readonly detail: string

  constructor(command: CommandName, code: number, detail: string) {
    const status = statusName(code) ?? code
    super(`${command} was refused${detail ? `: ${detail}` : ''} (${status})`)
    this.command = command
    this.status = status
    this.detail = detail
  }
}

/** An expression that the producer cannot evaluate. */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError'
  /** As in Prometheus' HTTP API: `bad_data`, `execution`, `timeout`, `unavailable`. */
  readonly type: string
  /** Where in the expression it is, in characters; undefined if that cannot be said. */
  readonly position: { readonly from: number; readonly to: number } | undefined

  constructor(type: string, message: string, position?: ExpressionError['position']) {
    super(message)
    this.type = type
    this.position = position
  }
}

/** Refusals that a producer may lift later. */
const TRANSIENT: ReadonlySet<StatusName | number> = new Set([
  'BUSY',
  'INTERNAL',
  'NO_SUCH_METRIC',
  'QUOTA_EXCEEDED',
  'STORAGE_FULL',
])

export type ConnectionErrorCode =
  /** The URL cannot be dialled. */
  | 'BAD_URL'
  /** The option `tls` cannot be used. */
  | 'BAD_TLS'
  /** The connection could not be made; `cause` has the system's error. */
  | 'UNREACHABLE'
  /** The other end's certificate is not valid for it, or not signed by a trusted authority. */
  | 'UNTRUSTED'
  /** Connecting and logging in, or the response to a command, took too long. The effect of the command is unknown. */
  | 'TIMEOUT'
  /** The producer does not offer a requested layer. */
  | 'NO_LAYER'
  /** The function that provides tokens failed; `cause` is what it threw. */
  | 'NO_TOKEN'
  /** The producer offers no method that is safe to use here. */
  | 'NO_METHOD'
  /** The producer did not accept the credentials. */
  | 'LOGIN_FAILED'
  /** The producer did not prove that it knows the secret. */
  | 'SERVER_NOT_PROVEN'
  /** The producer violated the protocol. */
  | 'PROTOCOL'
  /** The producer was silent, and did not answer when it was asked. */
  | 'SILENT'
  /** Either end closed the connection. The effect of commands that waited for their response is unknown. */
  | 'CLOSED'
  /** Another connection took over the channel. */
  | 'SUPERSEDED'
  /** The identity, or one of its rights, was withdrawn. */
  | 'WITHDRAWN'
  /** The channel was deleted, or has expired. */
  | 'CHANNEL_GONE'
  /** One of several addresses is that of another producer. */
  | 'OTHER_SERVER'

/** Another attempt would fail in the same way, or take the channel from another connection [MON 3 NOTICE]. */
const FINAL: ReadonlySet<ConnectionErrorCode> = new Set([
  'BAD_URL',
  'NO_LAYER',
  'NO_METHOD',
  'LOGIN_FAILED',
  'SERVER_NOT_PROVEN',
  'PROTOCOL',
  'SUPERSEDED',
  'WITHDRAWN',
  'CHANNEL_GONE',
  'OTHER_SERVER',
])

/** The reasons that a producer gives for the end of a connection [MON 3 NOTICE]. */
const CODES: ReadonlyMap<number, ConnectionErrorCode> = new Map([
  [NoticeCode.SUPERSEDED, 'SUPERSEDED'],
  [NoticeCode.WITHDRAWN, 'WITHDRAWN'],
  [NoticeCode.CHANNEL_DELETED, 'CHANNEL_GONE'],
  [NoticeCode.PROTOCOL_ERROR, 'PROTOCOL'],
])

/** `notice` is the code of the last notice; 0 if there was none. */
export function codeOfNotice(notice: number): ConnectionErrorCode {
  return CODES.get(notice) ?? 'CLOSED'
}

/** Whether another attempt to connect may succeed. */
export function isTransient(error: unknown): boolean {
  if (error instanceof ConnectionError) return !FINAL.has(error.code) || isTransient(error.cause)
  return error instanceof StatusError && TRANSIENT.has(error.status)
}

/** Failures that a mistake causes, rather than a producer that is not up yet. A consumer that was connected before outlasts them. */
const MISTAKES: ReadonlySet<ConnectionErrorCode> = new Set(['BAD_TLS', 'UNTRUSTED', 'NO_TOKEN'])

/** Whether the producer may just not be up yet. */
export function isNotUp(error: unknown): error is Error {
  return isTransient(error) && !(error instanceof ConnectionError && MISTAKES.has(error.code))
}

/** What a server answered to a request that publishes. */
export interface PublishRefusal {
  /** The status of HTTP; 200 if some of the values were taken. */
  readonly status: number
  /** The values that were not taken. */
  readonly rejected: number
  /** The server's own words; may be empty. */
  readonly detail: string
  /** After so many seconds the same request may succeed. */
  readonly retryAfterS?: number | undefined
}

/** Values that were published were not all taken. */
export class PublishError extends Error implements PublishRefusal {
  override readonly name = 'PublishError'
  readonly status: number
  readonly rejected: number
  readonly detail: string
  readonly retryAfterS: number | undefined

  constructor({ status, rejected, detail, retryAfterS }: PublishRefusal) {
    super(
      `${rejected} of the values ${rejected === 1 ? 'was' : 'were'} not taken${detail ? `: ${detail}` : ''} (HTTP ${status})`,
    )
    this.status = status
    this.rejected = rejected
    this.detail = detail
    this.retryAfterS = retryAfterS
  }
}

export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly code: ConnectionErrorCode

  constructor(code: ConnectionErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
