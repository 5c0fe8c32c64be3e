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

/** In front of each frame. */
const LENGTH_BYTES = 4

export class RawPeer {
  readonly stream: Duplex
  /** Passwords, tokens and the like that it has sent: nobody may write them down. */
  readonly secrets = new Set<string>()
  /** Everything received, in order. */
  readonly log: Received[] = []
  /** What came after the last whole frame. */
  #pieces: Buffer[] = []
  #held = 0
  /** How many bytes must be held before it is worth looking at them: a length, or the whole frame if its length is there. */
  #wanted = LENGTH_BYTES
  #read = 0
  #closed = false
  /** Responses that were read and that `response` has not given, by seq. */
  readonly #passedOver = new Map<number, Response[]>()
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
        this.#passOver(message)
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
    for (;;) {
      const response = this.#passedOver.get(seq)?.shift()
      if (response !== undefined) return response
      await this.until('response')
    }
  }

  /** Messages that are there already and were not looked at; nothing is waited for. */
  pending(): Received[] {
    const rest = this.log.slice(this.#read)
    this.#read = this.log.length
    for (const message of rest) this.#passOver(message)
    return rest
  }

  destroy(): void {
    this.stream.destroy()
  }

  #take(chunk: Buffer): void {
    this.#pieces.push(chunk)
    this.#held += chunk.length
    if (this.#held < this.#wanted) return
    let rest = this.#pieces.length === 1 ? chunk : Buffer.concat(this.#pieces)
    for (;;) {
      this.#wanted = rest.length < LENGTH_BYTES ? LENGTH_BYTES : LENGTH_BYTES + rest.readUInt32BE(0)
      if (rest.length < this.#wanted) break
      this.log.push(parse(Buffer.from(rest.subarray(LENGTH_BYTES, this.#wanted))))
      rest = rest.subarray(this.#wanted)
    }
    this.#pieces = [rest]
    this.#held = rest.length
    this.#wake()
  }

  #passOver(message: Received): void {
    if (message.kind !== 'response') return
    const sameSeq = this.#passedOver.get(message.seq)
    if (sameSeq) sameSeq.push(message)
    else this.#passedOver.set(message.seq, [message])
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
