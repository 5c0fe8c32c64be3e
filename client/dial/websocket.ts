/**
 * The WebSocket door [MON 13], over whichever WebSocket is handed in: a browser's, Node's, or that of `ws`. Only the last
 * can stop reading; for the others what comes during a pause is kept here, and too much of it ends the connection.
 */
import { ConnectionError } from '../errors.ts'
import type { Transport, TransportListener } from '../transport.ts'
import { isLoopback } from './loopback.ts'

const SUBPROTOCOL = 'monitoring.xdr'
const MAX_KEPT_BYTES = 64 << 20

/** The part of the WebSocket standard that is used, and what Node's adds (node-websocket.ts). */
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
  /** Whether the other end's certificate is good; where the caller cannot tell, nothing else would have been let through. */
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

/** `explained` makes an error of the system one for people. */
export function dialWebSocket(
  url: URL,
  WebSocket: WebSocketConstructor,
  signal: AbortSignal,
  explained?: (error: Error) => ConnectionError,
): Promise<Transport> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url.href, [SUBPROTOCOL])
    const refuse = (why: string, cause?: Error) => {
      signal.removeEventListener('abort', abort)
      const unreachable = () => new ConnectionError('UNREACHABLE', `cannot connect to ${url.href}: ${why}`, { cause })
      reject(cause && explained ? explained(cause) : unreachable())
    }
    const abort = () => {
      refuse('given up')
      socket.close()
    }
    signal.addEventListener('abort', abort)
    socket.binaryType = 'arraybuffer'
    // A browser does not say what went wrong; `ws` does.
    socket.onerror = ({ message, error }: ErrorEvent) => refuse(message ?? 'no WebSocket there', error)
    socket.onclose = ({ code, reason }: CloseEvent) => refuse(`closed with ${code} ${reason}`.trimEnd())
    // From the first moment: a message may follow the opening before any promise settles.
    const transport = new WebSocketTransport(socket, url)
    socket.onopen = () => {
      signal.removeEventListener('abort', abort)
      if (socket.protocol === SUBPROTOCOL) return resolve(transport)
      refuse(`it does not speak ${SUBPROTOCOL}`)
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
    this.loopback = isLoopback(url.hostname)
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
      broken = error ?? new Error('the WebSocket broke')
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
