/**
 * The Monitoring Protocol over TCP: on `listen.tcp` a peer may ask for TLS as a layer, on `listen.tls` TLS begins with the
 * first byte. A connection counts, and its 10 s begin, when it is made and not when the handshake ends.
 */
import { createServer, type Socket } from 'node:net'
import type { AuthPeer } from '../../auth/mechanism.ts'
import { isLoopback } from '../../auth/network.ts'
import { TlsLink } from '../../protocol/link/layers/tls.ts'
import { StreamLink } from '../../protocol/link/stream.ts'
import type { Address } from '../kernel/core/address.ts'
import type { Clock } from '../kernel/core/clock.ts'
import { bindTcp } from '../kernel/core/listen.ts'
import { OpenConnections } from '../kernel/core/open-connections.ts'
import type { IncomingConnection, TlsUpgradable } from '../kernel/sessions/incoming-connection.ts'
import type { TakePassed } from './passed-on.ts'
import type { TlsFiles } from './tls/files.ts'
import { peerFacts } from './tls/peer.ts'

const KEEP_ALIVE_MS = 15_000

export interface OpenListener {
  readonly address: Address
  close(): Promise<void>
}

/** A listener for consumers. */
export interface ConsumerListener extends OpenListener {
  readonly take: TakePassed
}

export interface TcpOptions {
  readonly address: Address
  /** The key of the configuration. */
  readonly key: 'listen.tcp' | 'listen.tls'
  readonly tls: TlsFiles | undefined
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly accept: (arrival: IncomingConnection) => void
}

/** Rejects with ListenError. */
export async function listenTcp({ address, key, tls, clock, accept }: TcpOptions): Promise<ConsumerListener> {
  // Half open, so that a peer that sends commands and closes its side still gets its responses.
  const server = createServer({
    allowHalfOpen: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
    noDelay: true,
  })
  const bound = await bindTcp(server, address, key)
  const open = new OpenConnections(clock)
  const take = (socket: Socket, local: Pick<AuthPeer, 'loopback' | 'nodeLoopback'>): void => {
    open.add(socket)
    const link = new StreamLink(socket)
    const peer = { address: socket.remoteAddress ?? '', ...local, encrypted: false }
    const transport = key === 'listen.tls' ? 'tls' : 'tcp'
    accept({ link, transport, format: 'xdr', peer, tls: tls && tlsUpgradable(link, tls, transport === 'tls') })
  }
  const loopback = isLoopback(bound.host)
  server.on('connection', (socket: Socket) => take(socket, { loopback }))
  return {
    address: bound,
    take: (socket, isLocalThere) => take(socket, { loopback: false, nodeLoopback: loopback && isLocalThere }),
    close: () => open.end(new Promise((resolve) => server.close(() => resolve()))),
  }
}

/** Puts `link` under TLS, with the certificate that is in force at that moment. */
export function tlsUpgradable(link: StreamLink, tls: TlsFiles, isImmediate: boolean): TlsUpgradable {
  return {
    isImmediate,
    secure: (established) =>
      new TlsLink(link.release(), tls.handshake, (socket) => established(peerFacts(socket, tls))),
  }
}
