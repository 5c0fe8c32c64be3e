/** A WebSocket becomes a session: `monitoring.xdr` or `monitoring.json`, with pings against dead peers [MON 13, 15]. */
import type { Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import { MAX_FRAME_BYTES_BEFORE_AUTH } from '../../protocol/bytes/framer.ts'
import { WebSocketLink } from '../../protocol/link/websocket.ts'
import type { Clock } from '../core/clock.ts'
import type { IncomingConnection } from '../sessions/incoming-connection.ts'
import { JsonLink } from '../sessions/json-link.ts'

const PING_MS = 15_000
/** Of a message before AUTH [MON 1]; the chunk that ends one may hold as much of the next. */
const MAX_HELD_BEFORE_AUTH = 2 * MAX_FRAME_BYTES_BEFORE_AUTH
const SUBPROTOCOLS = ['monitoring.xdr', 'monitoring.json']

/** The subprotocol spoken of those offered, or false. */
export function chooseSubprotocol(offered: ReadonlySet<string>): string | false {
  return SUBPROTOCOLS.find((name) => offered.has(name)) ?? false
}

export interface WebSocketOptions {
  readonly clock: Pick<Clock, 'setInterval' | 'clear'>
  readonly accept: (arrival: IncomingConnection) => void
}

export interface ArrivedWebSocket {
  readonly socket: WebSocket
  /** What it came over. */
  readonly stream: Readable
  readonly peer: IncomingConnection['peer']
}

export function acceptWebSocket({ socket, stream, peer }: ArrivedWebSocket, options: WebSocketOptions): void {
  const { clock, accept } = options
  ping(socket, clock)
  const link = new WebSocketLink(socket)
  const admitted = holdLittle(socket, stream)
  if (socket.protocol === 'monitoring.json') accept({ link: new JsonLink(link), format: 'json', peer, admitted })
  else accept({ link, format: 'xdr', peer, admitted })
}

/** The library has one limit for the whole life of a connection, and gives a message only when it is whole. */
function holdLittle(socket: WebSocket, stream: Readable): () => void {
  let held = 0
  const count = (chunk: Uint8Array): void => {
    held += chunk.length
    if (held > MAX_HELD_BEFORE_AUTH) socket.terminate()
  }
  const whole = (): void => {
    held = 0
  }
  stream.on('data', count)
  socket.on('message', whole)
  return () => {
    stream.off('data', count)
    socket.off('message', whole)
  }
}

/** A peer that does not answer one ping before the next is dead, unless what was written before is still on its way. */
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
