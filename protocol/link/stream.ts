/** A Link over a Node stream: a TCP socket, one under TLS, or one end of a `duplexPair` in tests. */
import type { Duplex } from 'node:stream'
import type { Link, LinkListener } from './link.ts'

/** The time that a peer has to close its side after `end`. */
const CLOSE_MS = 1000

export class StreamLink implements Link {
  readonly #stream: Duplex
  #listener: LinkListener | undefined

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
    // Bytes that still arrive are read and dropped: unread ones would turn the close into a reset that overtakes our last bytes.
    this.#stream.end(() => setTimeout(() => this.#stream.destroy(), CLOSE_MS).unref())
    this.#stream.resume()
  }

  destroy(): void {
    this.#stream.destroy()
  }

  listen(listener: LinkListener): void {
    const isFirst = this.#listener === undefined
    this.#listener = listener
    if (!isFirst) return
    this.#stream.on('data', this.#data)
    this.#stream.on('end', this.#finished)
    // An error is always followed by close, and its cause makes no difference here.
    this.#stream.on('error', this.#failed)
    this.#stream.on('close', this.#closed)
  }

  /** Hands the stream over to another reader and writer; this link hears nothing of it any more. */
  release(): Duplex {
    this.#stream.off('data', this.#data)
    this.#stream.off('end', this.#finished)
    this.#stream.off('error', this.#failed)
    this.#stream.off('close', this.#closed)
    return this.#stream
  }

  readonly #data = (chunk: Uint8Array): void => this.#listener?.data(chunk)
  readonly #finished = (): void => this.#listener?.finished()
  readonly #failed = (): void => void this.#stream.destroy()
  readonly #closed = (): void => this.#listener?.closed()
}
