/** A transport whose bytes are read at the pace of feeds: in turn with others, and not while too much waits to be stored. */
import type { Transport, TransportListener } from '../../../client/transport.ts'
import type { PacedStream, Pacer } from '../../kit/io/pacer.ts'
import { PassingTransport } from './passing-transport.ts'

export class PacedTransport extends PassingTransport {
  readonly #pacer: Pacer
  #isHeld = false
  #isPaced = false

  constructor(transport: Transport, pacer: Pacer) {
    super(transport)
    this.#pacer = pacer
  }

  open(listener: TransportListener): void {
    let closed: { readonly cause: Error | undefined } | undefined
    const taker = {
      push: (bytes: Uint8Array): void => listener.data(bytes),
      end: () => listener.closed(closed?.cause),
    }
    const stream: PacedStream = this.#pacer.feed(taker, {
      pause: () => this.#pace(true),
      resume: () => this.#pace(false),
      destroy: () => this.transport.close(),
    })
    this.transport.open({
      // The buffer belongs to the socket, and the bytes may wait.
      data: (bytes) => stream.push(new Uint8Array(bytes)),
      closed: (cause) => {
        closed = { cause }
        stream.end()
      },
    })
  }

  override pause(): void {
    this.#isHeld = true
    super.pause()
  }

  override resume(): void {
    this.#isHeld = false
    if (!this.#isPaced) super.resume()
  }

  #pace(isPaced: boolean): void {
    this.#isPaced = isPaced
    if (isPaced) this.transport.pause()
    else if (!this.#isHeld) this.transport.resume()
  }
}
