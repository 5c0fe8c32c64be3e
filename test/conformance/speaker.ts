/** One connection of a script, whatever it speaks; and the queue in which what came waits until a step asks for it. */
import { type ConnectionOptions, TLSSocket } from 'node:tls'
import type { Bindings } from './match.ts'
import type { Variables } from './pattern.ts'
import type { Expectation } from './script.ts'
import { messages, types } from './words.ts'
import { inside, opaqueEnd, valueEnd } from './xdr.ts'

export type Message = { readonly frame: Buffer } | { readonly json: unknown }

export type Arrival =
  | Message
  | { readonly closed: { readonly code: number | undefined } }
  | { readonly nothing: number }

export interface Speaker {
  /** Whole frames, or bytes that are none. JSON: the command that the frame says. */
  send(bytes: Buffer): void
  /** Bytes below the uppermost layer. */
  sendBelow(bytes: Buffer): void
  /** Only JSON has text. */
  sendText(text: string): void
  /** What comes next; {nothing} after the patience of the run, in milliseconds. */
  next(): Promise<Arrival>
  /** What the holes took. Throws Mismatch. */
  match(expectation: Expectation, message: Message, variables: Variables): Bindings
  /** PRODUCER_CAPS, and the notice of a full window: they may come whenever something changes [MON 3.2, 3.5]. */
  mayBePassedOver(message: Message): boolean
  /** The code of a NOTICE, or undefined: another message. */
  noticeOf(message: Message): number | undefined
  /** After the response to a WRAP of `tls`. Rejects if the handshake does not succeed. */
  addTls(options: ConnectionOptions): Promise<void>
  /** After the response to a WRAP of `deflate`. */
  addDeflate(): void
  /** The bytes that bind an exchange to this connection (RFC 9266). Throws Error without TLS 1.3. */
  exporter(): Buffer
  /** Without a word. */
  cut(): void
  /** Ends it in good order, and waits until the other side has too. */
  end(): Promise<void>
}

/** The exporter of RFC 9266 of a connection's socket. */
export function exporterOf(socket: unknown): Buffer {
  if (!(socket instanceof TLSSocket) || socket.getProtocol() !== 'TLSv1.3')
    throw new Error('only a connection over TLS 1.3 can be bound to')
  return socket.exportKeyingMaterial(32, 'EXPORTER-Channel-Binding', Buffer.alloc(0))
}

export class Inbox {
  readonly #patienceMs: number
  readonly #waiting: Message[] = []
  #closed: { readonly code: number | undefined } | undefined
  #wake: (() => void) | undefined

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs
  }

  push(message: Message): void {
    this.#waiting.push(message)
    this.#wake?.()
  }

  close(code?: number): void {
    this.#closed ??= { code }
    this.#wake?.()
  }

  async next(): Promise<Arrival> {
    const message = this.#waiting.shift()
    if (message !== undefined) return message
    if (this.#closed !== undefined) return { closed: this.#closed }
    const came = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), this.#patienceMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve(true)
      }
    })
    this.#wake = undefined
    return came ? this.next() : { nothing: this.#patienceMs }
  }

  /** Passes over what still comes. */
  async untilClosed(): Promise<void> {
    for (;;) {
      const arrival = await this.next()
      if ('closed' in arrival) return
      if ('nothing' in arrival) throw new Error(`the other side did not end within ${arrival.nothing} ms`)
    }
  }
}

/**
 * The words of PRODUCER_CAPS [MON 3.2], as `auth password`, `layer deflate`, `extension gap`, `producer ID NAME`; undefined: another
 * message, or none that is whole.
 */
export function offeredIn(message: Message): ReadonlySet<string> | undefined {
  try {
    const words = 'frame' in message ? ofFrame(message.frame) : ofJson(message.json)
    return words && new Set(words)
  } catch {
    // What is wrong with it is said where it is compared.
    return undefined
  }
}

function ofFrame(frame: Buffer): string[] | undefined {
  if (frame.readUInt32BE(4) !== messages.PRODUCER_CAPS) return undefined
  const found: string[] = []
  let at = 20
  for (let left = frame.readUInt32BE(16); left > 0; left--) {
    const name = inside(frame, at).toString('utf8')
    const typeAt = opaqueEnd(frame, at)
    const type = frame.readUInt32BE(typeAt)
    const end = valueEnd(frame, typeAt + 4, type)
    if (type === types.STRING) found.push(`${name} ${inside(frame, typeAt + 4).toString('utf8')}`)
    at = end
  }
  return found
}

function ofJson(json: unknown): string[] | undefined {
  const lists = json as Record<string, unknown>
  if (lists['type'] !== 'caps') return undefined
  return ['auth', 'layer', 'extension', 'producer', 'below'].flatMap((name) => {
    const words = lists[name]
    const list: readonly unknown[] = Array.isArray(words) ? words : words === undefined ? [] : [words]
    return list.map((word) => `${name} ${String(word)}`)
  })
}
