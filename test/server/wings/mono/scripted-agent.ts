/** An agent over a real socket that says what the test says, and keeps what it is asked. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Address } from '../../../../server/kernel/core/address.ts'

export class ScriptedAgent {
  readonly socket: Socket
  #asked = ''
  #arrived: () => void = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      this.#asked += chunk.toString('hex')
      this.#arrived()
    })
    socket.on('close', () => this.#arrived())
  }

  static async connect(to: Address | undefined, from = '127.0.0.1'): Promise<ScriptedAgent> {
    const socket = connect({ host: to?.host, port: to?.port ?? 0, localAddress: from })
    await once(socket, 'connect')
    return new ScriptedAgent(socket)
  }

  say(bytes: Uint8Array): void {
    this.socket.write(bytes)
  }

  /** Waits for exactly these bytes, in hex, after what was awaited before. */
  async asked(expected: string): Promise<void> {
    while (this.#asked.length < expected.length && !this.socket.closed) {
      await new Promise<void>((resolve) => {
        this.#arrived = resolve
      })
    }
    const asked = this.#asked.slice(0, expected.length)
    if (asked !== expected) throw new Error(`asked ${asked || 'nothing'}, where ${expected} was expected`)
    this.#asked = this.#asked.slice(expected.length)
  }

  /** What it was asked and did not await. */
  get rest(): string {
    return this.#asked
  }

  async closed(): Promise<void> {
    // Not `once`: a reset is an end too.
    if (!this.socket.closed) await new Promise((resolve) => this.socket.on('close', resolve))
  }

  async end(): Promise<void> {
    this.socket.end()
    await this.closed()
  }
}
