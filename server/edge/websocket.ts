/** Turns a WebSocket into a session, over `monitoring.xdr` or `monitoring.json`. Pings find dead peers [MON 13, 15]. */
import type { Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import { MAX_FRAME_BYTES, MAX_FRAME_BYTES_BEFORE_AUTH } from '../../protocol/bytes/framer.ts'
import { WebSocketLink } from '../../protocol/link/websocket.ts'
import type { Clock } from '../kernel/core/clock.ts'
import type { IncomingConnection } from '../kernel/sessions/incoming-connection.ts'

const PING_MS = 15_000
/**
 * A message contains commands: a frame of 1 MiB, or the same amount of JSON. Each piece of an incomplete one costs an object;
 * these allow 1 MiB in fragments of 8 KiB, or in chunks of 256 bytes.
 */
export const MESSAGE_LIMITS = { maxPayload: MAX_FRAME_BYTES + 4, maxFragments: 1 << 7, maxBufferedChunks: 1 << 12 }
/** Bytes of messages before AUTH [MON 1]. The chunk that ends a message may contain as much of the next one. */
const MAX_HELD_BEFORE_AUTH = 2 * MAX_FRAME_BYTES_BEFORE_AUTH
/** The memory that a chunk costs beside its bytes: a peer may send one byte at a time. */
const CHUNK_BYTES = 512
export const SUBPROTOCOLS = ['monitoring.xdr', 'monitoring.json']

/** The first supported subprotocol among those offered, or false. */
export function chooseSubprotocol(offered: ReadonlySet<string>): string | false {
  return SUBPROTOCOLS.find((name) => offered.has(name)) ?? false
}

export interface WebSocketOptions {
  readonly clock: Pick<Clock, 'setInterval' | 'clear'>
  readonly accept: (arrival: IncomingConnection) => void
}

export interface IncomingWebSocket {
  readonly socket: WebSocket
  /** The connection below the WebSocket. */
  readonly stream: Readable
  readonly peer: IncomingConnection['peer']
  readonly place?: IncomingConnection['place']
}

export function acceptWebSocket({ socket, stream, ...from }: IncomingWebSocket, options: WebSocketOptions): void {
  const { clock, accept } = options
  ping(socket, clock)
  const link = new WebSocketLink(socket)
  const admitted = limitIncomplete(socket, stream)
  const transport = from.peer.encrypted ? 'wss' : 'ws'
  accept({ link, transport, format: socket.protocol === 'monitoring.json' ? 'json' : 'xdr', ...from, admitted })
}

/**
 * Limits the memory that the peer may use without completing a message; returns a function that lifts the limit. The
 * library has one limit for the whole life of a connection, and passes a message on only when it is complete.
 */
function limitIncomplete(socket: WebSocket, stream: Readable): () => void {
  let held = 0
  const count = (chunk: Uint8Array): void => {
    held += chunk.length + CHUNK_BYTES
    if (held > MAX_HELD_BEFORE_AUTH) socket.terminate()
  }
  const complete = (): void => {
    held = 0
  }
  stream.on('data', count)
  socket.on('message', complete)
  return () => {
    stream.off('data', count)
    socket.off('message', complete)
  }
}

/** A peer that does not answer a ping before the next one is dead, unless earlier bytes are still waiting to be sent. */
function ping(socket: WebSocket, clock: WebSocketOptions['clock']): void {
  let answered = true
  socket.on('pong', () => {
    answered = true
  })
  const timer = clock.setInterval(() => {
    if (!answered && !socket.isPaused && socket.bufferedAmount === 0) {
      socket.terminate()
      return
    }
    answered = false
    socket.ping()
  }, PING_MS)
  socket.on('close', () => clock.clear(timer))
}
