/**
 * The layer `deflate` over any transport [MON 12]: raw RFC 1951, flushed behind every batch, so that nothing waits. What
 * has a secret in it stands between full flushes: how well it compresses tells nothing about what stood before.
 */
import { constants, createDeflateRaw, createInflateRaw, type DeflateRaw, type InflateRaw } from 'node:zlib'
import { MAX_FRAME_BYTES } from '../../protocol/bytes/framer.ts'
import { ConnectionError } from '../errors.ts'
import type { Layer, Transport, TransportListener } from '../transport.ts'

/** More than that is no honest stream. */
const MAX_RATIO = 100

export function deflatable(inner: Transport): Transport {
  return new DeflatableTransport(inner)
}

class DeflatableTransport implements Transport {
  readonly #inner: Transport
  #listener: TransportListener | undefined
  #deflate: DeflateRaw | undefined
  #inflate: InflateRaw | undefined
  #isPaused = false
  #taken = 0
  #given = 0
  #isClosed = false

  constructor(inner: Transport) {
    this.#inner = inner
  }

  get encrypted(): boolean {
    return this.#inner.encrypted
  }

  get loopback(): boolean {
    return this.#inner.loopback
  }

  get exporter(): Uint8Array | undefined {
    return this.#inner.exporter
  }

  open(listener: TransportListener): void {
    this.#listener = listener
    this.#inner.open({
      data: (bytes) => (this.#inflate ? this.#take(this.#inflate, bytes) : listener.data(bytes)),
      closed: (cause) => this.#closed(cause),
    })
  }

  send(bytes: Uint8Array, isSecret = false): void {
    if (!this.#deflate) {
      this.#inner.send(bytes)
      return
    }
    if (isSecret) this.#deflate.flush(constants.Z_FULL_FLUSH)
    this.#deflate.write(bytes)
    this.#deflate.flush(isSecret ? constants.Z_FULL_FLUSH : constants.Z_SYNC_FLUSH)
  }

  pause(): void {
    this.#isPaused = true
    this.#inflate?.pause()
    this.#inner.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#inflate?.resume()
    this.#inner.resume()
  }

  close(): void {
    if (!this.#deflate) this.#inner.close()
    else if (!this.#deflate.writableEnded) this.#deflate.once('end', () => this.#inner.close()).end()
    this.resume()
  }

  async wrap(layer: Layer, rest: Uint8Array): Promise<void> {
    if (layer !== 'deflate') return this.#inner.wrap?.(layer, rest)
    // The end of the connection is the end of the stream: there is no last block.
    const deflate = createDeflateRaw({ finishFlush: constants.Z_SYNC_FLUSH })
    deflate.on('data', (bytes: Uint8Array) => this.#inner.send(bytes))
    this.#deflate = deflate
    const inflate = createInflateRaw({ finishFlush: constants.Z_SYNC_FLUSH })
    inflate.on('data', (bytes: Uint8Array) => this.#give(bytes))
    inflate.on('end', () => this.#fail('the compressed stream came to an end'))
    inflate.on('error', ({ message }) => this.#fail(`the compressed stream is damaged (${message})`))
    this.#inflate = inflate
    if (rest.length > 0) this.#take(inflate, rest)
  }

  /** As much waits to be inflated as its buffer takes; what is inflated and not taken is one buffer too. */
  #take(inflate: InflateRaw, bytes: Uint8Array): void {
    this.#taken += bytes.length
    if (inflate.write(new Uint8Array(bytes))) return
    this.#inner.pause()
    inflate.once('drain', () => {
      if (!this.#isPaused) this.#inner.resume()
    })
  }

  #give(bytes: Uint8Array): void {
    this.#given += bytes.length
    if (this.#given > MAX_RATIO * this.#taken + MAX_FRAME_BYTES) {
      this.#fail(`its ${this.#taken} bytes inflate to more than ${MAX_RATIO} times as many`)
    } else this.#listener?.data(bytes)
  }

  #fail(why: string): void {
    this.#inflate?.destroy()
    this.#tell(new ConnectionError('PROTOCOL', `sent what cannot be inflated: ${why}`))
    this.#inner.close()
  }

  /** What came before the end is still to be inflated. */
  #closed(cause: Error | undefined): void {
    const inflate = this.#inflate
    const tell = () => this.#tell(cause)
    if (!inflate || inflate.destroyed) {
      tell()
      return
    }
    inflate.removeAllListeners('end').removeAllListeners('error')
    inflate.on('end', tell).on('error', tell).end()
  }

  #tell(cause: Error | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#listener?.closed(cause)
  }
}
