/**
 * Ports of loopback for servers that have to be named before they listen, and that come back to their ports after a kill.
 *
 * A port that is only looked at may be gone when it is used. This one is held by a connection of this process to itself, whose
 * local port it is. The kernel gives a port that a connection has to nobody who asks for any, and lets a server that names it
 * listen on it beside the connection, as it does when a server comes back whose connections have not ended: servers of Node and
 * of Go ask for that (SO_REUSEADDR).
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

const HOST = '127.0.0.1'

export class ReservedPort {
  readonly number: number
  readonly #ends: readonly Socket[]

  /** For TCP. Ports that are held at the same time differ. */
  static async reserve(): Promise<ReservedPort> {
    const listener = createServer().listen(0, HOST)
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    // Naming the address is what makes the kernel choose a port for this socket alone, and not one for its destination.
    const near = connect({ host: HOST, port, localAddress: HOST })
    const [[far]] = await Promise.all([once(listener, 'connection'), once(near, 'connect')])
    listener.close()
    return new ReservedPort(near, far as Socket)
  }

  private constructor(near: Socket, far: Socket) {
    this.number = near.localPort as number
    this.#ends = [near, far]
    for (const end of this.#ends) {
      end.unref()
      end.on('error', () => {})
    }
  }

  release(): void {
    for (const end of this.#ends) end.destroy()
  }
}
