/**
 * A consumer that speaks raw bytes: writes frames as they are given, reads frames and takes their fixed fields apart by the
 * table of section 3, without our decoder. `next` waits for a message; nothing sleeps.
 */
import type { Duplex } from 'node:stream'
import { secretsIn } from './canaries.ts'

export type Received =
  | {
      readonly kind: 'response'
      readonly seq: number
      readonly status: number
      readonly result: number
      readonly detail: string
      readonly bytes: Buffer
    }
  | {
      readonly kind: 'value'
      readonly metric: number
      readonly transaction: number
      readonly time: number
      readonly type: number
      readonly value: Buffer
      readonly bytes: Buffer
    }
  | {
      readonly kind: 'gap'
      readonly transaction: number
      readonly metric: number
      readonly count: number
      readonly from: number
      readonly to: number
      readonly reason: number
      readonly bytes: Buffer
    }
  | {
      readonly kind: 'notice'
      readonly code: number
      readonly channel: number
      readonly detail: string
      readonly bytes: Buffer
    }
  | { readonly kind: 'auth'; readonly data: Buffer; readonly bytes: Buffer }
  | { readonly kind: 'caps'; readonly bytes: Buffer }
  | { readonly kind: 'closed' }

type Response = Extract<Received, { kind: 'response' }>

export class RawPeer {
  readonly stream: Duplex
  /** Passwords, tokens and the like that it has sent: nobody may write them down. */
  readonly secrets = new Set<string>()
  /** Everything received, in order. */
  readonly log: Received[] = []
  #buffer = Buffer.alloc(0)
  #read = 0
  #closed = false
  /** Responses that `response` gave. */
  readonly #given = new Set<Received>()
  #waiting: (() => void)[] = []

  constructor(stream: Duplex) {
    this.stream = stream
    stream.on('data', (chunk: Buffer) => this.#take(chunk))
    stream.on('error', () => {})
    for (const event of ['end', 'close'] as const) stream.on(event, () => this.#end())
  }

  get closed(): boolean {
    return this.#closed
  }

  send(...frames: readonly Uint8Array[]): void {
    for (const frame of frames) for (const secret of secretsIn(frame)) this.secrets.add(secret)
    this.stream.write(Buffer.concat(frames))
  }

  /** The next message, or {kind: 'closed'} when the connection ended. */
  async next(): Promise<Received> {
    for (;;) {
      const message = this.log[this.#read]
      if (message !== undefined) {
        this.#read++
        return message
      }
      if (this.#closed) return { kind: 'closed' }
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  /** The next message of a kind; others are passed over (they stay in `log`). Throws if the connection ends first. */
  async until<K extends Received['kind']>(kind: K): Promise<Extract<Received, { kind: K }>> {
    for (;;) {
      const message = await this.next()
      if (message.kind === kind) return message as Extract<Received, { kind: K }>
      if (message.kind === 'closed') throw new Error(`the connection ended while a ${kind} was awaited`)
    }
  }

  /** The response to a command, in whatever order responses come: one that was passed over is found again, once. */
  async response(seq: number): Promise<Response> {
    const isIt = (message: Received): message is Response => message.kind === 'response' && message.seq === seq
    let response = this.log.slice(0, this.#read).find((message) => isIt(message) && !this.#given.has(message))
    while (response === undefined || !isIt(response)) response = await this.until('response')
    this.#given.add(response)
    return response
  }

  /** Messages that are there already and were not looked at; nothing is waited for. */
  pending(): Received[] {
    const rest = this.log.slice(this.#read)
    this.#read = this.log.length
    return rest
  }

  destroy(): void {
    this.stream.destroy()
  }

  #take(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk])
    while (this.#buffer.length >= 4) {
      const length = this.#buffer.readUInt32BE(0)
      if (this.#buffer.length < 4 + length) break
      this.log.push(parse(Buffer.from(this.#buffer.subarray(4, 4 + length))))
      this.#buffer = this.#buffer.subarray(4 + length)
    }
    this.#wake()
  }

  #end(): void {
    this.#closed = true
    this.#wake()
  }

  #wake(): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const resolve of waiting) resolve()
  }
}

function parse(bytes: Buffer): Received {
  const u32 = (at: number): number => bytes.readUInt32BE(at)
  const u64 = (at: number): number => Number(bytes.readBigUInt64BE(at))
  const text = (at: number): string => bytes.subarray(at + 4, at + 4 + u32(at)).toString('utf8')
  switch (u32(0)) {
    case 0xffffffff: {
      const status = u32(8)
      const detail = status === 0 || status === 1 ? '' : text(16)
      return { kind: 'response', seq: u32(4), status, result: u32(12), detail, bytes }
    }
    case 0xfffffffe:
      return { kind: 'caps', bytes }
    case 0xfffffffd:
      return { kind: 'auth', data: bytes.subarray(8, 8 + u32(4)), bytes }
    case 0xfffffffc:
      return {
        kind: 'gap',
        transaction: u64(4),
        metric: u32(12),
        count: u64(16),
        from: u64(24),
        to: u64(32),
        reason: u32(40),
        bytes,
      }
    case 0xfffffffb:
      return { kind: 'notice', code: u32(4), channel: u32(8), detail: text(12), bytes }
    default:
      return {
        kind: 'value',
        metric: u32(0),
        transaction: u64(4),
        time: u64(12),
        type: u32(20),
        value: bytes.subarray(24),
        bytes,
      }
  }
}
