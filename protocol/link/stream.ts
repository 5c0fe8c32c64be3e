/** A Link over a Node stream: a TCP socket, or one end of a `duplexPair` in tests. */
import type { Duplex } from 'node:stream'
import type { Link, LinkListener } from './link.ts'

/** Between `end` and a peer that does not close its side. */
const CLOSE_MS = 1000

export class StreamLink implements Link {
  readonly #stream: Duplex

  constructor(stream: Duplex) {
    this.#stream = stream
  }

  write(bytes: Uint8Array, written?: () => void): void {
    if (this.#stream.writable) this.#stream.write(bytes, written && (() => written()))
    else written?.()
  }

  pause(): void {
    this.#stream.pause()
  }

  resume(): void {
    this.#stream.resume()
  }

  end(): void {
    // What the peer still sends is read and thrown away: unread bytes would turn the close into a reset that overtakes our last words.
    this.#stream.end(() => setTimeout(() => this.#stream.destroy(), CLOSE_MS).unref())
    this.#stream.resume()
  }

  destroy(): void {
    this.#stream.destroy()
  }

  listen(listener: LinkListener): void {
    this.#stream.on('data', (chunk: Uint8Array) => listener.data(chunk))
    this.#stream.on('end', () => listener.finished())
    // An error is always followed by close; which one it was concerns nobody.
    this.#stream.on('error', () => this.#stream.destroy())
    this.#stream.on('close', () => listener.closed())
  }
}
