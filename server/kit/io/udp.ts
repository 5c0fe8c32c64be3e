/**
 * Datagrams from a UDP socket. They cannot be paced: the kernel drops what is not read in time, and only its own table shows
 * how many. So the receive buffer is as large as the system permits, and `kernelDrops` reads that table.
 */
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import type { Address } from '../../kernel/core/address.ts'
import type { Steps } from '../../kernel/core/fair-work.ts'
import { listenError } from '../../kernel/core/listen.ts'
import { DatagramFeed, type DatagramSocket, type SocketOptions } from './datagrams/feed.ts'
import { bindNodeSocket } from './datagrams/node-socket.ts'
import type { DatagramThread } from './datagrams/thread.ts'
import type { FeedTurns } from './pacer.ts'

/** Linux silently limits it to `net.core.rmem_max`. */
const RECEIVE_BUFFER_BYTES = 8 * 1024 * 1024

export interface UdpOptions {
  readonly address: Address
  /** If set, `address` is a multicast group to join on the interface with this address, or on one that the system chooses if ''. */
  readonly groupOn?: string
  /** The key of the configuration, named in the error if the address cannot be bound. */
  readonly key: string
  /** The program that usually uses this port, for the error. */
  readonly rival: string
  readonly turns: FeedTurns
  /** What receives many at once; undefined where that is not possible. */
  readonly thread: Pick<DatagramThread, 'bind'> | undefined
  /** Returns the steps that are left to do, if a datagram asks for much. */
  readonly packet: (bytes: Uint8Array, source: string, port: number) => Steps<void> | undefined | void
  /** Takes what `packet`, or one of its steps, has thrown for a datagram, which is dropped. */
  readonly packetFailed: (error: unknown, source: string) => void
  /** Called if the socket fails after it was bound; it is already closed. */
  readonly failed: (error: Error) => void
}

export interface UdpListening {
  readonly address: Address
  /**
   * Datagrams that came faster than they were processed, and were dropped since the socket was bound: by the kernel, or by the
   * queue after it. Undefined if the kernel does not report that (not Linux).
   */
  kernelDrops(): number | undefined
  /** Whether it is bound to all addresses. Then it also receives datagrams to a group, and no other socket may be bound to the group. */
  readonly isEverywhere: boolean
  /** Joins a group, like `groupOn`. Throws a ListenError that names `key`. */
  join(group: string, groupOn: string, key: string): void
  /** Sends a datagram from the same socket. Errors are ignored: UDP guarantees nothing. */
  send(packet: Uint8Array, host: string, port: number): void
  close(): Promise<void>
}

/** Binds a socket. Its port is never shared with another socket, except that of a group. Rejects with ListenError. */
export async function listenUdp(options: UdpOptions): Promise<UdpListening> {
  const { address, groupOn, key, rival, turns, thread, packet, packetFailed, failed } = options
  const feed = new DatagramFeed(turns, ({ bytes, address: source, port }) => {
    try {
      const steps = packet(bytes, source, port)
      if (steps) return guarded(steps, (error) => packetFailed(error, source))
    } catch (error) {
      packetFailed(error, source)
    }
  })
  let open = true
  const close = async (): Promise<void> => {
    if (!open) return
    open = false
    await socket.close()
  }
  let socket: DatagramSocket
  try {
    const { address: host } = await lookup(address.host)
    const socketOptions: SocketOptions = {
      address: { host, port: address.port },
      groupOn,
      bufferBytes: RECEIVE_BUFFER_BYTES,
      received: () => feed.received(socket),
      failed(error) {
        void close()
        failed(error)
      },
    }
    socket = thread?.bind(socketOptions) ?? (await bindNodeSocket(socketOptions))
  } catch (error) {
    throw listenError(isInUse(error) ? inUse(rival, error) : error, address, key)
  }
  const { address: bound } = socket
  return {
    address: bound,
    isEverywhere: bound.host === '0.0.0.0' || bound.host === '::',
    join(group, interfaceAddress, groupKey) {
      try {
        socket.join(group, interfaceAddress)
      } catch (error) {
        throw listenError(error, { host: group, port: bound.port }, groupKey)
      }
    },
    send: (bytes, host, port) => socket.send(bytes, host, port),
    kernelDrops() {
      const drops = open ? kernelDrops(bound.host, bound.port) : undefined
      return drops === undefined ? undefined : drops + socket.dropped
    },
    close,
  }
}

function* guarded(steps: Steps<void>, failed: (error: unknown) => void): Steps<void> {
  try {
    yield* steps
  } catch (error) {
    failed(error)
  }
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
}

function inUse(rival: string, cause: unknown): Error {
  return new Error(`it is in use, probably by ${rival}: stop that program or choose another port`, { cause })
}

function kernelDrops(address: string, port: number): number | undefined {
  try {
    return dropsIn(readFileSync(address.includes(':') ? '/proc/net/udp6' : '/proc/net/udp', 'latin1'), address, port)
  } catch {
    return undefined
  }
}

/**
 * The last column of /proc/net/udp or udp6, by the local address in the second: hexadecimal, each 4 bytes of it in the
 * byte order of the machine. Over IPv6 only the port is compared. Returns undefined if there is no such line.
 */
export function dropsIn(table: string, address: string, port: number): number | undefined {
  const ending = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const local = address.includes(':') ? ending : ipv4Word(address) + ending
  const line = table.split('\n').find((candidate) => candidate.trim().split(/\s+/)[1]?.endsWith(local))
  const drops = line?.trim().split(/\s+/).at(-1)
  return drops === undefined ? undefined : Number(drops)
}

function ipv4Word(address: string): string {
  const word = new Uint32Array(Uint8Array.from(address.split('.'), Number).buffer)[0] as number
  return word.toString(16).toUpperCase().padStart(8, '0')
}
