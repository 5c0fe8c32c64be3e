/**
 * The layer `deflate` [MON 12]: raw RFC 1951 both ways over another link. Each write is one batch that the peer can read
 * to its end. Inflating never runs ahead of the reader by more than the buffer of a stream (16 KiB), however much a few
 * bytes claim to hold; the streams of Node do not count that. The producer writes no secrets over this layer, so no full
 * flushes separate them from the rest.
 */
import type { TransformOptions } from 'node:stream'
import { constants, createDeflateRaw, createInflateRaw, type ZlibOptions } from 'node:zlib'
import type { Link, LinkListener } from '../link.ts'

const { Z_SYNC_FLUSH } = constants
/** How far inflating runs ahead, in bytes. Node's own default is 64 KiB from version 22 on. */
const AHEAD_BYTES = 16_384
/** 64 KiB of memory for each connection instead of 256; frames of like metrics repeat within 8 KiB. */
const SMALL = { windowBits: 13, memLevel: 6 }
const INFLATING: ZlibOptions & Pick<TransformOptions, 'highWaterMark'> = {
  flush: Z_SYNC_FLUSH,
  finishFlush: Z_SYNC_FLUSH,
  highWaterMark: AHEAD_BYTES,
}
/** The most that bytes may inflate to, as a multiple of their size [MON 12]; counted over the whole connection. */
const MAX_RATIO = 100
/** Bytes allowed beyond the ratio: a first batch of similar commands compresses well and is harmless. */
const FREE_BYTES = 1 << 16

export class DeflateLink implements Link {
  readonly #link: Link
  readonly #deflate = createDeflateRaw({ flush: Z_SYNC_FLUSH, ...SMALL })
  // A stream that is cut off is not an error: the peer may just close.
  readonly #inflate = createInflateRaw(INFLATING)
  #listener: LinkListener | undefined
  /** The deflated bytes of the current batch. */
  #batch: Uint8Array[] = []
  /** The callbacks of batches that have not been passed to the link below. */
  #waiting: ((() => void) | undefined)[] = []
  #inflated = 0
  #isPaused = false
  /** True while the buffer of the inflater is full. */
  #isFull = false
  /** True once nothing more is written. */
  #isEnded = false
  /** True once what arrives is dropped. */
  #isDeaf = false
  /** True once everything that arrived has been read. */
  #isRead = false
  /** True once the link below is closed. */
  #isGone = false
  #isClosed = false

  constructor(link: Link) {
    this.#link = link
    this.#deflate.on('data', (bytes: Uint8Array) => this.#batch.push(bytes))
    this.#deflate.on('error', () => this.destroy())
    this.#inflate.on('data', (bytes: Uint8Array) => this.#deliver(bytes))
    this.#inflate.on('drain', () => this.#drained())
    this.#inflate.on('end', () => this.#finished())
    this.#inflate.on('error', (error) => this.#break(`what arrived is not deflate data: ${error.message}`))
  }

  write(bytes: Uint8Array, written?: () => void): void {
    if (this.#isEnded) written?.()
    else this.#deflate.write(bytes, this.#afterDeflating(written))
  }

  /** Returns the function to call when a batch is deflated; the calls come in the order of the writes. */
  #afterDeflating(written: (() => void) | undefined): () => void {
    this.#waiting.push(written)
    return () => {
      if (this.#isGone) return
      this.#waiting.shift()
      this.#link.write(this.#take(), written)
    }
  }

  #take(): Uint8Array {
    const bytes = Buffer.concat(this.#batch)
    this.#batch = []
    return bytes
  }

  pause(): void {
    this.#isPaused = true
    this.#inflate.pause()
    if (this.#isGone) this.#close()
    else this.#link.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#inflate.resume()
    if (!this.#isFull) this.#link.resume()
  }

  end(code?: number, reason?: string): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#isDeaf = true
    this.#deflate.once('end', () => {
      this.#link.write(this.#take())
      this.#link.end(code, reason)
    })
    this.#deflate.end()
    this.#link.resume()
  }

  destroy(): void {
    this.#link.destroy()
  }

  listen(listener: LinkListener): void {
    const isFirst = this.#listener === undefined
    this.#listener = listener
    if (!isFirst) return
    this.#link.listen({
      data: (chunk) => this.#receive(chunk),
      text: (message) => this.#listener?.text?.(message),
      finished: () => this.#inflate.end(),
      broken: (detail) => this.#break(detail),
      closed: () => this.#gone(),
    })
  }

  #receive(chunk: Uint8Array): void {
    if (this.#isDeaf || this.#isRead) return
    // The chunk is valid until the end of the turn only, so it is copied.
    this.#isFull = !this.#inflate.write(new Uint8Array(chunk))
    if (this.#isFull) this.#link.pause()
  }

  #drained(): void {
    this.#isFull = false
    if (!this.#isPaused) this.#link.resume()
  }

  #deliver(bytes: Uint8Array): void {
    if (this.#isDeaf) return
    this.#inflated += bytes.length
    if (this.#inflated <= FREE_BYTES + MAX_RATIO * this.#inflate.bytesWritten) this.#listener?.data(bytes)
    else this.#break(`what arrived inflates to more than ${MAX_RATIO} times its size`)
  }

  #finished(): void {
    this.#isRead = true
    if (this.#isGone) this.#close()
    else if (!this.#isDeaf) this.#listener?.finished()
  }

  #break(detail: string): void {
    if (this.#isGone) this.#close()
    if (this.#isDeaf) return
    this.#isDeaf = true
    this.#inflate.destroy()
    if (this.#listener?.broken) this.#listener.broken(detail)
    else this.destroy()
  }

  /** Whatever arrived before the link closed is still read: the peer may have sent commands and closed. */
  #gone(): void {
    this.#isGone = true
    this.#isEnded = true
    this.#deflate.destroy()
    const waiting = this.#waiting
    this.#waiting = []
    for (const written of waiting) written?.()
    if (this.#isPaused || this.#isDeaf || this.#isRead) this.#close()
    else this.#inflate.end()
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#inflate.destroy()
    this.#listener?.closed()
  }
}
