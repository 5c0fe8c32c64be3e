/**
 * One `u` value of an smon stream over TCP, as small as it gets: 00 01 is the same token again, its value plus 1. By hand: an
 * encoder of its own is also a check of the decoder it feeds.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const PAIR = Buffer.from([0x00, 0x01])
const MOST_PAIRS = 1 << 15
const PAIRS = Buffer.alloc(MOST_PAIRS * PAIR.length, PAIR)

export class SmonFeed {
  readonly #socket: Socket
  sent = 0

  private constructor(port: number) {
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true })
  }

  /** The metric is defined, with its first value, at once: before somebody collects it. */
  static async open(port: number, metric: string): Promise<SmonFeed> {
    const feed = new SmonFeed(port)
    await once(feed.#socket, 'connect')
    // A server that ends first is part of some runs; one that should not have is noticed elsewhere.
    feed.#socket.on('error', () => {})
    feed.#socket.write(SmonFeed.definition(metric))
    return feed
  }

  /** What a feed begins with. */
  static definition(metric: string): Uint8Array {
    const name = Buffer.from(`u${metric}`)
    return Buffer.concat([Buffer.from([0x00, name.length]), name, Buffer.from([0x01, 0x00])])
  }

  /** What the server calls it. */
  get source(): string {
    return `127.0.0.1:${this.#socket.localPort}`
  }

  /** Resolves when there is room for more. */
  async send(count: number): Promise<void> {
    for (let left = count; left > 0; left -= MOST_PAIRS) {
      const taken = this.#socket.write(PAIRS.subarray(0, Math.min(left, MOST_PAIRS) * PAIR.length))
      if (!taken) await once(this.#socket, 'drain')
    }
    this.sent += count
  }

  close(): void {
    this.#socket.destroy()
  }
}
