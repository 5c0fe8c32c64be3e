/**
 * An inspector that does what a test says, and takes messages apart by hand, by the layout of the wire: little-endian, no
 * length around a message, strings with 4 bytes of length. It knows nothing of our decoder.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'

export interface Header {
  readonly category: number
  readonly name: string
  readonly type: number
  readonly unit: number
  readonly variance: number
  readonly index: number
}

export type Message =
  | { readonly kind: 'hello'; readonly version: number; readonly headers: readonly Header[] }
  | { readonly kind: 'list'; readonly entries: readonly (readonly [name: string, category: string])[] }
  | { readonly kind: 'add'; readonly status: number; readonly header?: Header }
  | { readonly kind: 'remove'; readonly status: number }
  | { readonly kind: 'sampling'; readonly ticks: bigint; readonly samples: ReadonlyMap<number, Buffer> }

export class ScriptedInspector {
  readonly #server: Server
  readonly #arrived: Agent[] = []
  #waiting: (() => void) | undefined

  private constructor() {
    this.#server = createServer((socket) => {
      this.#arrived.push(new Agent(socket))
      this.#waiting?.()
    })
  }

  static async listen(port = 0): Promise<ScriptedInspector> {
    const inspector = new ScriptedInspector()
    inspector.#server.listen(port, '127.0.0.1')
    await once(inspector.#server, 'listening')
    return inspector
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** The next agent that connected. */
  async agent(): Promise<Agent> {
    for (;;) {
      const agent = this.#arrived.shift()
      if (agent !== undefined) return agent
      await new Promise<void>((resolve) => {
        this.#waiting = resolve
      })
    }
  }

  close(): void {
    this.#server.close()
  }
}

export class Agent {
  readonly socket: Socket
  readonly #bytes: AsyncIterator<Buffer>
  #buffer = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.socket = socket
    // An application that is killed resets its connections.
    socket.on('error', () => {})
    this.#bytes = socket[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  }

  send(...parts: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(parts))
  }

  /** The next message of a kind; samplings may stand between. */
  async until<K extends Message['kind']>(kind: K): Promise<Extract<Message, { kind: K }>> {
    for (;;) {
      const message = await this.message()
      if (message.kind === kind) return message as Extract<Message, { kind: K }>
      if (message.kind !== 'sampling') throw new Error(`${message.kind} came while ${kind} was awaited`)
    }
  }

  /** The next sampling that satisfies. */
  async sampling(satisfies: (samples: ReadonlyMap<number, Buffer>) => boolean): Promise<ReadonlyMap<number, Buffer>> {
    for (;;) {
      const { samples } = await this.until('sampling')
      if (satisfies(samples)) return samples
    }
  }

  /** Waits until the agent has closed, whatever it sends before. */
  async closed(): Promise<void> {
    while (!(await this.#bytes.next()).done);
  }

  async message(): Promise<Message> {
    const kind = (await this.#take(1)).readInt8()
    switch (kind) {
      case 0: {
        const version = await this.#short()
        const headers: Header[] = []
        for (let left = await this.#short(); left > 0; left--) headers.push(await this.#header())
        return { kind: 'hello', version, headers }
      }
      case 1: {
        const entries: [string, string][] = []
        for (let name = await this.#text(); name !== null; name = await this.#text()) {
          entries.push([name, (await this.#text()) ?? ''])
        }
        return { kind: 'list', entries }
      }
      case 2: {
        const status = (await this.#take(1)).readInt8()
        return { kind: 'add', status, ...(status === 0 ? { header: await this.#header() } : {}) }
      }
      case 3:
        return { kind: 'remove', status: (await this.#take(1)).readInt8() }
      case 4: {
        const ticks = (await this.#take(8)).readBigInt64LE()
        const samples = new Map<number, Buffer>()
        for (let index = await this.#short(); index !== -1; index = await this.#short()) {
          samples.set(index, await this.#take(await this.#short()))
        }
        return { kind: 'sampling', ticks, samples }
      }
      default:
        throw new Error(`a message that begins with ${kind}`)
    }
  }

  async #header(): Promise<Header> {
    const category = await this.#int()
    const name = (await this.#text()) ?? ''
    const type = await this.#int()
    const unit = await this.#int()
    const variance = await this.#int()
    return { category, name, type, unit, variance, index: await this.#short() }
  }

  async #short(): Promise<number> {
    return (await this.#take(2)).readInt16LE()
  }

  async #int(): Promise<number> {
    return (await this.#take(4)).readInt32LE()
  }

  async #text(): Promise<string | null> {
    const length = await this.#int()
    return length < 0 ? null : (await this.#take(length)).toString('utf8')
  }

  async #take(count: number): Promise<Buffer> {
    while (this.#buffer.length < count) {
      const { done, value } = await this.#bytes.next()
      if (done) throw new Error('the agent closed the connection')
      this.#buffer = Buffer.concat([this.#buffer, value])
    }
    const taken = this.#buffer.subarray(0, count)
    this.#buffer = this.#buffer.subarray(count)
    return taken
  }
}

const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeInt32LE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** Requests, as they stand on the wire. */
export const request = {
  list: Buffer.of(1),
  add: (name: string, category: string) => Buffer.concat([Buffer.of(2), text(name), text(category)]),
  remove: (index: number) => Buffer.of(3, index & 0xff, (index >> 8) & 0xff),
  goodBye: Buffer.of(0x7f),
}
