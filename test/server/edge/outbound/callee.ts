/** A consumer that waits to be called: real listeners on loopback, and the consumer's half of the login, by raw bytes. */
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createSecureServer, type SecureContextOptions } from 'node:tls'
import { ScramClient } from '../../../../auth/scram/client.ts'
import { command, status } from '../../../support/bytes.ts'
import { RawPeer } from '../../../support/raw-peer.ts'
import { Seat } from '../../../support/seat.ts'

export const SECRET = 'a secret of 16 or more'

export class Callee {
  readonly port: number
  /** Connections that ever came. */
  calls = 0
  readonly #server: Server
  readonly #waiting: RawPeer[] = []
  readonly #sockets = new Set<Socket>()
  #wake: () => void = () => {}

  private constructor(server: Server, port: number) {
    this.#server = server
    this.port = port
  }

  /** `secured`: over TLS, with this certificate. */
  static async listen(address = '127.0.0.1', port = 0, secured?: SecureContextOptions): Promise<Callee> {
    const server = secured === undefined ? createServer() : createSecureServer(secured)
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, address, resolve)
    })
    const bound = server.address()
    const callee = new Callee(server, typeof bound === 'object' && bound !== null ? bound.port : 0)
    server.on(secured === undefined ? 'connection' : 'secureConnection', (socket: Socket) => callee.#came(socket))
    return callee
  }

  #came(socket: Socket): void {
    this.calls++
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    this.#waiting.push(new RawPeer(socket))
    this.#wake()
  }

  /** The next connection. Its PRODUCER_CAPS is the first message. */
  async call(): Promise<RawPeer> {
    for (;;) {
      const peer = this.#waiting.shift()
      if (peer !== undefined) return peer
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** The next connection, on which the consumer has proven who it is. */
  async answer(identity: string, secret = SECRET): Promise<Seat> {
    const peer = await this.call()
    const { status: outcome, result, detail } = await login(peer, identity, secret)
    if (outcome !== status.OK) throw new Error(`AUTH was answered with status ${outcome}: ${detail}`)
    await peer.until('caps')
    return new Seat(peer, result)
  }

  /** Hangs up everywhere. */
  hangUp(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.hangUp()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }
}

/** SCRAM up to its end; gives the last response. */
export async function login(
  peer: RawPeer,
  identity: string,
  secret: string,
): Promise<{ status: number; result: number; detail: string }> {
  await peer.until('caps')
  const scram = new ScramClient({ identity, password: secret })
  peer.send(command.auth(0xfff00000, 'scram-sha-256', scram.first()))
  const first = await peer.response(0xfff00000)
  if (first.status !== status.AUTH_NEEDED) return first
  const challenge = await peer.until('auth')
  peer.send(command.auth(0xfff00001, '', await scram.final(challenge.data)))
  const proven = await peer.response(0xfff00001)
  if (proven.status !== status.AUTH_NEEDED) return proven
  scram.verify((await peer.until('auth')).data)
  peer.send(command.auth(0xfff00002, '', new Uint8Array(0)))
  return peer.response(0xfff00002)
}

/** Waits for what other turns bring about; the test's own time limit ends it. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

interface Dialling {
  readonly logged: readonly string[]
  readonly clock: { advance(ms: number): void }
}

/** Attempts that have failed so far. */
export function failed({ logged }: Dialling): number {
  return logged.filter((line) => line.includes('dialling failed')).length
}

/** Lets time go on until the next attempt begins, and hardly further: an attempt has 10 s. Gives how long it took, ms. */
export function redialled(producer: Dialling): number {
  const begun = (): number => producer.logged.filter((line) => line.includes('dialling begins')).length
  const before = begun()
  for (let ms = 100; ms <= 120_000; ms += 100) {
    producer.clock.advance(100)
    if (begun() > before) return ms
  }
  throw new Error('nothing was dialled within two minutes')
}
