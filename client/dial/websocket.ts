/**
 * The transport over a WebSocket [MON 13], which may be that of a browser, of Node, or of `ws`. Only that of `ws` can stop
 * reading. For the others, data that arrives during a pause is kept here, and too much of it ends the connection.
 */
import { onAbort } from '../../protocol/kept/pause.ts'
import { ConnectionError } from '../errors.ts'
import type { Transport, TransportListener } from '../transport.ts'
import { isLoopbackHost } from './url.ts'

const SUBPROTOCOL = 'monitoring.xdr'
const MAX_KEPT_BYTES = 64 << 20

/** The part of the WebSocket standard that is used, and what node-websocket.ts adds to it. */
export interface WebSocketLike {
  binaryType: string
  readonly protocol: string
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  send(data: Uint8Array): void
  close(code?: number): void
  pause?(): void
  resume?(): void
  /** Whether the other end's certificate was verified. A browser, which has no such property, refuses all others itself. */
  readonly isVerified?: boolean
  readonly exporter?: Uint8Array | undefined
}
interface ErrorEvent {
  readonly message?: string
  readonly error?: Error
}
interface CloseEvent {
  readonly code: number
  readonly reason: string
}
export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike

/** `explain` turns an error of the system into one that says what to do. */
export function dialWebSocket(
  url: URL,
  WebSocket: WebSocketConstructor,
  signal: AbortSignal,
  explain?: (error: Error) => ConnectionError,
): Promise<Transport> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url.href, [SUBPROTOCOL])
    const refuse = (why: string, cause?: Error) => {
      release()
      const unreachable = () => new ConnectionError('UNREACHABLE', `cannot connect to ${url.href}: ${why}`, { cause })
      reject(cause && explain ? explain(cause) : unreachable())
    }
    const abort = () => {
      refuse('the attempt was abandoned')
      socket.close()
    }
    const release = onAbort(signal, abort)
    socket.binaryType = 'arraybuffer'
    // Only `ws` says what went wrong; a browser does not.
    socket.onerror = ({ message, error }: ErrorEvent) => refuse(message ?? 'there is no WebSocket', error)
    socket.onclose = ({ code, reason }: CloseEvent) => refuse(`closed with ${code} ${reason}`.trimEnd())
    // It must listen at once: a message may arrive before any promise settles.
    const transport = new WebSocketTransport(socket, url)
    socket.onopen = () => {
      release()
      if (socket.protocol === SUBPROTOCOL) return resolve(transport)
      refuse(`the server does not support the subprotocol ${SUBPROTOCOL}`)
      socket.close()
    }
  })
}

class WebSocketTransport implements Transport {
  readonly loopback: boolean
  readonly #isSecure: boolean
  readonly #socket: WebSocketLike
  readonly #kept: Uint8Array[] = []
  #keptBytes = 0
  #listener: TransportListener | undefined
  #isPaused = false

  constructor(socket: WebSocketLike, url: URL) {
    this.#isSecure = url.protocol === 'wss:'
    this.loopback = isLoopbackHost(url.hostname)
    this.#socket = socket
    socket.onmessage = ({ data }: { readonly data: unknown }) => this.#message(data)
  }

  get encrypted(): boolean {
    return this.#isSecure && this.#socket.isVerified !== false
  }

  get exporter(): Uint8Array | undefined {
    return this.#socket.exporter
  }

  open(listener: TransportListener): void {
    let broken: Error | undefined
    this.#listener = listener
    this.#socket.onerror = ({ error }: ErrorEvent) => {
      broken = error ?? new Error('the WebSocket failed')
    }
    this.#socket.onclose = ({ reason }: CloseEvent) =>
      listener.closed(broken ?? (reason ? new Error(reason) : undefined))
    this.#deliver()
  }

  send(bytes: Uint8Array): void {
    this.#socket.send(bytes)
  }

  pause(): void {
    this.#isPaused = true
    this.#socket.pause?.()
  }

  resume(): void {
    this.#isPaused = false
    this.#socket.resume?.()
    this.#deliver()
  }

  close(): void {
    this.#isPaused = false
    this.#socket.resume?.()
    this.#socket.close(1000)
  }

  #message(data: unknown): void {
    if (data instanceof ArrayBuffer) {
      this.#kept.push(new Uint8Array(data))
      this.#keptBytes += data.byteLength
      this.#deliver()
    }
    if (!(data instanceof ArrayBuffer) || this.#keptBytes > MAX_KEPT_BYTES) this.close()
  }

  #deliver(): void {
    while (this.#listener && !this.#isPaused) {
      const bytes = this.#kept.shift()
      if (!bytes) return
      this.#keptBytes -= bytes.length
      this.#listener.data(bytes)
    }
  }
}
