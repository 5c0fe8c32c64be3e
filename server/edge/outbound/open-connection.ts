/**
 * Connects to an address that was checked, and to no other: names are not resolved again here, and redirects are not
 * followed. Certificates are verified against the name with which the channel was defined.
 */
import { connect, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import type { AuthPeer } from '../../../auth/mechanism.ts'
import { isLoopback } from '../../../auth/network.ts'
import { StreamLink } from '../../../protocol/link/stream.ts'
import type { Clock } from '../../kernel/core/clock.ts'
import { WatchedFile } from '../../kernel/core/watched-file.ts'
import type { IncomingConnection } from '../../kernel/sessions/incoming-connection.ts'
import { peerFacts } from '../tls/peer.ts'
import { acceptWebSocket, MESSAGE_LIMITS, SUBPROTOCOLS } from '../websocket.ts'
import type { Destination } from './destination.ts'

/** An idle dead peer is noticed in about 25 s [MON 15]. */
const KEEP_ALIVE_MS = 15_000
/** Header bytes in the answer to a WebSocket handshake. */
const MAX_HEADER_BYTES = 16 << 10
/** The peer shows a server certificate here, which is not a login. */
const NO_LOGINS = { isTrusted: () => false }

export interface OpenConnectionOptions {
  readonly clock: Pick<Clock, 'setInterval' | 'clear'>
  /** Path of a PEM file with certificate authorities; undefined for Node's own list. */
  readonly ca: string | undefined
}

/** A connection on which no byte of the protocol was sent yet. */
export interface OpenedConnection {
  readonly socket: Socket
  /** Hands the connection over to `accept`, synchronously. */
  handOver(accept: (connection: IncomingConnection) => void): void
}

/** Rejects when `signal` is aborted, and then leaves nothing open. */
export async function openConnection(
  destination: Destination,
  address: string,
  options: OpenConnectionOptions,
  signal: AbortSignal,
): Promise<OpenedConnection> {
  const { scheme, port } = destination
  const isTls = scheme === 'tls' || scheme === 'wss'
  const ca = isTls && options.ca !== undefined ? new WatchedFile(options.ca, 'dial.ca').text() : undefined
  signal.throwIfAborted()
  const tcp = { host: address, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }
  // `rejectUnauthorized` is said, because an environment variable could switch it off: it may be the only proof.
  // Half open, so that a peer that sends commands and closes its side still gets its responses.
  const socket = isTls
    ? connectTls({ ...tcp, ...nameOf(destination), ca, rejectUnauthorized: true, minVersion: 'TLSv1.2' })
    : connect({ ...tcp, allowHalfOpen: true })
  const abort = (): void => void socket.destroy()
  signal.addEventListener('abort', abort, { once: true })
  socket.once('close', () => signal.removeEventListener('abort', abort))
  await opened(socket, isTls ? 'secureConnect' : 'connect', signal)
  const peer = peerOf(socket, address)
  if (scheme === 'tcp' || scheme === 'tls') {
    return {
      socket,
      handOver: (accept) => accept({ link: new StreamLink(socket), transport: scheme, format: 'xdr', peer }),
    }
  }
  const webSocket = await upgraded(destination, socket, signal)
  return {
    socket,
    handOver: (accept) =>
      acceptWebSocket({ socket: webSocket, stream: socket, peer }, { clock: options.clock, accept }),
  }
}

/** An address is not sent as the server name, but the certificate must still name it, because it is the host. */
function nameOf({ host, isAddress }: Destination): { readonly servername?: string } {
  return isAddress ? {} : { servername: host }
}

function peerOf(socket: Socket, address: string): AuthPeer {
  const peer = { address, loopback: isLoopback(address), encrypted: false }
  return socket instanceof TLSSocket ? { ...peer, ...peerFacts(socket, NO_LOGINS) } : peer
}

function opened(socket: Socket, event: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (error?: Error): void => {
      socket.destroy()
      reject(signal.aborted ? signal.reason : (error ?? new Error('the peer closed the connection before it was open')))
    }
    const ended = (): void => failed()
    socket.once('error', failed)
    socket.once('close', ended)
    socket.once(event, () => {
      socket.off('error', failed)
      socket.off('close', ended)
      // No session listens for errors yet; the `close` that follows is handled.
      socket.on('error', () => {})
      resolve()
    })
  })
}

/** Performs a WebSocket handshake over an open connection. A redirect fails like any other unexpected answer. */
function upgraded({ url }: Destination, socket: Socket, signal: AbortSignal): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const webSocket = new WebSocket(url, SUBPROTOCOLS, {
      createConnection: () => socket,
      followRedirects: false,
      perMessageDeflate: false,
      ...MESSAGE_LIMITS,
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    const failed = (error: Error): void => {
      socket.destroy()
      reject(signal.aborted ? signal.reason : error)
    }
    webSocket.once('error', failed)
    webSocket.once('open', () => {
      webSocket.off('error', failed)
      // A broken frame may follow the answer before a session listens; the library then closes the connection by itself.
      webSocket.on('error', () => {})
      resolve(webSocket)
    })
  })
}
