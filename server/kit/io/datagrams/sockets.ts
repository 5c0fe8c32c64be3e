/** Sockets for datagrams, made by the C library: what `node:dgram` does for its own. */
import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Address } from '../../../kernel/core/address.ts'
import { SenderNames } from './batch.ts'
import type { SocketOptions } from './feed.ts'
import {
  ADDRESS_BYTES,
  AF_INET,
  AF_INET6,
  CLOEXEC,
  IP_OPTION,
  IPV6_OPTION,
  type Libc,
  lastError,
  MSG_DONTWAIT,
  NONBLOCK,
  SOCK_DGRAM,
  SOCKET_OPTION,
} from './libc.ts'

/** Bytes of `struct sockaddr_in`. */
const IPV4_BYTES = 16
const NAME_BYTES = 16

const latin1 = new TextDecoder('latin1')

/** Gives its descriptor. Throws what the system says if it cannot be bound. */
export function boundSocket(libc: Libc, { address: { host, port }, groupOn, bufferBytes }: SocketOptions): number {
  const family = isIPv4(host) ? AF_INET : AF_INET6
  const fd = libc.socket(family, SOCK_DGRAM | CLOEXEC | NONBLOCK, 0)
  if (fd < 0) throw lastError(libc, 'socket')
  try {
    const { level, reuseAddress, receiveBuffer } = SOCKET_OPTION
    if (groupOn !== undefined) setOption(libc, fd, level, reuseAddress, word(1))
    const address = socketAddress(libc, host, port, family)
    if (libc.bind(fd, address, address.length) < 0) throw lastError(libc, 'bind')
    // Where it may not be so large the system gives what it allows.
    libc.setsockopt(fd, level, receiveBuffer, word(bufferBytes), 4)
    if (groupOn !== undefined) joinGroup(libc, fd, host, groupOn)
    return fd
  } catch (error) {
    libc.close(fd)
    throw error
  }
}

/** The address that a socket is bound to. */
export function addressOfSocket(libc: Libc, fd: number): Address {
  const bytes = new Uint8Array(ADDRESS_BYTES)
  if (libc.getsockname(fd, bytes, new Uint32Array([ADDRESS_BYTES])) < 0) throw lastError(libc, 'getsockname')
  const view = new DataView(bytes.buffer)
  return { host: new SenderNames((index) => zoneOf(libc, index)).of(view, 0), port: view.getUint16(2) }
}

/** Has a socket receive what is sent to a group, on the interface with an address, or on one that the system chooses if it is ''. */
export function joinGroup(libc: Libc, fd: number, group: string, interfaceAddress: string): void {
  if (isIPv4(group)) {
    const on = interfaceAddress === '' ? new Uint8Array(4) : bytesOf(interfaceAddress)
    setOption(libc, fd, IP_OPTION.level, IP_OPTION.join, Uint8Array.of(...bytesOf(group), ...on))
    if (interfaceAddress !== '') setOption(libc, fd, IP_OPTION.level, IP_OPTION.multicastInterface, on)
    return
  }
  const index = word(indexOf(libc, interfaceAddress))
  setOption(libc, fd, IPV6_OPTION.level, IPV6_OPTION.join, Uint8Array.of(...bytesOf(group), ...index))
  if (interfaceAddress !== '') setOption(libc, fd, IPV6_OPTION.level, IPV6_OPTION.multicastInterface, index)
}

/** Sends a datagram, if the system takes it at once. `host` is an IP address of the family of the socket. */
export function sendFrom(libc: Libc, fd: number, packet: Uint8Array, { host, port }: Address): void {
  const address = socketAddress(libc, host, port, isIPv4(host) ? AF_INET : AF_INET6)
  libc.sendto(fd, packet, packet.length, MSG_DONTWAIT, address, address.length)
}

/** The name of a network interface. */
export function zoneOf(libc: Libc, index: number): string | undefined {
  const name = new Uint8Array(NAME_BYTES)
  return libc.if_indextoname(index, name) === null ? undefined : latin1.decode(name.subarray(0, name.indexOf(0)))
}

function setOption(libc: Libc, fd: number, level: number, option: number, value: Uint8Array): void {
  if (libc.setsockopt(fd, level, option, value, value.length) < 0) throw lastError(libc, 'setsockopt')
}

function socketAddress(libc: Libc, host: string, port: number, family: number): Uint8Array {
  const [ip = '', zone = ''] = host.split('%')
  const bytes = new Uint8Array(family === AF_INET ? IPV4_BYTES : ADDRESS_BYTES)
  const view = new DataView(bytes.buffer)
  view.setUint16(0, family, true)
  view.setUint16(2, port)
  bytes.set(bytesOf(ip), family === AF_INET ? 4 : 8)
  if (family === AF_INET6 && zone !== '') view.setUint32(24, libc.if_nametoindex(zone), true)
  return bytes
}

/** Of an interface that is spelled `::%eth0`, as `node:dgram` wants it; 0 for one that the system chooses. */
function indexOf(libc: Libc, interfaceAddress: string): number {
  const [, zone = ''] = interfaceAddress.split('%')
  return zone === '' ? 0 : libc.if_nametoindex(zone)
}

function bytesOf(ip: string): Uint8Array {
  return Uint8Array.from(ipaddr.parse(ip).toByteArray())
}

function word(value: number): Uint8Array {
  return new Uint8Array(new Uint32Array([value]).buffer)
}
