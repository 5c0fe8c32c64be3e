/**
 * Feeds 1, 2, 3 … to the server as an smon stream (docs/protocol/smon.md), a new one for each run of the server, and no
 * number twice: the server may be killed only when everything that was fed is stored.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const NAME = 'demo.number'
export const METRIC = `smon.${NAME}`

/** The same token as before, with a value one greater. */
const NEXT = Buffer.from([0x00, 0x01])

export class NumberSource {
  readonly #port: number
  #socket: Socket | undefined
  /** The last number that was fed. */
  fed = 0

  constructor(port: number) {
    this.#port = port
  }

  /** Connects and feeds one number. */
  async open(): Promise<void> {
    const socket = connect({ host: '127.0.0.1', port: this.#port })
    this.#socket = socket
    await once(socket, 'connect')
    // A killed server resets the connection.
    socket.on('error', () => {})
    await this.#write(streamStart(this.fed + 1), 1)
  }

  /** Feeds the next `count` numbers; resolves when the server can take more. */
  async feed(count: number): Promise<void> {
    if (count > 0) await this.#write(streamContinuation(count), count)
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

/** Defines token 1 of type `u` with the value `first` (32 bits). */
export function streamStart(first: number): Uint8Array {
  const value = Buffer.alloc(4)
  value.writeUInt32BE(first)
  return Buffer.concat([
    Buffer.from([0x00, 1 + NAME.length]),
    Buffer.from(`u${NAME}`),
    Buffer.from([0x01, 0xf3]),
    value,
  ])
}

/** Encodes the next `count` numbers. */
export function streamContinuation(count: number): Uint8Array {
  return Buffer.alloc(NEXT.length * count, NEXT)
}
