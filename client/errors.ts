/**
 * The errors that leave client/. StatusError: the producer refused one command, the connection goes on.
 * ConnectionError: there is no connection (any more). Neither ever contains a secret.
 */
import type { CommandName } from '../protocol/monitor/commands.ts'
import { NoticeCode } from '../protocol/monitor/constants.ts'
import { type StatusName, statusName } from '../protocol/monitor/status.ts'

export class StatusError extends Error {
  override readonly name = 'StatusError'
  readonly command: CommandName
  /** The name, or the number of a status that this version does not know. */
  readonly status: StatusName | number
  /** The producer's own sentence; may be empty. */
  readonly detail: string

  constructor(command: CommandName, code: number, detail: string) {
    const status = statusName(code) ?? code
    super(`${command} was refused${detail ? `: ${detail}` : ''} (${status})`)
    this.command = command
    this.status = status
    this.detail = detail
  }
}

/** What a producer may refuse now and grant later. */
const PASSING: ReadonlySet<StatusName | number> = new Set([
  'BUSY',
  'INTERNAL',
  'NO_SUCH_METRIC',
  'QUOTA_EXCEEDED',
  'STORAGE_FULL',
])

export type ConnectionErrorCode =
  /** Not a URL that can be dialled. */
  | 'BAD_URL'
  /** What was given as `tls` cannot be used. */
  | 'BAD_TLS'
  /** No connection came about; `cause` has the system's error. */
  | 'UNREACHABLE'
  /** The other end's certificate is not good for it, or signed by nobody who is trusted. */
  | 'UNTRUSTED'
  /** Connecting and logging in, or the response to a command, took too long. What the command did is not known. */
  | 'TIMEOUT'
  /** The producer does not offer a layer that was asked for. */
  | 'NO_LAYER'
  /** The function that gives tokens gave none; `cause` is what it threw. */
  | 'NO_TOKEN'
  /** The producer offers no method that may be used here. */
  | 'NO_METHOD'
  /** The producer does not admit this identity with this secret. */
  | 'LOGIN_FAILED'
  /** The producer did not prove that it knows the secret. */
  | 'SERVER_NOT_PROVEN'
  /** The producer sent what the protocol does not know. */
  | 'PROTOCOL'
  /** The producer did not answer for 30 seconds. */
  | 'SILENT'
  /** The connection ended, by either end. What a command did that waited for its response is not known. */
  | 'CLOSED'
  /** Another connection took this channel. */
  | 'SUPERSEDED'
  /** The identity or a right of it was withdrawn. */
  | 'WITHDRAWN'
  /** The channel was deleted or has expired. */
  | 'CHANNEL_GONE'

/** After these the same attempt would end the same way, or take something from somebody [MON 3 NOTICE]. */
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
])

/** What a connection's end means where the producer has said why [MON 3 NOTICE]. */
const MEANINGS: ReadonlyMap<number, ConnectionErrorCode> = new Map([
  [NoticeCode.SUPERSEDED, 'SUPERSEDED'],
  [NoticeCode.WITHDRAWN, 'WITHDRAWN'],
  [NoticeCode.CHANNEL_DELETED, 'CHANNEL_GONE'],
  [NoticeCode.PROTOCOL_ERROR, 'PROTOCOL'],
])

/** `notice`: the code of the last one; 0 for none. */
export function meaningOf(notice: number): ConnectionErrorCode {
  return MEANINGS.get(notice) ?? 'CLOSED'
}

/** Whether connecting again may help. */
export function isPassing(error: unknown): boolean {
  if (error instanceof ConnectionError) return !FINAL.has(error.code) || isPassing(error.cause)
  return error instanceof StatusError && PASSING.has(error.status)
}

export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'
  readonly code: ConnectionErrorCode

  constructor(code: ConnectionErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}
