/**
 * Datagrams from a UDP socket. They cannot be paced: the kernel drops what is not read in time, and only its own table shows
 * how many. So the receive buffer is as large as the system permits, and `kernelDrops` reads that table.
 */
import { createSocket, type Socket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { readFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import type { Address } from '../../kernel/core/address.ts'
import type { Steps } from '../../kernel/core/fair-work.ts'
import { listenError } from '../../kernel/core/listen.ts'
import { DatagramFeed, type FeedTurns } from './pacer.ts'

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
  const { address, groupOn, key, rival, turns, packet, packetFailed, failed } = options
  const socket = await bind(address, groupOn).catch((error: unknown) => {
    throw listenError(isInUse(error) ? inUse(rival, error) : error, address, key)
  })
  try {
    socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES)
  } catch {
    // Then the socket keeps the default size of the system.
  }
  const bound = socket.address()
  let open = true
  const feed = new DatagramFeed(turns, ({ bytes, address: source, port }) => {
    try {
      const steps = packet(bytes, source, port)
      if (steps) return guarded(steps, (error) => packetFailed(error, source))
    } catch (error) {
      packetFailed(error, source)
    }
  })
  const close = (): Promise<void> => {
    if (!open) return Promise.resolve()
    open = false
    feed.end()
    return new Promise((resolve) => socket.close(resolve))
  }
  socket.on('message', (bytes, { address: source, port }) => feed.push({ bytes, address: source, port }))
  socket.on('error', (error) => {
    void close()
    failed(error)
  })
  return {
    address: { host: bound.address, port: bound.port },
    isEverywhere: bound.address === '0.0.0.0' || bound.address === '::',
    join(group, interfaceAddress, groupKey) {
      try {
        join(socket, group, interfaceAddress)
      } catch (error) {
        throw listenError(error, { host: group, port: bound.port }, groupKey)
      }
    },
    send(bytes, host, port) {
      const mapped = bound.family === 'IPv6' && isIPv4(host) ? `::ffff:${host}` : host
      if (open) socket.send(bytes, port, mapped, () => {})
    },
    kernelDrops() {
      const drops = open ? kernelDrops(bound.address, bound.port) : undefined
      return drops === undefined ? undefined : drops + feed.dropped
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

async function bind({ host, port }: Address, groupOn: string | undefined): Promise<Socket> {
  const { address, family } = await lookup(host)
  const socket = createSocket({ type: family === 6 ? 'udp6' : 'udp4', reuseAddr: groupOn !== undefined })
  return new Promise((resolve, reject) => {
    const failed = (error: unknown): void => {
      socket.close()
      reject(error)
    }
    socket.once('error', failed)
    // A socket that is bound to the group receives nothing else, but Windows does not support that.
    const isAny = groupOn !== undefined && process.platform === 'win32'
    socket.bind({ address: isAny ? '0.0.0.0' : address, port }, () => {
      socket.removeAllListeners('error')
      try {
        if (groupOn !== undefined) join(socket, address, groupOn)
        resolve(socket)
      } catch (error) {
        failed(error)
      }
    })
  })
}

function join(socket: Socket, group: string, groupOn: string): void {
  socket.addMembership(group, groupOn || undefined)
  if (groupOn !== '') socket.setMulticastInterface(groupOn)
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
