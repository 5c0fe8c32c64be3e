/** An answer in pieces, each made when its reader takes it. */
import type { Field } from '../../../../protocol/monitor/value.ts'
import type { Steps } from '../../../kernel/core/fair-work.ts'

/** Bytes, or a list of records or texts. */
export type Piece = Uint8Array | readonly (readonly Field[])[] | readonly string[]

/** Characters that are written at once. */
const PIECE_LENGTH = 32 << 10

/** An answer that is not JSON, in the encoding that its reader has asked for. */
export interface EncodedAnswer {
  readonly type: string
  readonly encoding: string
  readonly pieces: Iterable<Uint8Array>
}

/** Texts of JSON, or something else. */
export type SendableAnswer = Iterable<string> | EncodedAnswer

export interface PiecedAnswer<P extends Piece = Piece> {
  readonly type: string
  /** Undefined if the pieces are as they are. */
  readonly encoding: string | undefined
  readonly pieces: Iterator<P, void, void>
}

export function piecesOf(answer: SendableAnswer): PiecedAnswer<Uint8Array> {
  if (!('pieces' in answer)) return { type: 'application/json', encoding: undefined, pieces: encoded(answer) }
  const { type, encoding, pieces } = answer
  return { type, encoding, pieces: pieces[Symbol.iterator]() }
}

function* encoded(texts: Iterable<string>): Generator<Uint8Array, void, void> {
  const encoder = new TextEncoder()
  let piece = ''
  for (const text of texts) {
    piece += text
    if (piece.length < PIECE_LENGTH) continue
    yield encoder.encode(piece)
    piece = ''
  }
  if (piece !== '') yield encoder.encode(piece)
}

/** Undefined if there is none. */
// biome-ignore lint/correctness/useYield: to make one piece is one step
export function* nextPiece<P>(pieces: Iterator<P, void, void>): Steps<P | undefined> {
  const { done, value } = pieces.next()
  return done === true ? undefined : (value as P)
}
