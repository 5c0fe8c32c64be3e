/**
 * Makes a connection to an address that was checked, and to no other: nothing here asks for a name again, and no answer
 * can send it elsewhere. Certificates are verified against the name that the channel was defined with.
 */
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import type { AuthPeer } from '../../../auth/mechanism.ts'
import { isLoopback } from '../../../auth/network.ts'
import { MAX_FRAME_BYTES } from '../../../protocol/bytes/framer.ts'
import { StreamLink } from '../../../protocol/link/stream.ts'
import type { Clock } from '../../core/clock.ts'
import type { IncomingConnection } from '../../sessions/incoming-connection.ts'
import { peerFacts } from '../tls/peer.ts'
import { acceptWebSocket } from '../websocket.ts'
import type { Destination } from './destination.ts'

/** An idle dead peer is noticed in about 25 s [MON 15]. */
const KEEP_ALIVE_MS = 15_000
/** What a peer may answer before it is a WebSocket. */
const MAX_HEADER_BYTES = 16 << 10
const SUBPROTOCOLS = ['monitoring.xdr', 'monitoring.json']
/** What the other end shows here is a server's certificate, which is no login. */
const NO_LOGINS = { isTrusted: () => false }

export interface Caller {
  readonly clock: Pick<Clock, 'setInterval' | 'clear'>
  /** Authorities for certificates, a PEM file; undefined: those of Node. */
  readonly ca: string | undefined
}

/** A connection that nobody has spoken on. */
export interface Reached {
  readonly socket: Socket
  /** Gives it away as an arrival, at once. */
  arrive(accept: (arrival: IncomingConnection) => void): void
}

/** Rejects when `signal` is aborted, and leaves nothing open then. */
export async function reach(
  destination: Destination,
  address: string,
  caller: Caller,
  signal: AbortSignal,
): Promise<Reached> {
  const { scheme, port } = destination
  const isTls = scheme === 'tls' || scheme === 'wss'
  const ca = isTls && caller.ca !== undefined ? await readFile(caller.ca) : undefined
  signal.throwIfAborted()
  const tcp = { host: address, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS }
  // Half open: who sends commands and closes its side still gets its responses.
  const socket = isTls
    ? connectTls({ ...tcp, ...nameOf(destination), ca, minVersion: 'TLSv1.2' })
    : connect({ ...tcp, allowHalfOpen: true })
  const abort = (): void => void socket.destroy()
  signal.addEventListener('abort', abort, { once: true })
  socket.once('close', () => signal.removeEventListener('abort', abort))
  await opened(socket, isTls ? 'secureConnect' : 'connect', signal)
  const peer = peerOf(socket, address)
  if (scheme === 'tcp' || scheme === 'tls') {
    return { socket, arrive: (accept) => accept({ link: new StreamLink(socket), format: 'xdr', peer }) }
  }
  const webSocket = await upgraded(destination, socket, signal)
  return {
    socket,
    arrive: (accept) => acceptWebSocket({ socket: webSocket, stream: socket, peer }, { clock: caller.clock, accept }),
  }
}

/** An address is no server name; the certificate has to name it all the same, since it is the host. */
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
      reject(signal.aborted ? signal.reason : (error ?? new Error('it ended before it was open')))
    }
    const ended = (): void => failed()
    socket.once('error', failed)
    socket.once('close', ended)
    socket.once(event, () => {
      socket.off('error', failed)
      socket.off('close', ended)
      // Between here and a session nobody listens; `close` follows and is heard.
      socket.on('error', () => {})
      resolve()
    })
  })
}

/** The handshake of a WebSocket over a connection that is there. Redirects are answers like any other: not the right one. */
function upgraded({ url }: Destination, socket: Socket, signal: AbortSignal): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const webSocket = new WebSocket(url, SUBPROTOCOLS, {
      createConnection: () => socket,
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: MAX_FRAME_BYTES + 4,
      maxHeaderSize: MAX_HEADER_BYTES,
    })
    const failed = (error: Error): void => {
      socket.destroy()
      reject(signal.aborted ? signal.reason : error)
    }
    webSocket.once('error', failed)
    webSocket.once('open', () => {
      webSocket.off('error', failed)
      // A broken frame may stand right behind the answer, before anybody listens: the library closes by itself then.
      webSocket.on('error', () => {})
      resolve(webSocket)
    })
  })
}
