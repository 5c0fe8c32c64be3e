/**
 * A consumer's connection for a hot path: frames are looked at where they were read, no object each. There may be thousands
 * in one process. It logs in as `local` by SCRAM with keys that are derived once, which costs both ends next to nothing.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { ScramClient } from '../../auth/scram/client.ts'
import type { ScramKeys } from '../../auth/scram/keys.ts'
import { command } from '../support/bytes.ts'

const RESPONSE = 0xffffffff
const AUTH = 0xfffffffd
const GAP = 0xfffffffc
const LAST_METRIC = 0x7fffffff
const AUTH_NEEDED = 1
const BUFFER_BYTES = 64 << 10
/** Of a frame: after its length the metric id, or for a RESPONSE what it is; then seq or transaction id. */
const KIND = 4
const SEQ = 8
const STATUS = 12
const RESULT = 16
export const TRANSACTION = 8

/** Who logs in: made once, so that the keys are derived once. */
export class Local {
  readonly secret: string
  readonly name: string
  keys: ScramKeys | undefined

  /** `name`: of another user. */
  constructor(secret: string, name = 'local') {
    this.secret = secret
    this.name = name
  }
}

export interface Listener {
  /** A VALUE (or GAP) frame begins at `at`. Valid during the call. */
  value?(view: DataView, at: number): void
  /** A response that nobody `ask`ed for: to frames that were written in bulk. */
  response?(seq: number): void
  /** Everything that came in one read was looked at. */
  read?(): void
}

interface Answer {
  readonly status: number
  readonly result: number
}

export class BenchConnection {
  readonly #socket: Socket
  readonly #bytes: Uint8Array
  readonly #view: DataView
  #end = 0
  #seq = 0x40000000
  readonly #asked = new Map<number, (answer: Answer) => void>()
  #auth: Uint8Array = new Uint8Array(0)
  listener: Listener = {}
  /** The channel that AUTH gave. */
  channel = 0

  private constructor(port: number, bufferBytes: number) {
    this.#bytes = new Uint8Array(bufferBytes)
    this.#view = new DataView(this.#bytes.buffer)
    const onread = {
      buffer: () => this.#bytes.subarray(this.#end),
      callback: (count: number) => this.#read(count),
    }
    this.#socket = connect({ host: '127.0.0.1', port, noDelay: true, onread })
  }

  /** Connected and logged in. Undefined: a limit server, which asks nobody who they are. */
  static async open(port: number, user: Local | undefined, bufferBytes = BUFFER_BYTES): Promise<BenchConnection> {
    const connection = new BenchConnection(port, bufferBytes)
    await once(connection.#socket, 'connect')
    if (user !== undefined) connection.channel = await connection.#logIn(user)
    return connection
  }

  /** The bytes must not change any more. */
  write(bytes: Uint8Array): void {
    this.#socket.write(bytes)
  }

  /** Sends one command; gives its result. Anything but OK is an error. */
  async ask(make: (seq: number) => Uint8Array): Promise<number> {
    const { status, result } = await this.#answer(make)
    if (status !== 0) throw new Error(`a command was answered with status ${status}`)
    return result
  }

  close(): void {
    this.#socket.destroy()
  }

  async #logIn(user: Local): Promise<number> {
    const scram = new ScramClient({ identity: user.name, password: user.secret, keys: user.keys })
    await this.#challenge('scram-sha-256', scram.first())
    const final = await scram.final(this.#auth)
    user.keys = scram.keys
    await this.#challenge('', final)
    scram.verify(this.#auth)
    return this.ask((seq) => command.auth(seq, '', new Uint8Array(0)))
  }

  async #challenge(method: string, data: Uint8Array): Promise<void> {
    const { status } = await this.#answer((seq) => command.auth(seq, method, data))
    if (status !== AUTH_NEEDED) throw new Error(`AUTH was answered with status ${status}`)
  }

  #answer(make: (seq: number) => Uint8Array): Promise<Answer> {
    return new Promise((resolve) => {
      const seq = this.#seq++
      this.#asked.set(seq, resolve)
      this.#socket.write(make(seq))
    })
  }

  #read(count: number): boolean {
    const end = this.#end + count
    const view = this.#view
    let at = 0
    while (end - at >= 4) {
      const next = at + 4 + view.getUint32(at)
      if (next > end) break
      this.#look(at, next)
      at = next
    }
    this.#bytes.copyWithin(0, at, end)
    this.#end = end - at
    this.listener.read?.()
    return true
  }

  #look(at: number, end: number): void {
    const view = this.#view
    const kind = view.getUint32(at + KIND)
    if (kind <= LAST_METRIC || kind === GAP) this.listener.value?.(view, at)
    else if (kind === AUTH) this.#auth = this.#bytes.slice(at + 12, at + 12 + view.getUint32(at + 8))
    else if (kind === RESPONSE) this.#respond(view.getUint32(at + SEQ), at, end)
  }

  #respond(seq: number, at: number, end: number): void {
    const status = this.#view.getUint32(at + STATUS)
    const waiting = this.#asked.get(seq)
    if (waiting === undefined) {
      if (status !== 0) throw new Error(`status ${status}: ${Buffer.from(this.#bytes.subarray(at + 24, end))}`)
      this.listener.response?.(seq)
      return
    }
    this.#asked.delete(seq)
    // The AUTH message after it, which stands in the same read, is looked at before whoever waits goes on.
    waiting({ status, result: this.#view.getUint32(at + RESULT) })
  }
}

/** Opens many, some at a time: the server gives each login 10 s. */
export async function openMany(
  port: number,
  user: Local | undefined,
  count: number,
  bufferBytes?: number,
): Promise<BenchConnection[]> {
  const connections = [await BenchConnection.open(port, user, bufferBytes)]
  await inTurns(count - 1, async () => {
    connections.push(await BenchConnection.open(port, user, bufferBytes))
  })
  return connections
}

const AT_ONCE = 64

/** Does something `count` times, up to 64 at once. */
export async function inTurns(count: number, act: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: Math.min(count, AT_ONCE) }, worker))
}
