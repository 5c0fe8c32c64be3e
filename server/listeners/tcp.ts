/** The Monitoring Protocol over TCP. Bound last: whoever can connect finds everything else open. */
import { createServer, type Server, type Socket } from 'node:net'
import { isLoopback } from '../../auth/throttle.ts'
import { StreamLink } from '../../protocol/link/stream.ts'
import type { Address } from '../config.ts'
import type { Arrival } from '../sessions/arrival.ts'
import { listenError } from './errors.ts'

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
  const bound = await bind(server, address)
  const loopback = isLoopback(bound.host)
  server.on('connection', (socket: Socket) => {
    const peer = { address: socket.remoteAddress ?? '', loopback, encrypted: false }
    accept({ link: new StreamLink(socket), format: 'xdr', peer })
  })
  return { address: bound, close: () => new Promise((resolve) => server.close(() => resolve())) }
}

function bind(server: Server, address: Address): Promise<Address> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(listenError(error, address, 'listen.tcp')))
    server.listen({ host: address.host, port: address.port, backlog: 4096 }, () => {
      server.removeAllListeners('error')
      // After binding, errors concern single connections that could not be accepted: out of file descriptors.
      server.on('error', () => {})
      const at = server.address()
      resolve(at !== null && typeof at === 'object' ? { host: at.address, port: at.port } : address)
    })
  })
}
