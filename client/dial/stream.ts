/** TCP connections, and transports over TCP, TLS, and any other stream of Node. */
import { get } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { ConnectionError } from '../errors.ts'
import type { Layer, Transport, TransportListener, TransportSecurity } from '../transport.ts'
import { hostOf, isLoopbackHost } from './url.ts'

const DEFAULT_PORT = 7650
/** How long closing waits for a peer that takes no bytes. */
const CLOSE_MS = 5_000
/** A dead peer on an idle connection is noticed in about 25 s [MON 15]: Node sends 10 probes, a second apart. */
export const SOCKET_OPTIONS = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 15_000 } as const

/** Begins TLS over a stream. `secured` settles when the other end has proven its identity, and rejects otherwise. */
export type StartTls = (stream: Duplex) => { readonly socket: TLSSocket; readonly secured: Promise<unknown> }

/** `startTls` is used for the layer `tls`. */
export function dialTcp(url: URL, signal: AbortSignal, startTls?: StartTls): Promise<Transport> {
  const port = url.port === '' ? DEFAULT_PORT : Number(url.port)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostOf(url), port, ...SOCKET_OPTIONS })
    const abort = () => socket.destroy(signal.reason)
    signal.addEventListener('abort', abort)
    const refuse = (error: Error) => {
      signal.removeEventListener('abort', abort)
      reject(new ConnectionError('UNREACHABLE', `cannot connect to ${url.href}: ${reasonOf(error)}`, { cause: error }))
    }
    socket.once('error', refuse)
    socket.once('connect', () => {
      signal.removeEventListener('abort', abort)
      socket.off('error', refuse)
      endIfHttp(socket, url)
      resolve(streamTransport(socket, securityOf(socket), startTls))
    })
  })
}

/** A producer speaks first, and at once. */
const SILENT_MS = 500
const PROBE_MS = 2_000

/** An HTTP server waits for a request, and would be waited for until the login takes too long: asked for one, it shows what it is. */
function endIfHttp(socket: Socket, url: URL): void {
  const silent = setTimeout(() => {
    if (socket.bytesRead > 0) return
    const { remoteAddress: host, remotePort: port } = socket
    const probe = get({ host, port, path: '/healthz', agent: false, timeout: PROBE_MS }, (response) => {
      response.destroy()
      if (socket.bytesRead > 0) return
      const advice = `use ws://${url.host}/monitor, or the port of \`listen.tcp\``
      socket.destroy(new ConnectionError('PROTOCOL', `${url.host} speaks HTTP: ${advice}`))
    })
    probe.on('error', () => {}).on('timeout', () => probe.destroy())
    socket.once('close', () => probe.destroy())
  }, SILENT_MS)
  socket.once('close', () => clearTimeout(silent))
}

/** The error for a host name with several addresses has one error for each of them, and no message of its own. */
export function reasonOf(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(({ message }) => message).join('; ') : error.message
}

/** `startTls` is used for the layer `tls`. */
export function streamTransport(stream: Duplex, security: TransportSecurity, startTls?: StartTls): Transport {
  return new StreamTransport(stream, security, startTls)
}

export function securityOf(socket: Socket): TransportSecurity {
  return { loopback: isLoopbackHost(socket.remoteAddress ?? ''), encrypted: false }
}

/** For an established connection. Without a verified certificate it is unknown who can read. */
export function tlsSecurityOf(socket: TLSSocket): TransportSecurity {
  return { ...securityOf(socket), encrypted: socket.authorized, exporter: exporterOf(socket) }
}

/** The exporter of versions before TLS 1.3 is not safe to use (RFC 9266 section 4.2). */
export function exporterOf(socket: TLSSocket): Uint8Array | undefined {
  if (socket.getProtocol() !== 'TLSv1.3') return undefined
  return socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
}

class StreamTransport implements Transport {
  readonly #startTls: StartTls | undefined
  #stream: Duplex
  #security: TransportSecurity
  #listener: TransportListener | undefined
  #removeListeners: () => void = () => {}
  #broken: Error | undefined

  constructor(stream: Duplex, security: TransportSecurity, startTls: StartTls | undefined) {
    this.#stream = stream
    this.#security = security
    this.#startTls = startTls
    this.#expectErrors()
  }

  get encrypted(): boolean {
    return this.#security.encrypted
  }

  get loopback(): boolean {
    return this.#security.loopback
  }

  get exporter(): Uint8Array | undefined {
    return this.#security.exporter
  }

  open(listener: TransportListener): void {
    this.#listener = listener
    this.#listen()
  }

  send(bytes: Uint8Array): void {
    this.#stream.write(bytes)
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  close(): void {
    const stream = this.#stream
    stream.end(() => stream.destroy())
    stream.resume()
    if (isSocket(stream)) stream.setTimeout(CLOSE_MS, () => stream.destroy())
  }

  async wrap(layer: Layer): Promise<void> {
    if (layer !== 'tls' || !this.#startTls) {
      throw new ConnectionError('NO_LAYER', `the layer ${layer} cannot be added here`)
    }
    this.#removeListeners()
    const { socket, secured } = this.#startTls(this.#stream)
    this.#stream = socket
    await secured
    this.#security = tlsSecurityOf(socket)
    this.#expectErrors()
    this.#listen()
  }

  #expectErrors(): void {
    this.#stream.on('error', (error) => {
      this.#broken = error
    })
  }

  #listen(): void {
    const stream = this.#stream
    const close = () => this.#listener?.closed(this.#broken)
    // A producer that has ended its side reads nothing more either.
    const end = () => stream.destroy()
    const data = (bytes: Uint8Array) => this.#listener?.data(bytes)
    stream.on('close', close).on('end', end).on('data', data)
    this.#removeListeners = () => stream.off('close', close).off('end', end).off('data', data)
  }
}

function isSocket(stream: Duplex): stream is Socket {
  return 'setTimeout' in stream
}
