/** A producer that a test plays over a real stream, and that can go on over another one: a layer above it. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { FakeProducer } from './fake-producer.ts'

export class StreamProducer extends FakeProducer {
  #stream!: Duplex
  #rest = Buffer.alloc(0)

  constructor(stream: Duplex) {
    super()
    this.open({ data() {}, closed() {} })
    this.goOn(stream)
  }

  /** Hears no more of it; to be given to a layer. */
  release(): Duplex {
    return this.#stream.removeAllListeners('data')
  }

  /** From now on everything goes over this one. */
  goOn(stream: Duplex): void {
    this.#stream = stream
    stream.on('error', () => {})
    stream.on('data', (bytes: Buffer) => {
      this.#rest = Buffer.concat([this.#rest, bytes])
      while (this.#rest.length >= 4 && this.#rest.length >= 4 + this.#rest.readUInt32BE()) {
        const end = 4 + this.#rest.readUInt32BE()
        this.send(this.#rest.subarray(0, end))
        this.#rest = this.#rest.subarray(end)
      }
    })
  }

  override say(...frames: readonly Uint8Array[]): void {
    this.#stream.write(Buffer.concat(frames))
  }

  override hangUp(): void {
    this.#stream.destroy()
  }
}

/** Listens on loopback; `next` gives the producer of the next connection. */
export async function producerPort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const arrived: Socket[] = []
  server.on('connection', (socket) => arrived.push(socket))
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `tcp://127.0.0.1:${port}`,
    async next(): Promise<StreamProducer> {
      if (arrived.length === 0) await once(server, 'connection')
      return new StreamProducer(arrived.shift() as Socket)
    },
    close() {
      for (const socket of arrived) socket.destroy()
      server.close()
    },
  }
}
