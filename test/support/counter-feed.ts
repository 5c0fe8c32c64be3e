/** Consecutive numbers as `gmetric.counter`, in the datagrams that gmetric sends. */
import { createSocket } from 'node:dgram'
import { encodeMetadata, encodeText } from '../../protocol/gmetric/encode.ts'

const HOST = { address: '10.0.0.1', name: 'n1', spoofed: true, label: '10.0.0.1:n1' }
const METADATA = { type: 'uint32', units: '', slope: 3, tmax: 60, dmax: 0, extra: [] }

export class CounterFeed {
  readonly #socket = createSocket('udp4')
  readonly #port: number
  /** So many were sent: the next number. */
  sent = 0

  constructor(port: number) {
    this.#port = port
  }

  send(count: number): void {
    this.#packet(encodeMetadata(HOST, 'counter', METADATA))
    for (let i = 0; i < count; i++) this.#packet(encodeText(HOST, 'counter', String(this.sent++)))
  }

  close(): void {
    this.#socket.close()
  }

  #packet(bytes: Uint8Array): void {
    this.#socket.send(bytes, this.#port, '127.0.0.1')
  }
}
