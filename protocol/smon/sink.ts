/** The calls of a decoder, and how much a stream may make it keep. decode.ts exports both. */
import type { ProtocolError } from '../errors.ts'
import type { SmonToken } from './token.ts'

/** Called while bytes are decoded; must not call the decoder. */
export interface SmonSink {
  defined(token: SmonToken): void
  /**
   * `index` is valid only during the call; NO_INDEX where there is none. `value` is a number below 2^53, a bigint
   * from there to 2^64-1.
   */
  number(token: SmonToken, index: readonly number[], value: number | bigint): void
  /** `index` and the view `value` are valid only during the call. */
  text(token: SmonToken, index: readonly number[], value: Uint8Array): void
  /** The stream began anew (17 FF, FE): all tokens so far are dead. */
  reset(): void
  /** Nothing more is understood until the next `reset`. The offset counts from the start of the stream. */
  invalid(error: ProtocolError): void
}

/** A stream that wants more than this turns invalid. */
export interface SmonLimits {
  readonly maxTokens: number
  /** Without the type byte. */
  readonly maxNameBytes: number
  /** Bytes of the whole value of an `s`, however many parts it has. */
  readonly maxStringBytes: number
  /** Bytes of all names and strings of the stream together. */
  readonly maxBytes: number
  /** Length of the stream's index list, and so of a token's prefix. */
  readonly maxIndexDepth: number
}
