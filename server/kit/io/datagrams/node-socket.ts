/** A socket of `node:dgram`, which receives one datagram after the other: where they cannot be received many at once. */
import { createSocket, type Socket } from 'node:dgram'
import { isIPv4 } from 'node:net'
import type { Address } from '../../../kernel/core/address.ts'
import type { Datagram } from './batch.ts'
import type { DatagramSocket, SocketOptions } from './feed.ts'

/** Datagrams that may wait here: more than this, and they are dropped as the kernel would. */
const MOST_WAITING = 4096
const MOST_WAITING_BYTES = 4 << 20

/** Rejects with what the system says. */
export async function bindNodeSocket(options: SocketOptions): Promise<NodeSocket> {
  const { address, groupOn, bufferBytes } = options
  const type = isIPv4(address.host) ? 'udp4' : 'udp6'
  const socket = createSocket({ type, reuseAddr: groupOn !== undefined })
  await new Promise<void>((resolve, reject) => {
    const failed = (error: unknown): void => {
      socket.close()
      reject(error)
    }
    socket.once('error', failed)
    // A socket that is bound to the group receives nothing else, but Windows does not support that.
    const isAny = groupOn !== undefined && process.platform === 'win32'
    socket.bind({ address: isAny ? '0.0.0.0' : address.host, port: address.port }, () => {
      socket.removeAllListeners('error')
      try {
        if (groupOn !== undefined) join(socket, address.host, groupOn)
        resolve()
      } catch (error) {
        failed(error)
      }
    })
  })
  try {
    socket.setRecvBufferSize(bufferBytes)
  } catch {
    // Then the socket keeps the default size of the system.
  }
  return new NodeSocket(socket, options)
}

export class NodeSocket implements DatagramSocket {
  readonly address: Address
  dropped = 0
  readonly #socket: Socket
  #waiting: Datagram[] = []
  /** The index of the next one, and the bytes of those that wait. */
  #next = 0
  #bytes = 0
  #isOpen = true

  /** The socket is bound. */
  constructor(socket: Socket, { received, failed }: Pick<SocketOptions, 'received' | 'failed'>) {
    const { address: host, port } = socket.address()
    this.#socket = socket
    this.address = { host, port }
    socket.on('message', (bytes, { address, port }) => {
      if (this.#push({ bytes, address, port })) received()
    })
    socket.on('error', failed)
  }

  #push(datagram: Datagram): boolean {
    if (!this.#isOpen) return false
    if (this.#waiting.length - this.#next >= MOST_WAITING || this.#bytes > MOST_WAITING_BYTES) {
      this.dropped++
      return false
    }
    this.#waiting.push(datagram)
    this.#bytes += datagram.bytes.length
    return true
  }

  get isEmpty(): boolean {
    return this.#next === this.#waiting.length
  }

  next(): Datagram | undefined {
    const datagram = this.#waiting[this.#next]
    if (datagram === undefined) return undefined
    this.#bytes -= datagram.bytes.length
    // While more keeps coming it is never empty: what was taken must not stay in memory.
    if (++this.#next >= MOST_WAITING || this.isEmpty) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    return datagram
  }

  join(group: string, groupOn: string): void {
    join(this.#socket, group, groupOn)
  }

  send(packet: Uint8Array, host: string, port: number): void {
    const mapped = this.address.host.includes(':') && isIPv4(host) ? `::ffff:${host}` : host
    if (this.#isOpen) this.#socket.send(packet, port, mapped, () => {})
  }

  close(): Promise<void> {
    this.#isOpen = false
    this.#waiting = []
    this.#next = 0
    return new Promise((resolve) => this.#socket.close(() => resolve()))
  }
}

function join(socket: Socket, group: string, groupOn: string): void {
  socket.addMembership(group, groupOn || undefined)
  if (groupOn !== '') socket.setMulticastInterface(groupOn)
}
