/**
 * A file as a stream: from its start to its end and, where it is followed, whatever is added to it later. One that became
 * shorter, or is another file under the same name, is a new stream.
 */
import { type FileHandle, open as openFile } from 'node:fs/promises'
import type { Clock, Timer } from '../clock.ts'
import type { Paced, Pacer, Taker } from './pacer.ts'

const LOOK_MS = 500
const PIECE_BYTES = 64 << 10

export interface FileOptions {
  readonly path: string
  readonly follow: boolean
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly pacer: Pacer
  /** A stream begins: where its bytes go; undefined: nowhere. */
  readonly open: () => Taker | undefined
  /** It cannot be read; told once, and looked for again where it is followed. */
  readonly failed: (error: Error) => void
}

/** Begins at once. */
export function followFile(options: FileOptions): { close(): Promise<void> } {
  const following = new Following(options)
  return { close: () => following.close() }
}

class Following {
  readonly #options: FileOptions
  #handle: FileHandle | undefined
  #inode = 0
  #offset = 0
  #feed: Paced | undefined
  /** The pacer has enough. */
  #isPaused = false
  #hasFailed = false
  #isClosed = false
  #timer: Timer | undefined
  #reading: Promise<void>

  constructor(options: FileOptions) {
    this.#options = options
    this.#reading = this.#look()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#timer !== undefined) this.#options.clock.clear(this.#timer)
    await this.#reading
    await this.#handle?.close()
  }

  async #look(): Promise<void> {
    const { follow, failed, clock } = this.#options
    try {
      await this.#reopen()
      await this.#read()
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) failed(error as Error)
      this.#hasFailed = true
    }
    if (this.#isClosed || !(follow || this.#isPaused)) return
    this.#timer = clock.setTimeout(() => {
      this.#reading = this.#look()
    }, LOOK_MS)
  }

  /** Begins a new stream if the file is not the one it was. */
  async #reopen(): Promise<void> {
    const handle = await openFile(this.#options.path)
    const { ino, size } = await handle.stat()
    if (this.#handle !== undefined && ino === this.#inode && size >= this.#offset) {
      await handle.close()
      return
    }
    await this.#handle?.close()
    this.#feed?.end()
    this.#handle = handle
    this.#inode = ino
    this.#offset = 0
    const taker = this.#options.open()
    const reading = {
      pause: () => {
        this.#isPaused = true
      },
      resume: () => {
        this.#isPaused = false
      },
    }
    this.#feed = taker && this.#options.pacer.feed(taker, reading)
  }

  async #read(): Promise<void> {
    while (!this.#isPaused && !this.#isClosed) {
      const { bytesRead, buffer } = await (this.#handle as FileHandle).read(
        new Uint8Array(PIECE_BYTES),
        0,
        PIECE_BYTES,
        this.#offset,
      )
      if (bytesRead === 0) return
      this.#offset += bytesRead
      this.#feed?.push(buffer.subarray(0, bytesRead))
    }
  }
}
