/** A socket whose datagrams a thread receives (`DatagramThread`). */
import { isIPv4 } from 'node:net'
import type { Address } from '../../../kernel/core/address.ts'
import { type Datagram, type DatagramBatch, DatagramReader, type SenderNames, waitingBytes } from './batch.ts'
import type { DatagramSocket, SocketOptions } from './feed.ts'
import type { Libc } from './libc.ts'
import { addressOfSocket, joinGroup, sendFrom } from './sockets.ts'

export interface BatchedSocketParts {
  readonly libc: Libc
  readonly fd: number
  readonly names: SenderNames
  readonly options: Pick<SocketOptions, 'received' | 'failed'>
  /** To be called when so many bytes that have waited were taken. */
  readonly taken: (bytes: number) => void
  /** Has the descriptor closed; `closed` is called when it is. */
  readonly close: () => void
}

interface Waiting {
  readonly reader: DatagramReader
  readonly bytes: number
}

export class BatchedSocket implements DatagramSocket {
  readonly address: Address
  /** What has no room here waits in the kernel. */
  readonly dropped = 0
  readonly #parts: BatchedSocketParts
  readonly #waiting: Waiting[] = []
  #isOpen = true
  #closed: () => void = () => {}

  constructor(parts: BatchedSocketParts) {
    this.#parts = parts
    this.address = addressOfSocket(parts.libc, parts.fd)
  }

  /** Takes what the thread has received. */
  take(batch: DatagramBatch): void {
    if (!this.#isOpen) return
    this.#waiting.push({ reader: new DatagramReader(batch, this.#parts.names), bytes: waitingBytes(batch) })
    this.#parts.options.received()
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  next(): Datagram | undefined {
    const [first] = this.#waiting
    if (first === undefined) return undefined
    const datagram = first.reader.next()
    if (first.reader.isDone) {
      this.#waiting.shift()
      this.#parts.taken(first.bytes)
    }
    return datagram
  }

  join(group: string, groupOn: string): void {
    joinGroup(this.#parts.libc, this.#parts.fd, group, groupOn)
  }

  send(packet: Uint8Array, host: string, port: number): void {
    if (!this.#isOpen) return
    const isMapped = this.address.host.includes(':') && isIPv4(host)
    sendFrom(this.#parts.libc, this.#parts.fd, packet, { host: isMapped ? `::ffff:${host}` : host, port })
  }

  /** The thread has failed to receive. */
  failed(error: Error): void {
    if (this.#isOpen) this.#parts.options.failed(error)
  }

  close(): Promise<void> {
    this.#isOpen = false
    this.#waiting.length = 0
    return new Promise((resolve) => {
      this.#closed = resolve
      this.#parts.close()
    })
  }

  /** The descriptor is closed. */
  closed(): void {
    this.#closed()
  }
}
