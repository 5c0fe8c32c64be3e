/**
 * A TCP proxy that hurts a connection at a byte that is said beforehand. Nothing in it depends on time: the same bytes
 * pass in every run, whatever pieces the kernel makes of them.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'

/** up: towards the server. */
export type Direction = 'up' | 'down'

export interface Fault {
  readonly direction: Direction
  /** So many bytes pass in that direction, then it happens; 0: before the first one. */
  readonly after: number
  /**
   * cut: both ends see the end of the stream. reset: both see a reset. half-close: that direction ends, the other goes
   * on. stall: nothing more passes in that direction until `release`.
   */
  readonly how: 'cut' | 'reset' | 'half-close' | 'stall'
}

export interface Handling {
  readonly fault?: Fault
  /** Bytes that are passed on at once; left out: as they come. */
  readonly slice?: number
}

export class TcpProxy {
  readonly #server: Server
  readonly #target: number
  readonly #passages = new Set<Passage>()
  #arrived: ((socket: Socket) => void) | undefined

  private constructor(server: Server, target: number) {
    this.#server = server
    this.#target = target
    server.on('connection', (socket) => this.#arrived?.(socket))
  }

  /** To a port of loopback. */
  static async open(target: number): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new TcpProxy(server, target)
  }

  /** A connection to the target through the proxy. One at a time is made; any number may be open. */
  async connect(handling: Handling = {}): Promise<Passage> {
    const arrived = new Promise<Socket>((resolve) => {
      this.#arrived = resolve
    })
    const { port } = this.#server.address() as AddressInfo
    const client = await open(port)
    const passage = new Passage({ client, near: await arrived, far: await open(this.#target), handling })
    this.#passages.add(passage)
    void passage.over.then(() => this.#passages.delete(passage))
    return passage
  }

  async close(): Promise<void> {
    for (const passage of this.#passages) passage.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }
}

async function open(port: number): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true })
  await once(socket, 'connect')
  return socket
}

interface Ends {
  /** Whose connection it is. */
  readonly client: Socket
  /** The proxy's two sockets. */
  readonly near: Socket
  readonly far: Socket
  readonly handling: Handling
}

export class Passage {
  /** The consumer's end. */
  readonly client: Socket
  /** Bytes that were passed on. */
  readonly passed: Record<Direction, number> = { up: 0, down: 0 }
  /** Both sockets of the proxy are closed. */
  readonly over: Promise<void>
  readonly #ends: Ends
  #broken = false
  #released: () => void = () => {}

  constructor(ends: Ends) {
    this.client = ends.client
    this.#ends = ends
    const { near, far } = ends
    this.over = Promise.all([near, far].map((socket) => new Promise((done) => socket.once('close', done)))).then()
    // Whoever is reset takes the other along.
    for (const socket of [near, far]) socket.on('error', () => this.destroy())
    void this.#pump('up', near, far)
    void this.#pump('down', far, near)
  }

  /** A stall ends. */
  release(): void {
    this.#released()
  }

  destroy(): void {
    this.#broken = true
    for (const socket of [this.#ends.near, this.#ends.far, this.client]) socket.destroy()
  }

  async #pump(direction: Direction, from: Socket, to: Socket): Promise<void> {
    const { slice = Number.POSITIVE_INFINITY } = this.#ends.handling
    try {
      await this.#judge(direction, to)
      for await (const chunk of from) {
        for (let at = 0; at < chunk.length && !this.#broken && to.writable; ) {
          const end = Math.min(chunk.length, at + slice, at + this.#left(direction))
          await new Promise<void>((done) => to.write(chunk.subarray(at, end), () => done()))
          this.passed[direction] += end - at
          at = end
          await this.#judge(direction, to)
          if (slice < chunk.length) await setImmediate()
        }
      }
      to.end()
    } catch {
      // The one it reads from was reset: `error` has reported it, and what else there was to do is done.
    }
  }

  /** Bytes until the fault; once it was there, none are counted. */
  #left(direction: Direction): number {
    const { fault } = this.#ends.handling
    if (fault?.direction !== direction || this.passed[direction] >= fault.after) return Number.POSITIVE_INFINITY
    return fault.after - this.passed[direction]
  }

  async #judge(direction: Direction, to: Socket): Promise<void> {
    const { handling, near, far } = this.#ends
    const { fault } = handling
    if (fault?.direction !== direction || this.passed[direction] !== fault.after) return
    switch (fault.how) {
      case 'cut':
        this.#broken = true
        near.end()
        far.end()
        return
      case 'reset':
        this.#broken = true
        near.resetAndDestroy()
        far.resetAndDestroy()
        return
      case 'half-close':
        to.end()
        return
      case 'stall':
        await new Promise<void>((resolve) => {
          this.#released = resolve
        })
    }
  }
}
