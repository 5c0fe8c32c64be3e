/** TCP, TLS, and any other stream of Node, as a transport. */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { ConnectionError } from '../errors.ts'
import type { Layer, Transport, TransportListener } from '../transport.ts'
import { isLoopback } from './loopback.ts'

/** A peer that takes no byte for so long is not waited for when closing. */
const CLOSE_MS = 5_000

/** What the stream itself cannot say. */
export type StreamFacts = Pick<Transport, 'encrypted' | 'loopback' | 'exporter'>

/** Begins TLS over a stream at once; `secured` settles when the other end is who it should be, else rejects. */
export type StartTls = (stream: Duplex) => { readonly socket: TLSSocket; readonly secured: Promise<unknown> }

/** `startTls`: for the layer `tls`. */
export function streamTransport(stream: Duplex, facts: StreamFacts, startTls?: StartTls): Transport {
  return new StreamTransport(stream, facts, startTls)
}

export function socketFacts(socket: Socket): StreamFacts {
  return { loopback: isLoopback(socket.remoteAddress ?? ''), encrypted: false }
}

/** For a connection that is up. Without a verified certificate nobody knows who reads. */
export function tlsFacts(socket: TLSSocket): StreamFacts {
  return {
    loopback: isLoopback(socket.remoteAddress ?? ''),
    encrypted: socket.authorized,
    exporter: exporterOf(socket),
  }
}

/** Older versions have none that is safe to use (RFC 9266 section 4.2). */
export function exporterOf(socket: TLSSocket): Uint8Array | undefined {
  if (socket.getProtocol() !== 'TLSv1.3') return undefined
  return socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
}

class StreamTransport implements Transport {
  readonly #startTls: StartTls | undefined
  #stream: Duplex
  #facts: StreamFacts
  #listener: TransportListener | undefined
  #leave: () => void = () => {}
  #broken: Error | undefined

  constructor(stream: Duplex, facts: StreamFacts, startTls: StartTls | undefined) {
    this.#stream = stream
    this.#facts = facts
    this.#startTls = startTls
    this.#expectErrors()
  }

  get encrypted(): boolean {
    return this.#facts.encrypted
  }

  get loopback(): boolean {
    return this.#facts.loopback
  }

  get exporter(): Uint8Array | undefined {
    return this.#facts.exporter
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
      throw new ConnectionError('NO_LAYER', `the layer ${layer} cannot be put on here`)
    }
    this.#leave()
    const { socket, secured } = this.#startTls(this.#stream)
    this.#stream = socket
    await secured
    this.#facts = tlsFacts(socket)
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
    // A producer that has said its last word takes none of ours.
    const end = () => stream.destroy()
    const data = (bytes: Uint8Array) => this.#listener?.data(bytes)
    stream.on('close', close).on('end', end).on('data', data)
    this.#leave = () => stream.off('close', close).off('end', end).off('data', data)
  }
}

function isSocket(stream: Duplex): stream is Socket {
  return 'setTimeout' in stream
}
