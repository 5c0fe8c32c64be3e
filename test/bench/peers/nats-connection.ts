/**
 * The NATS client protocol by hand: cuts the stream into messages, `MSG subject sid [reply] size`, and makes the few requests
 * of the JetStream API that set a run up.
 */
import { Moment, RawSocket } from '../processes/raw-socket.ts'

const LF = 0x0a
const SPACE = 0x20
const MINUS = 0x2d
const LETTER_M = 0x4d
const LETTER_P = 0x50
const CONNECT = 'CONNECT {"verbose":false,"pedantic":false,"headers":false,"lang":"raw","version":"0"}\r\n'

/** A message of the chunk that is being read. */
export interface Message {
  bytes: Uint8Array
  /** The subject to answer to is `bytes[replyAt..replyEnd)`; empty if there is none. */
  replyAt: number
  replyEnd: number
  payloadAt: number
  payloadEnd: number
}

export interface Listener {
  /** `message` is valid during the call. */
  message(message: Message): void
  chunkRead(): void
}

export class NatsConnection {
  readonly socket: RawSocket
  readonly #listener: Listener
  readonly #answered = new Moment()
  readonly #message: Message = { bytes: new Uint8Array(0), replyAt: 0, replyEnd: 0, payloadAt: 0, payloadEnd: 0 }

  constructor(port: number, listener: Listener) {
    this.#listener = listener
    this.socket = new RawSocket(port, (bytes, _view, end) => this.#read(bytes, end))
  }

  /** Connects and subscribes to `inbox`. */
  async open(inbox: string): Promise<RawSocket> {
    await this.socket.connected()
    this.send(`${CONNECT}SUB ${inbox} 1\r\nPING\r\n`)
    await this.socket.until(this.#answered.reached)
    return this.socket
  }

  send(text: string): void {
    this.socket.write(Buffer.from(text))
  }

  #read(bytes: Uint8Array, end: number): number {
    let at = 0
    while (at < end) {
      const lineEnd = bytes.indexOf(LF, at)
      if (lineEnd < 0 || lineEnd >= end) break
      const next = bytes[at] === LETTER_M ? this.#take(bytes, at, lineEnd, end) : this.#line(bytes, at, lineEnd)
      if (next === 0) break
      at = next
    }
    this.#listener.chunkRead()
    return at
  }

  /** Gives where the next thing begins; 0 if the payload is not all there. */
  #take(bytes: Uint8Array, at: number, lineEnd: number, end: number): number {
    let size = 0
    let digit = lineEnd - 2
    for (let unit = 1; bytes[digit] !== SPACE; digit--, unit *= 10) size += ((bytes[digit] as number) - 0x30) * unit
    const next = lineEnd + 1 + size + 2
    if (next > end) return 0
    let field = at
    for (let spaces = 0; spaces < 3; field++) if (bytes[field] === SPACE) spaces++
    const message = this.#message
    message.bytes = bytes
    message.replyAt = Math.min(field, digit)
    message.replyEnd = digit
    message.payloadAt = lineEnd + 1
    message.payloadEnd = lineEnd + 1 + size
    this.#listener.message(message)
    return next
  }

  /** INFO, PING, PONG, +OK and -ERR. */
  #line(bytes: Uint8Array, at: number, lineEnd: number): number {
    if (bytes[at] === MINUS) throw new Error(`nats: ${Buffer.from(bytes.subarray(at, lineEnd)).toString()}`)
    if (bytes[at] === LETTER_P && bytes[at + 1] === 0x4f) this.#answered.reach()
    else if (bytes[at] === LETTER_P) this.send('PONG\r\n')
    return lineEnd + 1
  }
}

/** One request of the JetStream API on a connection of its own; an error in the answer is thrown. */
export async function jetStream(port: number, api: string, request: object): Promise<Record<string, unknown>> {
  const came = new Moment()
  let answer = ''
  const connection = new NatsConnection(port, {
    message({ bytes, payloadAt, payloadEnd }) {
      answer = Buffer.from(bytes.subarray(payloadAt, payloadEnd)).toString()
      came.reach()
    },
    chunkRead() {},
  })
  const socket = await connection.open('answer')
  const body = JSON.stringify(request)
  connection.send(`PUB $JS.API.${api} answer ${Buffer.byteLength(body)}\r\n${body}\r\n`)
  await socket.until(came.reached)
  socket.close()
  const parsed = JSON.parse(answer) as Record<string, unknown>
  if (parsed['error'] !== undefined) throw new Error(`nats: ${api} was answered ${answer}`)
  return parsed
}
