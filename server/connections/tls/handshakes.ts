/**
 * Handshakes with one certificate, over streams that are open already. A server of Node's leads one at a time, since it
 * does not tell whose handshake is done; those that are free are used again, for making one takes as long as a handshake.
 */
import type { Duplex } from 'node:stream'
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls'

const MAX_FREE = 64

export class Handshakes {
  readonly #options: TlsOptions
  readonly #free: Server[] = []

  constructor(options: TlsOptions) {
    this.#options = options
  }

  /** Calls `done` when the peer and we have agreed; destroys `raw` if we do not. */
  begin(raw: Duplex, done: (socket: TLSSocket) => void): void {
    const server = this.#free.pop() ?? createServer(this.#options)
    const over = (): void => {
      server.off('secureConnection', succeeded)
      server.off('tlsClientError', failed)
      if (this.#free.length < MAX_FREE) this.#free.push(server)
    }
    const succeeded = (socket: TLSSocket): void => {
      over()
      done(socket)
    }
    const failed = (): void => {
      over()
      raw.destroy()
    }
    server.on('secureConnection', succeeded)
    server.on('tlsClientError', failed)
    server.emit('connection', raw)
  }
}
