/** Where the kit waits for the producer to connect [MON 14]: TCP or WebSocket, over TLS or not. */
import { once } from 'node:events'
import { createServer as createWebServer, type IncomingMessage } from 'node:http'
import { createServer as createSecureWebServer } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { type WebSocket, WebSocketServer } from 'ws'
import { speakJson } from './json-speaker.ts'
import type { Way } from './script.ts'
import type { Speaker } from './speaker.ts'
import { speakOver, speakOverWebSocket, type XdrOptions } from './xdr-speaker.ts'

export interface KeyPair {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

export interface ListenOptions extends XdrOptions {
  /** An address of this machine that the producer can reach. */
  readonly host: string
  /** 0: any. */
  readonly port: number
  /** Listens over TLS. */
  readonly certificate: KeyPair | undefined
}

export class Listener {
  /** What DEF_CHANNEL is given. */
  readonly url: string
  readonly #server: Server
  readonly #patienceMs: number
  readonly #sockets = new Set<Socket>()
  readonly #calls: Speaker[] = []
  #wake: () => void = () => {}

  private constructor(server: Server, scheme: string, { host, patienceMs }: ListenOptions) {
    const { port } = server.address() as AddressInfo
    this.url = `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
    this.#server = server
    this.#patienceMs = patienceMs
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => socket.destroy()).on('close', () => this.#sockets.delete(socket))
    })
  }

  /** Rejects if the address cannot be listened on. */
  static async open(way: Way, options: ListenOptions): Promise<Listener> {
    const { host, port, certificate } = options
    const isTcp = way === 'tcp'
    const server = isTcp ? tcpServer(certificate) : webServer(certificate)
    server.listen(port, host)
    await once(server, 'listening')
    const scheme = isTcp ? (certificate ? 'tls' : 'tcp') : certificate ? 'wss' : 'ws'
    const listener = new Listener(server, scheme, options)
    if (isTcp) {
      const event = certificate === undefined ? 'connection' : 'secureConnection'
      server.on(event, (socket: Socket) => listener.#called(speakOver(socket, options)))
    } else {
      const protocol = way === 'ws-json' ? 'monitoring.json' : 'monitoring.xdr'
      const sockets = new WebSocketServer({ server: server as never, handleProtocols: () => protocol })
      sockets.on('connection', (socket: WebSocket, { socket: carrier }: IncomingMessage) => {
        const isJson = way === 'ws-json'
        listener.#called(
          isJson ? speakJson(socket, carrier, options.patienceMs) : speakOverWebSocket(socket, () => carrier, options),
        )
      })
    }
    return listener
  }

  #called(speaker: Speaker): void {
    this.#calls.push(speaker)
    this.#wake()
  }

  /** The next connection that the producer makes; undefined: none within the patience of the run. */
  async call(): Promise<Speaker | undefined> {
    const waiting = this.#calls.shift()
    if (waiting !== undefined) return waiting
    const came = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), this.#patienceMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve(true)
      }
    })
    this.#wake = () => {}
    return came ? this.#calls.shift() : undefined
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }
}

function tcpServer(certificate: KeyPair | undefined): Server {
  const options = { noDelay: true, allowHalfOpen: true }
  return certificate === undefined ? createServer(options) : createTlsServer({ ...options, ...certificate })
}

function webServer(certificate: KeyPair | undefined): Server {
  return certificate === undefined ? createWebServer() : createSecureWebServer(certificate)
}
