/**
 * The error that decoders throw when bytes do not follow their format; a decoder of this folder throws nothing else.
 * `code` is stable and documented in docs/statuses.md; `offset` is the position in the given bytes where it went wrong.
 */
export type ProtocolErrorCode =
  | 'FRAME_TOO_LONG'
  | 'FRAME_TOO_SHORT'
  | 'FRAME_UNALIGNED'
  | 'TRUNCATED'
  | 'TRAILING_BYTES'
  | 'BAD_PADDING'
  | 'BAD_UTF8'
  | 'BAD_NAME'
  | 'BAD_BOOLEAN'
  | 'BAD_TYPE'
  | 'BAD_COUNT'
  | 'BAD_NUMBER'
  | 'BAD_COMPRESSION'
  | 'BAD_JSON'
  | 'BAD_PROTOBUF'
  | 'DUPLICATE_NAME'
  | 'TOO_DEEP'
  | 'TOO_LONG'
  | 'UNKNOWN_MESSAGE'

export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code: ProtocolErrorCode
  readonly offset: number

  constructor(code: ProtocolErrorCode, message: string, offset = 0) {
    super(message)
    this.code = code
    this.offset = offset
  }
}
