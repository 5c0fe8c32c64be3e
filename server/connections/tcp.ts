/**
 * The Monitoring Protocol over TCP: `listen.tcp`, where TLS is a layer that may be asked for, and `listen.tls`, where it is
 * there from the first byte on. A connection counts, and its 10 s run, from the connect, not from the end of a handshake.
 */
import { createServer, type Socket } from 'node:net'
import { isLoopback } from '../../auth/network.ts'
import { TlsLink } from '../../protocol/link/layers/tls.ts'
import { StreamLink } from '../../protocol/link/stream.ts'
import type { Address } from '../core/address.ts'
import { bindTcp } from '../core/listen.ts'
import type { IncomingConnection, TlsUpgradable } from '../sessions/incoming-connection.ts'
import type { TlsFiles } from './tls/files.ts'
import { peerFacts } from './tls/peer.ts'

const KEEP_ALIVE_MS = 15_000

export interface Listening {
  readonly address: Address
  close(): Promise<void>
}

export interface TcpOptions {
  readonly address: Address
  /** Of the configuration. */
  readonly key: 'listen.tcp' | 'listen.tls'
  readonly tls: TlsFiles | undefined
  readonly accept: (arrival: IncomingConnection) => void
}

/** Rejects with ListenError. */
export async function listenTcp({ address, key, tls, accept }: TcpOptions): Promise<Listening> {
  // Half open: who sends commands and closes its side still gets its responses.
  const server = createServer({
    allowHalfOpen: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    noDelay: true,
  })
  const bound = await bindTcp(server, address, key)
  const loopback = isLoopback(bound.host)
  server.on('connection', (socket: Socket) => {
    const link = new StreamLink(socket)
    const peer = { address: socket.remoteAddress ?? '', loopback, encrypted: false }
    accept({ link, format: 'xdr', peer, tls: tls && securable(link, tls, key === 'listen.tls') })
  })
  return { address: bound, close: () => new Promise((resolve) => server.close(() => resolve())) }
}

/** `link` can be put under TLS, with the certificate in force at that moment. */
export function securable(link: StreamLink, tls: TlsFiles, isImmediate: boolean): TlsUpgradable {
  return {
    isImmediate,
    secure: (secured) => new TlsLink(link.release(), tls.handshake, (socket) => secured(peerFacts(socket, tls))),
  }
}
