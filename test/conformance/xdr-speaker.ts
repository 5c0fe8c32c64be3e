/** Frames over TCP, TLS, and WebSocket as `monitoring.xdr`: one stream of bytes everywhere [MON 1, 13], and its layers [MON 12]. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { constants, createDeflateRaw, createInflateRaw, type DeflateRaw, type InflateRaw } from 'node:zlib'
import { WebSocket } from 'ws'
import { type Bindings, Mismatch, matchFrame } from './match.ts'
import { resolve, type Variables } from './pattern.ts'
import type { Expectation } from './script.ts'
import { exporterOf, Inbox, type Message, type Speaker } from './speaker.ts'
import { commands, messages, statuses } from './words.ts'

/** How bytes travel below `deflate`. */
interface Carrier {
  /** What TLS may be on, or may be put on. */
  readonly socket: Socket | undefined
  send(bytes: Buffer): void
  cut(): void
  end(): void
}

/** No message of a producer is longer [MON 1]. */
const MAX_FRAME = 1_048_576
/** Of bytes sent one by one: the rest goes in one piece, or a long frame would take for ever. */
const ONE_BY_ONE = 512

export interface XdrOptions {
  readonly patienceMs: number
  readonly byteByByte: boolean
}

export async function openTcp(host: string, port: number, options: XdrOptions): Promise<Speaker> {
  const socket = connect({ host, port, noDelay: true, allowHalfOpen: true })
  await once(socket, 'connect')
  return speakOver(socket, options)
}

/** TLS from the first byte on. */
export async function openTls(tls: ConnectionOptions, options: XdrOptions): Promise<Speaker> {
  const socket = connectTls(tls)
  await once(socket, 'secureConnect')
  return speakOver(socket, options)
}

/** A socket that is open. */
export function speakOver(socket: Socket, options: XdrOptions): Speaker {
  const speaker = new XdrSpeaker(options)
  speaker.carry(socketCarrier(socket, speaker))
  return speaker
}

function socketCarrier(socket: Socket, speaker: XdrSpeaker): Carrier {
  socket.on('data', (chunk: Buffer) => speaker.take(chunk))
  socket.on('error', () => speaker.closed())
  socket.on('end', () => {
    socket.end()
    speaker.closed()
  })
  socket.on('close', () => speaker.closed())
  return {
    socket,
    send: (bytes) => void socket.write(bytes),
    cut: () => void socket.destroy(),
    end: () => void socket.end(),
  }
}

/** `tls`: for `wss://`. */
export async function openWebSocket(url: string, tls: ConnectionOptions, options: XdrOptions): Promise<Speaker> {
  const socket = new WebSocket(url, ['monitoring.xdr'], tls)
  let carrier: Socket | undefined
  socket.once('upgrade', (answer) => {
    carrier = answer.socket
  })
  const speaker = speakOverWebSocket(socket, () => carrier, options)
  await once(socket, 'open')
  return speaker
}

/** `carrier`: what the WebSocket is on, once it is open. */
export function speakOverWebSocket(socket: WebSocket, carrier: () => Socket | undefined, options: XdrOptions): Speaker {
  const speaker = new XdrSpeaker(options)
  speaker.carry({
    get socket() {
      return carrier()
    },
    send: (bytes) => socket.send(bytes),
    cut: () => socket.terminate(),
    end: () => socket.close(),
  })
  socket.on('message', (data: Buffer, isBinary) => (isBinary ? speaker.take(data) : speaker.broken('a text message')))
  socket.on('error', () => speaker.closed())
  socket.on('close', (code) => speaker.closed(code))
  return speaker
}

class XdrSpeaker implements Speaker {
  readonly #options: XdrOptions
  readonly #inbox: Inbox
  #carrier!: Carrier
  #rest = Buffer.alloc(0)
  #broken = false
  #layer: { readonly deflate: DeflateRaw; readonly inflate: InflateRaw } | undefined
  /** The seq of a WRAP that has no response yet. */
  #wrapSeq: number | undefined
  /** True from the response to a WRAP until the layer is there: what comes is no frames. */
  #isHeld = false

  constructor(options: XdrOptions) {
    this.#options = options
    this.#inbox = new Inbox(options.patienceMs)
  }

  carry(carrier: Carrier): void {
    this.#carrier = carrier
  }

