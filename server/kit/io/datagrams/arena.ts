/**
 * The memory that `recvmmsg` writes into: for each datagram of a call its headers, the address of its sender and its bytes. It is
 * made once; only the pages that are written to are there.
 */
import { type DatagramBatch, HEAD_BYTES } from './batch.ts'
import { ADDRESS_BYTES, IO_VECTOR, type Libc, MESSAGE, MSG_TRUNC } from './libc.ts'

/** Datagrams that one call may receive. */
export const MOST_AT_ONCE = 128
/** Longer than any datagram of UDP, so that each is taken whole. */
const PLACE_BYTES = 1 << 16

const NAME_BYTES = 32
const PARTS_AT = MOST_AT_ONCE * MESSAGE.bytes
const NAMES_AT = PARTS_AT + MOST_AT_ONCE * IO_VECTOR.bytes
const PLACES_AT = NAMES_AT + MOST_AT_ONCE * NAME_BYTES

export class Arena {
  readonly #bytes = new Uint8Array(PLACES_AT + MOST_AT_ONCE * PLACE_BYTES)
  readonly #view = new DataView(this.#bytes.buffer)
  /** Datagrams that were longer than their place, and were left out. */
  truncated = 0

  constructor(libc: Pick<Libc, 'addressOf'>) {
    const base = libc.addressOf(this.#bytes)
    for (let index = 0; index < MOST_AT_ONCE; index++) {
      const message = index * MESSAGE.bytes
      const part = PARTS_AT + index * IO_VECTOR.bytes
      this.#view.setBigUint64(message + MESSAGE.name, base + BigInt(NAMES_AT + index * NAME_BYTES), true)
      this.#view.setUint32(message + MESSAGE.nameLength, ADDRESS_BYTES, true)
      this.#view.setBigUint64(message + MESSAGE.parts, base + BigInt(part), true)
      this.#view.setBigUint64(message + MESSAGE.partCount, 1n, true)
      this.#view.setBigUint64(part + IO_VECTOR.base, base + BigInt(PLACES_AT + index * PLACE_BYTES), true)
      this.#view.setBigUint64(part + IO_VECTOR.length, BigInt(PLACE_BYTES), true)
    }
  }

  /** Receives what has come, without waiting. Gives how many that are, -1 after an error. */
  receive(libc: Pick<Libc, 'recvmmsg'>, fd: number, flags: number): number {
    return libc.recvmmsg(fd, this.#bytes, MOST_AT_ONCE, flags, null)
  }

  /** Copies what the last call has received, and makes the places ready for the next. */
  batch(received: number): DatagramBatch {
    let total = 0
    let count = 0
    for (let index = 0; index < received; index++) {
      const message = index * MESSAGE.bytes
      if ((this.#view.getUint32(message + MESSAGE.flags, true) & MSG_TRUNC) !== 0) continue
      total += this.#view.getUint32(message + MESSAGE.length, true)
      count++
    }
    this.truncated += received - count
    const bytes = new Uint8Array(count * HEAD_BYTES + total)
    const heads = new DataView(bytes.buffer)
    let head = 0
    let at = count * HEAD_BYTES
    for (let index = 0; index < received; index++) {
      const message = index * MESSAGE.bytes
      // The kernel has written how long the address is.
      this.#view.setUint32(message + MESSAGE.nameLength, ADDRESS_BYTES, true)
      if ((this.#view.getUint32(message + MESSAGE.flags, true) & MSG_TRUNC) !== 0) continue
      const length = this.#view.getUint32(message + MESSAGE.length, true)
      const name = NAMES_AT + index * NAME_BYTES
      const place = PLACES_AT + index * PLACE_BYTES
      heads.setUint32(head, length, true)
      bytes.set(this.#bytes.subarray(name, name + ADDRESS_BYTES), head + 4)
      bytes.set(this.#bytes.subarray(place, place + length), at)
      head += HEAD_BYTES
      at += length
    }
    return { count, bytes }
  }
}
