/**
 * Feeds 1, 2, 3 … to the server, in one stream for each of its lives, and no number twice: so the server may be killed
 * only when everything that was fed is stored.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { beginning, following } from './numbers.ts'

export class Feeder {
  readonly #port: number
  #socket: Socket | undefined
  /** The last number. */
  fed = 0

  constructor(port: number) {
    this.#port = port
  }

  /** Connects, and feeds one number. */
  async open(): Promise<void> {
    const socket = connect({ host: '127.0.0.1', port: this.#port })
    this.#socket = socket
    await once(socket, 'connect')
    // A killed server resets it.
    socket.on('error', () => {})
    await this.#write(beginning(this.fed + 1), 1)
  }

  /** The next `count` numbers; settles when the server may be given more. */
  async feed(count: number): Promise<void> {
    if (count > 0) await this.#write(following(count), count)
  }

  close(): void {
    this.#socket?.destroy()
  }

  async #write(bytes: Uint8Array, count: number): Promise<void> {
    const socket = this.#socket
    if (socket === undefined) return
    this.fed += count
    if (!socket.write(bytes)) await once(socket, 'drain')
  }
}
