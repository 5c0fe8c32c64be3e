/**
 * A peer that never takes a byte: what the server wants to send piles up in the server, where it is counted. What it sends
 * is handled before `send` returns.
 */
import type { Link, LinkListener } from '../../protocol/link/link.ts'
import { command, join, str } from './bytes.ts'
import type { TestProducer } from './producer.ts'

const ADMITTED = Buffer.from('00000010ffffffff0000000100000000', 'hex')

export class DeafPeer implements Link {
  readonly #producer: TestProducer
  /** What waits to be taken, write by write. */
  readonly written: Uint8Array[] = []
  /** The same in bytes. */
  waiting = 0
  paused = false
  ended = false
  /** Nobody waits until it has taken the last words. */
  destroyed = false
  #listener: LinkListener | undefined

  constructor(producer: TestProducer) {
    this.#producer = producer
    producer.server.sessions.accept({
      link: this,
      transport: 'tcp',
      format: 'xdr',
      peer: { address: '127.0.0.1', loopback: true, encrypted: false },
    })
  }

  static async login(producer: TestProducer, user: string, password: string): Promise<DeafPeer> {
    const peer = new DeafPeer(producer)
    // The server's capabilities are a write of their own, so that `result` is that of AUTH.
    while (peer.written.length === 0) await producer.settle()
    peer.send(command.auth(1, 'password', join(str(user), str(password))))
    while (Buffer.from(peer.written.at(-1) ?? []).indexOf(ADMITTED) < 0) await producer.settle()
    return peer
  }

  /** The result of the last response, if that was written last. */
  get result(): number {
    return Buffer.from(this.written.at(-1) ?? []).readUInt32BE(16)
  }

  send(...frames: readonly Uint8Array[]): void {
    this.#listener?.data(join(...frames))
  }

  /** Sends one command; gives the result. */
  async ask(bytes: Uint8Array): Promise<number> {
    this.send(bytes)
    await this.#producer.settle()
    return this.result
  }

  /** Sends again and again what `chunk` gives, as long as the server reads; gives how often that was. */
  async flood(chunk: () => Uint8Array, most: number): Promise<number> {
    for (let sent = 0; sent < most; sent++) {
      if (this.paused || this.ended) return sent
      this.send(chunk())
      await this.#producer.settle()
    }
    return most
  }

  /** It sends no more. */
  finish(): void {
    this.#listener?.finished()
  }

  write(bytes: Uint8Array): void {
    this.waiting += bytes.length
    this.written.push(Uint8Array.from(bytes))
  }

  pause(): void {
    this.paused = true
  }

  resume(): void {
    this.paused = false
  }

  end(): void {
    this.ended = true
  }

  destroy(): void {
    this.ended = true
    this.destroyed = true
    this.#listener?.closed()
  }

  listen(listener: LinkListener): void {
    this.#listener = listener
  }
}
