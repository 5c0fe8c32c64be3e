/** Sends what a query is answered with: in pieces, each made when its reader takes it, in the time that all work shares. */
import { pipeline, Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'
import type { FairWork, Steps } from '../../../kernel/core/fair-work.ts'
import { acceptsGzip } from '../metrics/route.ts'

/** Characters that are written at once. */
const PIECE_LENGTH = 32 << 10
/** Shorter answers fit into a packet or two as they are. */
const LEAST_COMPRESSED = 2_048

/** An answer that is not JSON, in the encoding that its reader has asked for. */
export interface EncodedAnswer {
  readonly type: string
  readonly encoding: string
  readonly pieces: Iterable<Uint8Array>
}

/** Texts of JSON, or something else. */
export type SendableAnswer = Iterable<string> | EncodedAnswer

export interface Sending {
  readonly tenant: string
  readonly work: Pick<FairWork, 'run'>
}

/** Resolves when the answer is on its way; rejects, and sends nothing, if its first piece fails. */
export async function sendAnswer(reply: FastifyReply, answer: SendableAnswer, sending: Sending): Promise<void> {
  void reply.header('cache-control', 'no-store')
  if ('pieces' in answer) {
    const pieces = answer.pieces[Symbol.iterator]()
    const first = await sending.work.run({ tenant: sending.tenant }, nextPiece(pieces))
    void reply
      .type(answer.type)
      .header('content-encoding', answer.encoding)
      .send(written(first, pieces, sending))
    return
  }
  const pieces = piecesOf(answer)
  const first = (await sending.work.run({ tenant: sending.tenant }, nextPiece(pieces))) ?? ''
  void reply.type('application/json').header('vary', 'Accept-Encoding')
  const text = written(first, pieces, sending)
  const isShort = first.length < LEAST_COMPRESSED
  if (isShort || !acceptsGzip(reply.request.headers['accept-encoding'])) void reply.send(text)
  else void reply.header('content-encoding', 'gzip').send(compressed(text))
}

function* piecesOf(texts: Iterable<string>): Generator<string, void, void> {
  let piece = ''
  for (const text of texts) {
    piece += text
    if (piece.length < PIECE_LENGTH) continue
    yield piece
    piece = ''
  }
  if (piece !== '') yield piece
}

/** Undefined if there is none. */
// biome-ignore lint/correctness/useYield: to make one piece is one step
function* nextPiece<Piece>(pieces: Iterator<Piece>): Steps<Piece | undefined> {
  const { done, value } = pieces.next()
  return done === true ? undefined : value
}

function written(
  first: string | Uint8Array | undefined,
  pieces: Iterator<string | Uint8Array>,
  { tenant, work }: Sending,
): Readable {
  // biome-ignore lint/correctness/useYield: to write one piece is one step
  function* step(readable: Readable): Steps<void> {
    const { done, value } = pieces.next()
    readable.push(done === true ? null : value)
  }
  const readable = new Readable({
    highWaterMark: 1,
    read() {
      // What is pushed later goes out at once, and so as a part of the step.
      queueMicrotask(() => void work.run({ tenant }, step(this)))
    },
  })
  readable.push(first ?? null)
  return readable
}

/** Compressing is work of threads. Level 1 takes a fifth of the time of the usual one, and numbers become hardly longer by it. */
function compressed(text: Readable): Readable {
  // Whoever reads it sees the error, or has gone.
  return pipeline(text, createGzip({ level: 1, chunkSize: PIECE_LENGTH }), () => {})
}