  take(chunk: Buffer): void {
    if (this.#layer === undefined) this.#frames(chunk)
    else this.#layer.inflate.write(chunk)
  }

  #frames(chunk: Buffer): void {
    if (this.#broken) return
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 4 && !this.#isHeld) {
      const length = this.#rest.readUInt32BE(0)
      if (length % 4 !== 0 || length < 8 || length > MAX_FRAME) {
        this.broken(this.#rest)
        return
      }
      if (this.#rest.length < 4 + length) return
      const frame = Buffer.from(this.#rest.subarray(0, 4 + length))
      this.#rest = this.#rest.subarray(4 + length)
      this.#isHeld = this.#isWrapped(frame)
      this.#inbox.push({ frame })
    }
  }

  /** Whether this is the response after which everything is in a new layer. */
  #isWrapped(frame: Buffer): boolean {
    if (this.#wrapSeq === undefined || frame.length < 16) return false
    if (frame.readUInt32BE(4) !== messages.RESPONSE || frame.readUInt32BE(8) !== this.#wrapSeq) return false
    this.#wrapSeq = undefined
    return frame.readUInt32BE(12) === statuses.OK
  }

  /** What cannot be a message: it is handed on as it is, so that no expectation is met by it, and nothing after it is read. */
  broken(what: Buffer | string): void {
    this.#broken = true
    this.#inbox.push({ frame: Buffer.from(what) })
  }

  closed(code?: number): void {
    const { inflate } = this.#layer ?? {}
    if (inflate === undefined || inflate.destroyed) this.#close(code)
    // What has come is inflated first.
    else inflate.once('close', () => this.#close(code)).end()
  }

  #close(code?: number): void {
    if (this.#rest.length > 0 && !this.#broken) this.broken(this.#rest)
    this.#inbox.close(code)
  }

  send(bytes: Buffer): void {
    const isWrap = bytes.length >= 12 && bytes.readUInt32BE(0) === bytes.length - 4
    if (isWrap && bytes.readUInt32BE(4) === commands.WRAP) this.#wrapSeq = bytes.readUInt32BE(8)
    if (this.#layer === undefined) this.sendBelow(bytes)
    else this.#layer.deflate.write(bytes)
  }

  sendBelow(bytes: Buffer): void {
    const single = this.#options.byteByByte ? Math.min(bytes.length, ONE_BY_ONE) : 0
    for (let at = 0; at < single; at++) this.#carrier.send(bytes.subarray(at, at + 1))
    if (single < bytes.length) this.#carrier.send(bytes.subarray(single))
  }

  sendText(): void {
    throw new Error('text is for scripts that are "only: json"')
  }

  addTls(options: ConnectionOptions): Promise<void> {
    const { socket } = this.#carrier
    if (!this.#isHeld || socket === undefined) throw new Error('TLS starts after the response to a WRAP over TCP')
    if (this.#rest.length > 0) throw new Error('bytes came before the ClientHello was sent')
    this.#isHeld = false
    for (const event of ['data', 'error', 'end', 'close']) socket.removeAllListeners(event)
    const secured = connectTls({ ...options, socket })
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => failed(new Error('the handshake does not end')), this.#options.patienceMs)
      const failed = (error?: Error): void => {
        clearTimeout(timer)
        socket.destroy()
        reject(error ?? new Error('the connection ended in the handshake'))
      }
      secured.once('error', failed).once('close', () => failed())
      secured.once('secureConnect', () => {
        clearTimeout(timer)
        secured.removeAllListeners('error').removeAllListeners('close')
        this.carry(socketCarrier(secured, this))
        resolve()
      })
    })
  }

  addDeflate(): void {
    if (!this.#isHeld || this.#layer !== undefined) throw new Error('deflate starts after the response to a WRAP, once')
    this.#isHeld = false
    const { Z_SYNC_FLUSH } = constants
    const deflate = createDeflateRaw({ flush: Z_SYNC_FLUSH })
    // A stream that is cut off is no error: a producer may just close.
    const inflate = createInflateRaw({ flush: Z_SYNC_FLUSH, finishFlush: Z_SYNC_FLUSH })
    deflate.on('data', (bytes: Buffer) => this.sendBelow(bytes))
    inflate.on('data', (bytes: Buffer) => this.#frames(bytes))
    inflate.on('error', (error) => this.broken(`no deflate data: ${error.message}`))
    this.#layer = { deflate, inflate }
    inflate.write(this.#rest)
    this.#rest = Buffer.alloc(0)
  }

  exporter(): Buffer {
    return exporterOf(this.#carrier.socket)
  }

  next(): ReturnType<Speaker['next']> {
    return this.#inbox.next()
  }

  match(expectation: Expectation, message: Message, variables: Variables): Bindings {
    if (!('parts' in expectation)) throw new Error('JSON is for scripts that are "only: json"')
    if (!('frame' in message)) throw new Mismatch('no frame')
    return matchFrame(resolve(expectation.parts, variables), message.frame, variables)
  }

  mayBePassedOver(message: Message): boolean {
    return midOf(message) === messages.PRODUCER_CAPS || this.noticeOf(message) === 1
  }

  noticeOf(message: Message): number | undefined {
    return midOf(message) === messages.NOTICE && 'frame' in message ? message.frame.readUInt32BE(8) : undefined
  }

  cut(): void {
    this.#carrier.cut()
  }

  async end(): Promise<void> {
    if (this.#layer === undefined) this.#carrier.end()
    else this.#layer.deflate.once('end', () => this.#carrier.end()).end()
    await this.#inbox.untilClosed()
  }
}

function midOf(message: Message): number | undefined {
  if (!('frame' in message) || message.frame.length < 12) return undefined
  return message.frame.readUInt32BE(0) === message.frame.length - 4 ? message.frame.readUInt32BE(4) : undefined
}
