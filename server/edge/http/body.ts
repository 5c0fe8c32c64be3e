/**
 * Bodies of requests: read within bounds of bytes and time, or discarded. Whoever is refused may still be sending, and a
 * connection that is closed under him would lose the answer on its way. So the answer goes out at once, with its length, and
 * what still comes is read and thrown away for a while before the connection is closed.
 */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ByteWriter } from '../../../protocol/bytes/writer.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import type { MemoryPlace } from '../memory-room.ts'

type Timers = Pick<Clock, 'setTimeout' | 'setInterval' | 'clear'>

/** Of a body that nobody wants, so much is read at most, and for so long; then its sender gets the end of the connection. */
const MAX_DISCARDED = 4 << 20
const LINGER_MS = 5_000
/** What is left of a short one is soon there, and the connection is kept for the next request. */
const MAX_KEPT = 64 << 10

/** A sender that brings less than this in such a time is too slow. */
const PACE_BYTES = 32 << 10
const PACE_MS = 2_000

/** Why there is no body: it is longer than allowed, its sender is too slow, or has gone, or others need the memory. */
export type MissingBody = 'long' | 'slow' | 'gone' | 'crowded'

/** Whether somebody waits for a 100 before sending the body. */
export function expectsContinue({ headers }: IncomingMessage): boolean {
  return headers.expect?.toLowerCase() === '100-continue'
}

/** The length that is announced; undefined for a body in chunks. */
export function announcedBytes({ headers }: IncomingMessage): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined
  return Number(headers['content-length'] ?? 0)
}

export interface BodyLimits {
  /** Bytes. */
  readonly most: number
  /** When it has to be there as a whole, monotonic milliseconds. */
  readonly lastMs: number
  readonly clock: Timers & Pick<Clock, 'monotonicMs'>
  /** What it has of the memory that all bodies share. */
  readonly place: MemoryPlace
}

/** The whole body, in memory of its own. Never rejects. */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Uint8Array | MissingBody> {
  if (request.destroyed) return Promise.resolve('gone')
  const { most, lastMs, clock, place } = limits
  return new Promise((resolve) => {
    // Pieces are copied as they come: each may be a single byte, and would keep an object and what else came with it.
    const body = new ByteWriter()
    let before = 0
    const pace = clock.setInterval(() => {
      if (body.length - before < PACE_BYTES) end('slow')
      before = body.length
    }, PACE_MS)
    const last = clock.setTimeout(() => end('slow'), Math.max(0, lastMs - clock.monotonicMs()))
    const take = (chunk: Uint8Array): void => {
      if (body.length + chunk.length > most) end('long')
      else {
        body.raw(chunk)
        place.took(chunk.length)
      }
    }
    // Without the room to grow, so that its memory can be given away.
    const whole = (): void => {
      place.complete()
      end(body.bytes().slice())
    }
    const gone = (): void => end('gone')
    const crowded = (): void => end('crowded')
    const end = (outcome: Uint8Array | MissingBody): void => {
      clock.clear(pace)
      clock.clear(last)
      place.refused.removeEventListener('abort', crowded)
      request.off('data', take).off('end', whole).off('close', gone).pause()
      resolve(outcome)
    }
    place.refused.addEventListener('abort', crowded)
    request.on('data', take).on('end', whole).on('close', gone)
  })
}

/** Sends an answer, although its request may not have come as a whole. */
export function answerNow(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  content: Uint8Array | string,
  clock: Timers,
): FastifyReply {
  const announced = announcedBytes(raw)
  if (raw.complete || announced === 0) return reply.send(content)
  const isKept = announced !== undefined && announced <= MAX_KEPT && !expectsContinue(raw)
  if (!isKept) void reply.header('connection', 'close')
  const bytes = Buffer.from(content)
  const answer = async function* () {
    yield bytes
    await discarded(raw, clock)
    // Nothing says that this connection ends, but its next request does not begin.
    if (isKept && !raw.complete) raw.socket.destroy()
  }
  return reply.header('content-length', bytes.length).send(Readable.from(answer(), { objectMode: false }))
}

/** Reads and throws away what comes of a body. Beyond the bound nothing is read, but its sender has time to see the answer. */
function discarded(request: IncomingMessage, clock: Timers): Promise<void> {
  return new Promise((resolve) => {
    let bytes = 0
    const drop = (chunk: Uint8Array): void => {
      bytes += chunk.length
      if (bytes > MAX_DISCARDED) request.off('data', drop).pause()
    }
    const timer = clock.setTimeout(() => end(), LINGER_MS)
    const end = (): void => {
      clock.clear(timer)
      request.off('data', drop).off('end', end).off('close', end)
      resolve()
    }
    request.on('data', drop).on('end', end).on('close', end).resume()
  })
}
