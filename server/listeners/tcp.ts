/** The Monitoring Protocol over TCP. Bound last: whoever can connect finds everything else open. */
import { createServer, type Socket } from 'node:net'
import { isLoopback } from '../../auth/throttle.ts'
import { StreamLink } from '../../protocol/link/stream.ts'
import type { Address } from '../config.ts'
import type { Arrival } from '../sessions/arrival.ts'
import { bindTcp } from './bind.ts'

const KEEP_ALIVE_MS = 15_000

export interface Listening {
  readonly address: Address
  close(): Promise<void>
}

/** Rejects with ListenError. */
export async function listenTcp(address: Address, accept: (arrival: Arrival) => void): Promise<Listening> {
  // Half open: who sends commands and closes its side still gets its responses.
  const server = createServer({
    allowHalfOpen: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    noDelay: true,
  })
  const bound = await bindTcp(server, address, 'listen.tcp')
  const loopback = isLoopback(bound.host)
  server.on('connection', (socket: Socket) => {
    const peer = { address: socket.remoteAddress ?? '', loopback, encrypted: false }
    accept({ link: new StreamLink(socket), format: 'xdr', peer })
  })
  return { address: bound, close: () => new Promise((resolve) => server.close(() => resolve())) }
}
