/** gmetric datagrams to a port of this machine: what gmond sends for values of type double (id 135), as it sends them. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { f64, join, str, u32 } from '../support/bytes.ts'

/** Datagrams handed to the kernel between two looks at the event loop. */
const SLICE = 32
const HOST = 'vm'
const DOUBLE_VALUE = 135
const METADATA = 128
const SLOPE_BOTH = 3
const MAX_AGE_SECONDS = 60

export class GmetricFeed {
  readonly #socket: Socket
  readonly #packets: readonly Uint8Array[]
  #next = 0
  sent = 0

  private constructor(socket: Socket, packets: readonly Uint8Array[]) {
    this.#socket = socket
    this.#packets = packets
  }

  /** One packet for each metric; they are sent in turns. Metadata is sent at once. */
  static async open(port: number, metrics: readonly string[]): Promise<GmetricFeed> {
    const feed = await GmetricFeed.of(
      port,
      metrics.map((metric) => valuePacket(metric)),
    )
    for (const metric of metrics) await feed.#send(metadataPacket(metric))
    return feed
  }

  /** These packets are sent in turns. `from`: an address of this machine to send from. */
  static async of(port: number, packets: readonly Uint8Array[], from?: string): Promise<GmetricFeed> {
    const socket = createSocket('udp4')
    if (from !== undefined) {
      socket.bind(0, from)
      await once(socket, 'listening')
    }
    socket.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    // Who is not there any more is no error here: it is what counts as dropped.
    socket.on('error', () => {})
    return new GmetricFeed(socket, packets)
  }

  /** Hands `count` datagrams to the kernel. */
  async send(count: number): Promise<void> {
    for (let left = count; left > 0; left -= SLICE) {
      await new Promise<void>((resolve) => {
        let due = Math.min(left, SLICE)
        const sent = (): void => {
          if (--due === 0) setImmediate(resolve)
        }
        for (let i = due; i > 0; i--) this.#socket.send(this.#packet(), sent)
      })
    }
    this.sent += count
  }

  /** Sends at a rate, in datagrams per second, as far as the kernel takes them; Infinity: as fast as it takes them. */
  async flood(rate: number, seconds: number): Promise<void> {
    const started = performance.now()
    let sent = 0
    for (;;) {
      const elapsed = (performance.now() - started) / 1000
      if (elapsed >= seconds) return
      const due = Math.min(elapsed * rate - sent, SLICE)
      if (due < 1) {
        await new Promise((resolve) => setTimeout(resolve, 1))
        continue
      }
      await this.send(Math.floor(due))
      sent += Math.floor(due)
    }
  }

  close(): void {
    this.#socket.close()
  }

  #packet(): Uint8Array {
    const packet = this.#packets[this.#next] as Uint8Array
    this.#next = (this.#next + 1) % this.#packets.length
    return packet
  }

  #send(packet: Uint8Array): Promise<void> {
    return new Promise((resolve) => this.#socket.send(packet, () => resolve()))
  }
}

/** `host`: of the packet itself, or `address:name` for another one. */
export function valuePacket(metric: string, host = HOST, value = 1): Uint8Array {
  return join(u32(DOUBLE_VALUE), str(host), str(metric), u32(Number(host.includes(':'))), str('%.2f'), f64(value))
}

export function metadataPacket(metric: string, host = HOST): Uint8Array {
  const about = [str('double'), str(metric), str(''), u32(SLOPE_BOTH), u32(MAX_AGE_SECONDS), u32(0), u32(0)]
  return join(u32(METADATA), str(host), str(metric), u32(Number(host.includes(':'))), ...about)
}
