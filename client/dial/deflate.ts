/**
 * The layer `deflate` over any transport [MON 12]: raw RFC 1951, flushed after every batch so that nothing waits. Data with
 * a secret is sent between full flushes: how well it compresses reveals nothing about the data before it.
 */
import { constants, createDeflateRaw, createInflateRaw, type DeflateRaw, type InflateRaw } from 'node:zlib'
import { MAX_FRAME_BYTES } from '../../protocol/bytes/framer.ts'
import { ConnectionError } from '../errors.ts'
import type { Layer, Transport, TransportListener } from '../transport.ts'

/** Only a malicious stream compresses better than this. */
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
    // The stream ends with the connection: there is no last block.
    const deflate = createDeflateRaw({ finishFlush: constants.Z_SYNC_FLUSH })
    deflate.on('data', (bytes: Uint8Array) => this.#inner.send(bytes))
    this.#deflate = deflate
    const inflate = createInflateRaw({ finishFlush: constants.Z_SYNC_FLUSH })
    inflate.on('data', (bytes: Uint8Array) => this.#give(bytes))
    inflate.on('end', () => this.#fail('the compressed stream has ended'))
    inflate.on('error', ({ message }) => this.#fail(`the compressed stream is damaged (${message})`))
    this.#inflate = inflate
    if (rest.length > 0) this.#take(inflate, rest)
  }

  /** Memory is bounded by two buffers of zlib: for what waits to be inflated, and for what was inflated and not read. */
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
      this.#fail(`${this.#taken} bytes inflate to more than ${MAX_RATIO} times as many`)
    } else this.#listener?.data(bytes)
  }

  #fail(why: string): void {
    this.#inflate?.destroy()
    this.#report(new ConnectionError('PROTOCOL', `the other end sent data that cannot be inflated: ${why}`))
    this.#inner.close()
  }

  /** Data that arrived before the end is still inflated. */
  #closed(cause: Error | undefined): void {
    const inflate = this.#inflate
    const report = () => this.#report(cause)
    if (!inflate || inflate.destroyed) {
      report()
      return
    }
    inflate.removeAllListeners('end').removeAllListeners('error')
    inflate.on('end', report).on('error', report).end()
  }

  #report(cause: Error | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#listener?.closed(cause)
  }
}
