/** A consumer over WebSocket that speaks `monitoring.json`: sends text as it is given, keeps what comes in order. */
import { WebSocket } from 'ws'
import type { Json } from './records.ts'

export interface Closed {
  readonly code: number
  readonly reason: string
}

export class WebPeer {
  readonly socket: WebSocket
  /** Everything received, in order. */
  readonly log: Json[] = []
  closed: Closed | undefined
  #read = 0
  #waiting: (() => void)[] = []

  constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      this.log.push(isBinary ? { binary: data } : JSON.parse(data.toString('utf8')))
      this.#wake()
    })
    socket.on('error', () => {})
    socket.on('close', (code, reason) => {
      this.closed = { code, reason: reason.toString('utf8') }
      this.#wake()
    })
  }

  static async open(url: string, protocols: string[] = ['monitoring.json']): Promise<WebPeer> {
    const peer = new WebPeer(new WebSocket(url, protocols))
    await new Promise<void>((resolve, reject) => {
      peer.socket.once('open', resolve).once('error', reject)
    })
    return peer
  }

  /** Text, or an object to be made text. */
  send(message: string | object): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  /** The next message; undefined when the connection ended. */
  async next(): Promise<Json> {
    while (this.#read === this.log.length) {
      if (this.closed !== undefined) return undefined
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    return this.log[this.#read++]
  }

  /** The next message of a type, whatever comes before it. */
  async until(type: string, seq?: number): Promise<Json> {
    for (;;) {
      const message = await this.next()
      if (message === undefined) throw new Error(`the connection ended while a ${type} was awaited`)
      if (message.type === type && (seq === undefined || message.seq === seq)) return message
    }
  }

  /** Sends a command; gives its response. */
  ask(command: { readonly seq: number; readonly [key: string]: unknown }): Promise<Json> {
    this.send(command)
    return this.until('response', command.seq)
  }

  /** How the connection ended. */
  async end(): Promise<Closed> {
    while (this.closed === undefined) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return this.closed
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}
