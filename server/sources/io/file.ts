/**
 * A file as a stream: from its start to its end and, where it is followed, whatever is added to it later. One that became
 * shorter, or is another file under the same name, is a new stream; it begins when the old one was taken to its end.
 */
import { constants } from 'node:fs'
import { type FileHandle, open as openFile } from 'node:fs/promises'
import type { Clock, Timer } from '../../core/clock.ts'
import type { PacedStream, Pacer, StreamTaker } from './pacer.ts'

const LOOK_MS = 500
const PIECE_BYTES = 64 << 10
/** To open a pipe, which is refused then, must not wait for somebody who writes into it. */
const HOW = constants.O_RDONLY | constants.O_NONBLOCK

export interface FileOptions {
  readonly path: string
  readonly follow: boolean
  readonly clock: Pick<Clock, 'setTimeout' | 'clear'>
  readonly pacer: Pacer
  /** Called when a stream begins; returns what takes its bytes, undefined if nothing does. */
  readonly open: () => StreamTaker | undefined
  /** Called once if the file cannot be read; a file that is followed is looked for again. */
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
  #feed: PacedStream | undefined
  /** The pacer has enough. */
  #isPaused = false
  #hasFailed = false
  #isClosed = false
  #timer: Timer | undefined
  /** Ends a wait for the pacer. */
  #wake: () => void = () => {}
  #reading: Promise<void>

  constructor(options: FileOptions) {
    this.#options = options
    this.#reading = this.#look()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#timer !== undefined) this.#options.clock.clear(this.#timer)
    this.#wake()
    await this.#reading
    await this.#handle?.close()
  }

  async #look(): Promise<void> {
    const { follow, failed, clock } = this.#options
    try {
      // What was added before it was moved away.
      if (this.#handle !== undefined) await this.#read(this.#handle)
      const handle = await this.#replaced()
      if (handle !== undefined) await this.#read(handle)
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) failed(error as Error)
      this.#hasFailed = true
    }
    if (this.#isClosed || !follow) return
    this.#timer = clock.setTimeout(() => {
      this.#reading = this.#look()
    }, LOOK_MS)
  }

  /** Begins a new stream if the file is not the one it was. */
  async #replaced(): Promise<FileHandle | undefined> {
    const handle = await openFile(this.#options.path, HOW)
    const status = await handle.stat()
    const isNew = this.#handle === undefined || status.ino !== this.#inode || status.size < this.#offset
    if (!isNew || !status.isFile()) {
      await handle.close()
      if (isNew) throw new Error('it is no file')
      return undefined
    }
    await this.#handle?.close()
    this.#handle = handle
    this.#inode = status.ino
    this.#offset = 0
    const ended = this.#feed && this.#wait()
    this.#feed?.end()
    await ended
    this.#feed = this.#isClosed ? undefined : this.#begin()
    return handle
  }

  #begin(): PacedStream | undefined {
    const taker = this.#options.open()
    if (taker === undefined) return undefined
    const taking = {
      push: (bytes: Uint8Array) => taker.push(bytes),
      end: () => {
        taker.end()
        this.#wake()
      },
    }
    const reading = {
      pause: () => {
        this.#isPaused = true
      },
      resume: () => {
        this.#isPaused = false
        this.#wake()
      },
    }
    return this.#options.pacer.feed(taking, reading)
  }

  async #read(handle: FileHandle): Promise<void> {
    while (!this.#isClosed) {
      const { bytesRead, buffer } = await handle.read(new Uint8Array(PIECE_BYTES), 0, PIECE_BYTES, this.#offset)
      if (bytesRead === 0) return
      this.#offset += bytesRead
      this.#feed?.push(buffer.subarray(0, bytesRead))
      if (this.#isPaused) await this.#wait()
    }
  }

  #wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }
}
