/**
 * A way to a port, of whose connections one is cut or reset after each random number of bytes, as long as it is cutting. All bytes of
 * the link count, whichever connection they pass in: so a link on which little flows is cut less often, and not never.
 */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '../../support/random.ts'

/** The first cut comes within so many bytes, which is soon: the login of a connection and some values. */
const FIRST = 20_000
/**
 * The next cut comes within so many bytes: every second one early, and the others late. All of them early, and what has piled up
 * comes again and again, for a COMMIT gets through only if the connection lasts longer than the values before it take.
 */
const [EARLY, LATE] = [300_000, 20_000_000]

export class CutLink {
  readonly port: number
  isCutting = false
  /** What is sent towards the port is thrown away, so that no COMMIT arrives there. */
  isMute = false
  cuts = 0
  readonly #server: Server
  readonly #random: Random
  /** Bytes that pass until the next cut. */
  #left: number
  readonly #sockets = new Set<Socket>()

  private constructor(server: Server, target: number, random: Random) {
    this.#server = server
    this.#random = random
    this.#left = random.below(FIRST)
    this.port = (server.address() as AddressInfo).port
    server.on('connection', (near) => this.#pass(near, connect({ host: '127.0.0.1', port: target })))
  }

  static async open(target: number, random: Random): Promise<CutLink> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new CutLink(server, target, random)
  }

  /** Ends the connections that there are. */
  sever(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#server.close()
    this.sever()
  }

  #pass(near: Socket, far: Socket): void {
    let isCut = false
    const both = [near, far]
    for (const socket of both) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        for (const one of both) one.destroy()
      })
    }
    const pump = (from: Socket, to: Socket): void => {
      from.on('data', (chunk: Buffer) => {
        if (isCut || (this.isMute && to === far)) return
        isCut = this.isCutting && chunk.length > this.#left
        to.write(isCut ? chunk.subarray(0, this.#left) : chunk)
        if (this.isCutting && !isCut) this.#left -= chunk.length
        if (!isCut) return
        this.#left = this.#random.below(this.#random.below(2) === 0 ? EARLY : LATE)
        this.cuts++
        // The bytes that were handed over go on, and then it ends as a network ends.
        setImmediate(() => {
          for (const one of both) one[this.#random.below(2) === 0 ? 'destroy' : 'resetAndDestroy']()
        })
      })
    }
    pump(near, far)
    pump(far, near)
  }
}
