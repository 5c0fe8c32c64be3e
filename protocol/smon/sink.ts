/** What a decoder tells, and how much a stream may make it keep. The door to both is decode.ts. */
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
  /** Of the whole value of an `s`, whatever it was put together from. */
  readonly maxStringBytes: number
  /** Of all names and strings of the stream together. */
  readonly maxBytes: number
  /** Of the stream's index list, and so also of a token's prefix. */
  readonly maxIndexDepth: number
}
