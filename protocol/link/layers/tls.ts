/**
 * The layer `tls` [MON 12] at the producer's end: a link over a stream that is under TLS once the handshake is done.
 * Until then nothing can be sent: writes are dropped, and `end` closes at once.
 */
import type { Duplex } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import type { Link, LinkListener } from '../link.ts'
import { StreamLink } from '../stream.ts'

/** Performs a handshake over `raw` and calls `done` once it has succeeded; destroys `raw` if it fails. */
export type Handshake = (raw: Duplex, done: (socket: TLSSocket) => void) => void

export class TlsLink implements Link {
  readonly #raw: Duplex
  #secured: StreamLink | undefined
  #listener: LinkListener | undefined
  #isPaused = false

  /** `raw` may hold bytes that arrived already. `secured` is called before anything is read. */
  constructor(raw: Duplex, handshake: Handshake, secured: (socket: TLSSocket) => void) {
    this.#raw = raw
    raw.on('error', () => raw.destroy())
    raw.once('close', () => {
      if (this.#secured === undefined) this.#listener?.closed()
    })
    handshake(raw, (socket) => {
      if (raw.destroyed) return
      this.#secured = new StreamLink(socket)
      if (this.#listener) this.#secured.listen(this.#listener)
      if (this.#isPaused) this.#secured.pause()
      secured(socket)
    })
  }

  write(bytes: Uint8Array, written?: () => void): void {
    if (this.#secured) this.#secured.write(bytes, written)
    else written?.()
  }

  pause(): void {
    this.#isPaused = true
    this.#secured?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#secured?.resume()
  }

  end(): void {
    if (this.#secured) this.#secured.end()
    else this.#raw.destroy()
  }

  destroy(): void {
    if (this.#secured) this.#secured.destroy()
    else this.#raw.destroy()
  }

  listen(listener: LinkListener): void {
    this.#listener = listener
    this.#secured?.listen(listener)
  }
}
