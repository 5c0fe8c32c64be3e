/** Frames over TCP, and over WebSocket as `monitoring.xdr`, where they are one stream of bytes too [MON 1, 13]. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { WebSocket } from 'ws'
import { type Bindings, Mismatch, matchFrame } from './match.ts'
import { resolve, type Variables } from './pattern.ts'
import type { Expectation } from './script.ts'
import { Inbox, type Message, type Speaker } from './speaker.ts'
import { messages } from './words.ts'

/** How bytes travel. */
interface Carrier {
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
  const socket: Socket = connect({ host, port, noDelay: true, allowHalfOpen: true })
  await once(socket, 'connect')
  const speaker = new XdrSpeaker(options, {
    send: (bytes) => void socket.write(bytes),
    cut: () => void socket.destroy(),
    end: () => void socket.end(),
  })
  socket.on('data', (chunk: Buffer) => speaker.take(chunk))
  socket.on('error', () => speaker.closed())
  socket.on('end', () => {
    socket.end()
    speaker.closed()
  })
  socket.on('close', () => speaker.closed())
  return speaker
}

export async function openWebSocket(url: string, options: XdrOptions): Promise<Speaker> {
  const socket = new WebSocket(url, ['monitoring.xdr'])
  const speaker = new XdrSpeaker(options, {
    send: (bytes) => socket.send(bytes),
    cut: () => socket.terminate(),
    end: () => socket.close(),
  })
  socket.on('message', (data: Buffer, isBinary) => (isBinary ? speaker.take(data) : speaker.broken('a text message')))
  socket.on('error', () => speaker.closed())
  socket.on('close', (code) => speaker.closed(code))
  await once(socket, 'open')
  return speaker
}

class XdrSpeaker implements Speaker {
  readonly #carrier: Carrier
  readonly #inbox: Inbox
  readonly #byteByByte: boolean
  #rest = Buffer.alloc(0)
  #broken = false

  constructor({ patienceMs, byteByByte }: XdrOptions, carrier: Carrier) {
    this.#carrier = carrier
    this.#inbox = new Inbox(patienceMs)
    this.#byteByByte = byteByByte
  }

  take(chunk: Buffer): void {
    if (this.#broken) return
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 4) {
      const length = this.#rest.readUInt32BE(0)
      if (length % 4 !== 0 || length < 8 || length > MAX_FRAME) {
        this.broken(this.#rest)
        return
      }
      if (this.#rest.length < 4 + length) return
      this.#inbox.push({ frame: Buffer.from(this.#rest.subarray(0, 4 + length)) })
      this.#rest = this.#rest.subarray(4 + length)
    }
  }

  /** What cannot be a message: it is handed on as it is, so that no expectation is met by it, and nothing after it is read. */
  broken(what: Buffer | string): void {
    this.#broken = true
    this.#inbox.push({ frame: Buffer.from(what) })
  }

  closed(code?: number): void {
    if (this.#rest.length > 0 && !this.#broken) this.broken(this.#rest)
    this.#inbox.close(code)
  }

  send(bytes: Buffer): void {
    const single = this.#byteByByte ? Math.min(bytes.length, ONE_BY_ONE) : 0
    for (let at = 0; at < single; at++) this.#carrier.send(bytes.subarray(at, at + 1))
    if (single < bytes.length) this.#carrier.send(bytes.subarray(single))
  }

  sendText(): void {
    throw new Error('text is for scripts that are "only: json"')
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
    this.#carrier.end()
    await this.#inbox.untilClosed()
  }
}

function midOf(message: Message): number | undefined {
  if (!('frame' in message) || message.frame.length < 12) return undefined
  return message.frame.readUInt32BE(0) === message.frame.length - 4 ? message.frame.readUInt32BE(4) : undefined
}
