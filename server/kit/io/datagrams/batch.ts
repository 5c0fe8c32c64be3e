/**
 * Datagrams on their way from the thread that receives them: a head for each, then the bytes of all. A head has the length of the
 * datagram, then the address of its sender as the kernel writes it, a `struct sockaddr_in` or `sockaddr_in6`.
 */
import ipaddr from 'ipaddr.js'
import { ADDRESS_BYTES, AF_INET } from './libc.ts'

export const HEAD_BYTES = 4 + ADDRESS_BYTES
/** What holding a datagram costs besides its bytes; an estimate. */
const HELD_BYTES = 1_024
/** Of senders; more than this, and they are made anew. */
const MOST_NAMES = 4_096
/** Places in the address. */
const PORT = 2
const IPV4 = 4
const IPV6 = 8
const SCOPE = 24

/** Of one socket, in the order in which they came. */
export interface DatagramBatch {
  readonly count: number
  readonly bytes: Uint8Array
}

/** Of a batch that waits: counts towards the bound of its socket. */
export function waitingBytes({ count, bytes }: DatagramBatch): number {
  return bytes.length + count * HELD_BYTES
}

/** One datagram, and who has sent it. */
export interface Datagram {
  readonly bytes: Uint8Array
  readonly address: string
  readonly port: number
}

/** Gives the name of a network interface by its index; undefined if it has gone. */
export type ZoneOf = (index: number) => string | undefined

/** Spells the addresses of senders as Node does. */
export class SenderNames {
  readonly #zoneOf: ZoneOf
  readonly #ipv4 = new Map<number, string>()
  readonly #ipv6 = new Map<string, string>()

  constructor(zoneOf: ZoneOf) {
    this.#zoneOf = zoneOf
  }

  /** `view` shows the address from `at` on. */
  of(view: DataView, at: number): string {
    return view.getUint16(at, true) === AF_INET ? this.#ofIpv4(view.getUint32(at + IPV4)) : this.#ofIpv6(view, at)
  }

  #ofIpv4(word: number): string {
    const known = this.#ipv4.get(word)
    if (known !== undefined) return known
    const name = `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`
    if (this.#ipv4.size >= MOST_NAMES) this.#ipv4.clear()
    this.#ipv4.set(word, name)
    return name
  }

  #ofIpv6(view: DataView, at: number): string {
    const bytes = new Uint8Array(view.buffer, view.byteOffset + at + IPV6, 16)
    const scope = view.getUint32(at + SCOPE, true)
    const key = `${bytes.join()} ${scope}`
    const known = this.#ipv6.get(key)
    if (known !== undefined) return known
    const ip = new ipaddr.IPv6([...bytes])
    const zone = ip.range() === 'linkLocal' && scope !== 0 ? this.#zoneOf(scope) : undefined
    const plain = ip.isIPv4MappedAddress() ? `::ffff:${ip.toIPv4Address().toString()}` : ip.toRFC5952String()
    const name = zone === undefined ? plain : `${plain}%${zone}`
    if (this.#ipv6.size >= MOST_NAMES) this.#ipv6.clear()
    this.#ipv6.set(key, name)
    return name
  }
}

/** Takes a batch apart, one datagram after the other. */
export class DatagramReader {
  readonly #batch: DatagramBatch
  readonly #view: DataView
  readonly #names: SenderNames
  #index = 0
  #at: number

  constructor(batch: DatagramBatch, names: SenderNames) {
    const { buffer, byteOffset, length } = batch.bytes
    this.#batch = batch
    this.#view = new DataView(buffer, byteOffset, length)
    this.#names = names
    this.#at = batch.count * HEAD_BYTES
  }

  get isDone(): boolean {
    return this.#index === this.#batch.count
  }

  next(): Datagram {
    const head = this.#index++ * HEAD_BYTES
    const at = this.#at
    this.#at += this.#view.getUint32(head, true)
    const bytes = this.#batch.bytes.subarray(at, this.#at)
    return { bytes, address: this.#names.of(this.#view, head + 4), port: this.#view.getUint16(head + 4 + PORT) }
  }
}
