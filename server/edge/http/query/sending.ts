/** Sends what a request is answered with, piece by piece as its reader takes it. */
import { pipeline, Readable } from 'node:stream'
import { createGzip } from 'node:zlib'
import type { FastifyReply } from 'fastify'
import type { FairWork, Steps } from '../../../kernel/core/fair-work.ts'
import type { BegunAnswer } from '../../query/thread/query-thread.ts'
import { acceptsGzip } from '../metrics/route.ts'
import { nextPiece, piecesOf } from './pieces.ts'

/** Bytes that are compressed at once. */
const CHUNK_BYTES = 32 << 10
/** Shorter answers fit into a packet or two as they are. */
const LEAST_COMPRESSED = 2_048

export interface Sending {
  readonly tenant: string
  readonly work: Pick<FairWork, 'run'>
}

export function sendAnswer(reply: FastifyReply, { type, encoding, first, pieces }: BegunAnswer): void {
  void reply.header('cache-control', 'no-store').type(type)
  if (encoding !== undefined) {
    void reply.header('content-encoding', encoding).send(pieces)
    return
  }
  void reply.header('vary', 'Accept-Encoding')
  const isShort = (first?.length ?? 0) < LEAST_COMPRESSED
  if (isShort || !acceptsGzip(reply.request.headers['accept-encoding'])) void reply.send(pieces)
  else void reply.header('content-encoding', 'gzip').send(compressed(pieces))
}

/** An answer that is made here, in the time that all work shares. Rejects if its first piece fails. */
export async function answerInSteps(texts: Iterable<string>, { tenant, work }: Sending): Promise<BegunAnswer> {
  const { type, encoding, pieces } = piecesOf(texts)
  const first = await work.run({ tenant }, nextPiece(pieces))
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
  return { type, encoding, first, pieces: readable }
}

/** Compressing is work of threads. Level 1 takes a fifth of the time of the usual one, and numbers become hardly longer by it. */
function compressed(bytes: Readable): Readable {
  // Whoever reads it sees the error, or has gone.
  return pipeline(bytes, createGzip({ level: 1, chunkSize: CHUNK_BYTES }), () => {})
}
