/**
 * A TCP connection for a hot path: everything is read into one buffer that is never given away, and what a reader did not
 * use stands before what comes next. So a reader sees whole frames without a copy per chunk and without an object per frame.
 */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Reads whole frames from `bytes[0..end)`; gives how many bytes it used. */
export type Take = (bytes: Uint8Array, view: DataView, end: number) => number

const BUFFER_BYTES = 1 << 20

export class RawSocket {
  readonly #bytes = new Uint8Array(BUFFER_BYTES)
  readonly #view = new DataView(this.#bytes.buffer)
  readonly #socket: Socket
  readonly #take: Take
  #end = 0
  #closed = false
  /** Rejects when the connection ends before `close`. */
  readonly broken: Promise<never>

  constructor(port: number, take: Take) {
    this.#take = take
    this.#socket = connect({
      host: '127.0.0.1',
      port,
      onread: {
        buffer: () => this.#bytes.subarray(this.#end),
        callback: (count) => this.#read(count),
      },
    })
    this.#socket.setNoDelay(true)
    this.broken = new Promise((_, reject) => {
      this.#socket.on('error', reject)
      this.#socket.on('close', () => {
        if (!this.#closed) reject(new Error(`the server on port ${port} closed the connection`))
      })
    })
    this.broken.catch(() => {})
  }

  async connected(): Promise<this> {
    await once(this.#socket, 'connect')
    return this
  }

  /** False when the kernel is behind: `drained` should be awaited. The bytes must not change any more. */
  write(bytes: Uint8Array): boolean {
    return this.#socket.write(bytes)
  }

  async drained(): Promise<void> {
    await Promise.race([once(this.#socket, 'drain'), this.broken])
  }

  /** `done`, unless the connection ends first. */
  until<T>(done: Promise<T>): Promise<T> {
    return Promise.race([done, this.broken])
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #read(count: number): boolean {
    const end = this.#end + count
    try {
      const used = this.#take(this.#bytes, this.#view, end)
      this.#end = end - used
      if (this.#end === BUFFER_BYTES) throw new Error(`a frame of more than ${BUFFER_BYTES} bytes`)
      if (used < end) this.#bytes.copyWithin(0, used, end)
    } catch (error) {
      this.#socket.destroy(error instanceof Error ? error : new Error(String(error)))
    }
    return true
  }
}

/** Something that will be so, once. */
export class Moment {
  readonly reached: Promise<void>
  #reach: () => void = () => {}

  constructor() {
    this.reached = new Promise((resolve) => {
      this.#reach = resolve
    })
  }

  reach(): void {
    this.#reach()
  }
}
