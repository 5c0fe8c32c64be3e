/** A WebSocket becomes a session: `monitoring.xdr` or `monitoring.json`, with pings against dead peers [MON 13, 15]. */
import type { WebSocket } from 'ws'
import { WebSocketLink } from '../../protocol/link/websocket.ts'
import type { Clock } from '../clock.ts'
import type { Arrival } from '../sessions/arrival.ts'
import { JsonLink } from '../sessions/json-link.ts'

const PING_MS = 15_000
const SUBPROTOCOLS = ['monitoring.xdr', 'monitoring.json']

/** The subprotocol spoken of those offered, or false. */
export function chooseSubprotocol(offered: ReadonlySet<string>): string | false {
  return SUBPROTOCOLS.find((name) => offered.has(name)) ?? false
}

export interface WebSocketOptions {
  readonly clock: Pick<Clock, 'setInterval' | 'clear'>
  readonly accept: (arrival: Arrival) => void
}

export function acceptWebSocket(socket: WebSocket, peer: Arrival['peer'], { clock, accept }: WebSocketOptions): void {
  ping(socket, clock)
  const link = new WebSocketLink(socket)
  if (socket.protocol === 'monitoring.json') accept({ link: new JsonLink(link), format: 'json', peer })
  else accept({ link, format: 'xdr', peer })
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
