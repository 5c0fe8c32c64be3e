/**
 * What is called of Linux's C library, through koffi: sockets for datagrams, of which many are received with one call, and epoll,
 * which waits for all of them at once. Structures are those of 64-bit systems with little endian, which glibc and musl share.
 */
import { getSystemErrorName } from 'node:util'

/** Numbers of x64 and arm64, from <sys/socket.h>, <netinet/in.h>, <sys/epoll.h> and <sys/eventfd.h>. */
export const AF_INET = 2
export const AF_INET6 = 10
export const SOCK_DGRAM = 2
/** SOCK_CLOEXEC, EPOLL_CLOEXEC and EFD_CLOEXEC. */
export const CLOEXEC = 0o2000000
/** SOCK_NONBLOCK and EFD_NONBLOCK. */
export const NONBLOCK = 0o4000
export const MSG_TRUNC = 0x20
export const MSG_DONTWAIT = 0x40
const EPOLLIN = 1
export const EPOLL_CTL_ADD = 1
export const EPOLL_CTL_DEL = 2
export const EPOLL_CTL_MOD = 3
export const SOCKET_OPTION = { level: 1, reuseAddress: 2, receiveBuffer: 8 } as const
export const IP_OPTION = { level: 0, multicastInterface: 32, join: 35 } as const
export const IPV6_OPTION = { level: 41, multicastInterface: 17, join: 20 } as const

/** Bytes of `struct sockaddr_in6`, the longest address here. */
export const ADDRESS_BYTES = 28

/** `struct epoll_event` is packed on x64 alone: two words, and the two of its data. */
export const EVENT_WORDS = process.arch === 'x64' ? 3 : 4
export const EVENT_DATA = process.arch === 'x64' ? 1 : 2

/** An event of a socket in its slot: that something has come, or nothing at all. */
export function epollEvent(fd: number, slot: number, isOn: boolean): Uint32Array {
  const event = new Uint32Array(EVENT_WORDS)
  event[0] = isOn ? EPOLLIN : 0
  event[EVENT_DATA] = fd
  event[EVENT_DATA + 1] = slot
  return event
}

/** `struct mmsghdr`: a `msghdr` and the length of the datagram. Byte offsets. */
export const MESSAGE = { bytes: 64, name: 0, nameLength: 8, parts: 16, partCount: 24, flags: 48, length: 56 } as const
/** `struct iovec`. */
export const IO_VECTOR = { bytes: 16, base: 0, length: 8 } as const

/** Each gives -1 if it fails, and `errno` says why. */
export interface Libc {
  readonly socket: (family: number, type: number, protocol: number) => number
  readonly bind: (fd: number, address: Uint8Array, length: number) => number
  readonly getsockname: (fd: number, address: Uint8Array, length: Uint32Array) => number
  readonly setsockopt: (fd: number, level: number, option: number, value: Uint8Array, length: number) => number
  readonly sendto: (
    fd: number,
    bytes: Uint8Array,
    length: number,
    flags: number,
    address: Uint8Array,
    addressLength: number,
  ) => number
  readonly recvmmsg: (fd: number, messages: Uint8Array, count: number, flags: number, timeout: null) => number
  readonly epoll_create1: (flags: number) => number
  readonly epoll_ctl: (epoll: number, operation: number, fd: number, event: Uint32Array | null) => number
  readonly epoll_wait: (epoll: number, events: Uint32Array, most: number, timeoutMs: number) => number
  readonly eventfd: (initial: number, flags: number) => number
  readonly write: (fd: number, bytes: Uint8Array, length: number) => number
  readonly read: (fd: number, bytes: Uint8Array, length: number) => number
  readonly close: (fd: number) => number
  /** 0 if there is no such interface. */
  readonly if_nametoindex: (name: string) => number
  /** Writes the name, which ends with a 0, into at least 16 bytes. */
  readonly if_indextoname: (index: number, name: Uint8Array) => unknown
  readonly errno: () => number
  /** Where the bytes are. The memory has to be held as long as the address is used. */
  readonly addressOf: (bytes: Uint8Array) => bigint
}

const PROTOTYPES: Readonly<Record<Exclude<keyof Libc, 'errno' | 'addressOf'>, string>> = {
  socket: 'int socket(int, int, int)',
  bind: 'int bind(int, void*, unsigned int)',
  getsockname: 'int getsockname(int, void*, void*)',
  setsockopt: 'int setsockopt(int, int, int, void*, unsigned int)',
  sendto: 'intptr_t sendto(int, void*, size_t, int, void*, unsigned int)',
  recvmmsg: 'int recvmmsg(int, void*, unsigned int, int, void*)',
  epoll_create1: 'int epoll_create1(int)',
  epoll_ctl: 'int epoll_ctl(int, int, int, void*)',
  epoll_wait: 'int epoll_wait(int, void*, int, int)',
  eventfd: 'int eventfd(unsigned int, int)',
  write: 'intptr_t write(int, void*, size_t)',
  read: 'intptr_t read(int, void*, size_t)',
  close: 'int close(int)',
  if_nametoindex: 'unsigned int if_nametoindex(const char*)',
  if_indextoname: 'void* if_indextoname(unsigned int, void*)',
}

/** Why it cannot be called here, for people, in place of it. */
export type Unavailable = { readonly unavailable: string }

/** koffi is an optional dependency: it may be missing, or may have no binary for this system. */
export async function loadLibc(): Promise<Libc | Unavailable> {
  const { platform, arch } = process
  if (platform !== 'linux' || !['x64', 'arm64'].includes(arch)) return { unavailable: `this is ${platform} on ${arch}` }
  try {
    const { default: koffi } = await import('koffi')
    const library = koffi.load(null)
    const functions = Object.entries(PROTOTYPES).map(([name, prototype]) => [name, library.func(prototype)])
    const others = { errno: () => koffi.errno(), addressOf: (bytes: Uint8Array) => koffi.address(bytes) }
    return { ...Object.fromEntries(functions), ...others }
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : String(error)
    return { unavailable: `koffi cannot be loaded: ${reason}` }
  }
}

/** The error that the last call has left, as Node would have it. */
export function lastError(libc: Pick<Libc, 'errno'>, call: keyof Libc): NodeJS.ErrnoException {
  return errorOf(libc.errno(), call)
}

export function errorOf(errno: number, call: keyof Libc): NodeJS.ErrnoException {
  const code = getSystemErrorName(-errno)
  return Object.assign(new Error(`${call}: ${code}`), { code, errno: -errno, syscall: call })
}
